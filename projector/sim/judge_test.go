package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
)

// A moment's slack for rule R8: what is under way while it is stored counts as nothing.
const slack = 3 * time.Second

// look checks the rules that hold at any moment.
func (w *world) look() {
	if w.server == nil {
		return
	}
	pr := w.server
	p, v := pr.p.Progress(), pr.model.View()
	if v.Sequence() < pr.view {
		w.violation("R1: the view goes back from %d to %d", pr.view, v.Sequence())
	}
	pr.view = v.Sequence()
	w.lookAtTime(p)
	if p.Frozen() {
		w.violation("R4: frozen: %s", p.LastError)
	}
	if pr.caughtUp && !p.CaughtUp {
		w.violation("R4: caught up no more")
	}
	if p.CaughtUp && !pr.caughtUp {
		w.say("caught up at %d", p.Checkpoint)
		if pr.saved.Sequence == 0 {
			w.checkComplete(v)
		}
	}
	pr.caughtUp = p.CaughtUp
	w.ledger.sees(v.Sequence(), w.twin)
	if p.CaughtUp {
		w.checkDelisted(v)
	}
}

func (w *world) lookAtTime(p projector.Progress) {
	w.mu.Lock()
	stored, ok := w.stored[p.Checkpoint+1]
	w.mu.Unlock()
	old := w.server.saved.Newest().Time // by the broker's clock of then, which may have been set back
	if ok && p.AsOf.After(stored.Add(slack)) && !p.AsOf.Equal(old) {
		w.violation("R8: as of %s, and the event %d of %s is not applied", p.AsOf.Sub(w.began), p.Checkpoint+1, stored.Sub(w.began))
	}
}

// checkDelisted is R11.
func (w *world) checkDelisted(v *readmodel.View) {
	for k, d := range w.ledger {
		if d.seen && v.Entry(k.List, k.ID) != nil {
			w.violation("R11: %s is shown at %d, and was delisted at %d", k, v.Sequence(), d.sequence)
			d.seen = false // once
		}
	}
}

// checkComplete is R3.
func (w *world) checkComplete(v *readmodel.View) {
	for name, was := range w.server.atStart.subjects {
		k, err := events.ParseSubject(name)
		now := w.twin.subjects[name]
		if err != nil || k.Kind != events.KindEntry || was.valid == 0 || was.loose || now.loose {
			continue
		}
		revision := int64(0)
		w.server.p.Inspect(func(m *readmodel.Model) { revision = m.Known(k) })
		switch {
		case revision < was.record.Revision:
			w.violation("R3: caught up with %s in revision %d, not %d", name, revision, was.record.Revision)
		case v.Entry(k.List, k.ID) == nil && !was.record.Removed && now.valid == was.valid:
			w.violation("R3: caught up without %s of %d", name, was.valid)
		}
	}
}

// checkCopied is R5, just before sequence is saved.
func (w *world) checkCopied(sequence uint64) {
	w.mu.Lock()
	js, stream := w.broker.js, w.stream()
	var look []uint64
	for s := range w.twin.rejected {
		if s <= sequence && !w.copied[s] {
			look = append(look, s)
		}
	}
	w.mu.Unlock()
	if len(look) == 0 {
		return
	}
	ctx := context.Background()
	r, err := rejected.Open(ctx, js, stream.Name)
	if err != nil {
		return // the broker is away
	}
	copies, _, err := r.List(ctx)
	if err != nil {
		return
	}
	there := map[uint64]bool{}
	for _, c := range copies {
		there[c.Sequence] = true
	}
	for _, s := range look {
		if !there[s] {
			if _, err := stream.Message(ctx, s); err != nil {
				continue // the stream has lost it, perhaps before it came
			}
		}
		w.mu.Lock()
		w.copied[s] = true
		same := w.broker.js == js
		w.mu.Unlock()
		if !there[s] && same {
			w.violation("R5: checkpoint %d is saved, and the rejected event %d is not copied", sequence, s)
		} else {
			w.tally.hit("event rejected")
		}
	}
}

// settleWithin bounds the recovery from all faults.
const settleWithin = 2 * time.Minute

// settle ends all faults, waits until all is well, and compares with the twin.
func (w *world) settle() {
	w.heal()
	why := "never looked"
	for end := time.Now().Add(settleWithin); why != "" && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		w.look()
		why = w.unwell()
	}
	switch {
	case len(w.bad) > 0:
	case why != "":
		w.violation("R6: %s", why)
	default:
		w.compare()
	}
}

// unwell says what is not well.
func (w *world) unwell() string {
	w.absorbAll()
	p := w.server.p.Progress()
	switch {
	case !p.CaughtUp || !p.Connected:
		return "not well: " + p.LastError
	case p.Checkpoint != w.twin.end:
		return fmt.Sprintf("at %d, and the stream ends at %d", p.Checkpoint, w.twin.end)
	case p.Saved != p.Checkpoint:
		return fmt.Sprintf("at %d, and saved %d", p.Checkpoint, p.Saved)
	case p.SubjectsNotErased > 0:
		return fmt.Sprintf("%d subjects are not erased", p.SubjectsNotErased)
	case len(w.unerased()) > 0:
		return fmt.Sprintf("not erased is what was said before the last removal of %q", w.unerased())
	case p.Rejected != w.copies():
		return fmt.Sprintf("%d copies of rejected events, and %d are counted", w.copies(), p.Rejected)
	case p.LastError != "" && p.Unpublished == 0:
		return "error: " + p.LastError
	}
	return ""
}

// unerased returns the subjects that have messages before a removal.
func (w *world) unerased() []string {
	return slices.DeleteFunc(w.twin.names(), func(name string) bool {
		m, err := w.stream().NextMessage(context.Background(), 1, name)
		return err != nil || m.Sequence >= w.twin.subjects[name].removed
	})
}

// copies counts the copies of rejected events.
func (w *world) copies() uint64 {
	info, err := leader.Stream{JS: w.broker.js, Name: events.RejectedStream}.Info(context.Background())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0
	}
	w.must(err)
	return info.State.Msgs
}

// compare compares the model with the twin, subject by subject, and the stream with what must be
// in it.
func (w *world) compare() {
	want := w.twin.inventory()
	var got map[string]readmodel.Digest
	w.server.p.Inspect(func(m *readmodel.Model) { got = inventory(m) })
	loose := func(name string) bool {
		return w.twin.subjects[name].loose
	}
	for name, digest := range want {
		if got[name] != digest && !loose(name) {
			w.violation("R6: %s is not as the stream has it", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !loose(name) {
			w.violation("R6: %s should not be there", name)
		}
	}
	w.checkStream()
	w.say("well at %d", w.twin.end)
	clear(w.stored)
}

// checkStream is R14.
func (w *world) checkStream() {
	for _, name := range w.twin.names() {
		s := w.twin.subjects[name]
		m, err := w.stream().LastMessage(context.Background(), name)
		if err != nil || m.Sequence != s.last {
			w.violation("R14: the last message of %s is %d (%v), not %d", name, m.Sequence, err, s.last)
		}
	}
}
