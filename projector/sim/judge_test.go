package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector"
	"example.org/registry/projector/lineage"
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
	w.lookAtFreeze(p)
	if pr.caughtUp && !p.CaughtUp {
		w.violation("R4: caught up no more")
	}
	if p.CaughtUp && !pr.caughtUp {
		w.say("caught up at %d", p.Checkpoint)
		if !w.trouble && pr.saved.Sequence == 0 {
			w.checkComplete(v)
		}
	}
	pr.caughtUp = p.CaughtUp
	if !w.trouble {
		w.ledger.sees(v.Sequence(), w.twin)
	}
	if p.CaughtUp {
		w.checkDelisted(v)
	}
}

func (w *world) lookAtTime(p projector.Progress) {
	w.mu.Lock()
	stored, ok := w.stored[p.Checkpoint+1]
	w.mu.Unlock()
	if ok && !w.trouble && p.AsOf.After(stored.Add(slack)) {
		w.violation("R8: as of %s, and the event %d of %s is not applied", p.AsOf.Sub(w.began), p.Checkpoint+1, stored.Sub(w.began))
	}
}

func (w *world) lookAtFreeze(p projector.Progress) {
	pr := w.server
	switch {
	case p.Frozen():
		w.tally.hit("frozen: " + p.FrozenBy)
		if !pr.frozen {
			w.say("frozen: %s", p.LastError)
			if !w.mayFreeze() {
				w.violation("R4: frozen without a reason: %s", p.LastError)
			}
		}
	case pr.frozen && !w.undone && w.trouble:
		w.violation("R4: thawed, and the stream is not as it was")
	}
	pr.frozen = p.Frozen()
}

// mayFreeze reports whether something was done to the stream that the server has read.
func (w *world) mayFreeze() bool {
	if !w.trouble {
		return false
	}
	for _, k := range w.known {
		if k > w.rewoundTo || w.remade {
			return true
		}
	}
	return w.remade || w.spoiled
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
	js, stream, trouble := w.broker.js, w.stream(), w.trouble
	var look []uint64
	for s := range w.twin.rejected {
		if s <= sequence && !w.copied[s] && !trouble {
			look = append(look, s)
		}
	}
	w.mu.Unlock()
	if len(look) == 0 {
		return
	}
	ctx := context.Background()
	info, err := stream.Info(ctx)
	if err != nil {
		return // the broker is away
	}
	all, err := rejected.Sequences(ctx, js, lineage.Of(info).StreamEpoch)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	there := map[uint64]bool{}
	for _, s := range all {
		there[s] = true
	}
	for _, s := range look {
		if !there[s] {
			if _, err := stream.Message(ctx, s); err != nil {
				continue // the stream has lost it, perhaps before it came
			}
		}
		w.mu.Lock()
		w.copied[s] = true
		same := !w.trouble && w.broker.js == js
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

// settle ends all faults, waits until all is well, and compares with the twin. A server that is
// frozen rightly gets help from an operator.
func (w *world) settle() {
	w.heal()
	why := "never looked"
	for end := time.Now().Add(settleWithin); why != "" && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		w.look()
		why = w.unwell()
	}
	frozen := w.frozen()
	switch {
	case len(w.bad) > 0:
	case frozen && w.trouble:
		if w.mustThaw() {
			w.violation("R4: the stream is as it was, and the server stays frozen: %s", w.server.p.Progress().LastError)
			return
		}
		w.help()
	case why != "" && w.unprovable():
		w.excuse()
	case why != "":
		w.violation("R6: %s", why)
	case w.mustStayFrozen:
		w.violation("R4: the server was frozen, and has forgotten it")
	default:
		w.compare()
	}
}

// unwell says what is not well; frozen counts as well where it is right.
func (w *world) unwell() string {
	w.absorbAll()
	p := w.server.p.Progress()
	switch {
	case p.Frozen() && w.trouble:
		if w.mustThaw() {
			return "frozen"
		}
		return ""
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
	var wrong []string
	loose := func(name string) bool {
		return w.twin.subjects[strings.TrimPrefix(name, readmodel.TombstonePrefix)].loose
	}
	for name, digest := range want {
		if got[name] != digest && !loose(name) {
			wrong = append(wrong, "R6: "+name+" is not as the stream has it")
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !loose(name) {
			wrong = append(wrong, "R6: "+name+" should not be there")
		}
	}
	if len(wrong) > 0 && w.unprovable() {
		w.excuse()
		return
	}
	for _, sentence := range wrong {
		w.violation("%s", sentence)
	}
	w.checkStream()
	w.say("well at %d", w.twin.end)
	w.calm()
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

// unprovable reports whether nothing in the stream tells that it was put back: every message that
// has a sequence which the server had read before, and another content, is gone.
func (w *world) unprovable() bool {
	if !w.trouble || w.remade || w.mustStayFrozen {
		return false
	}
	for _, k := range w.known {
		if k <= w.rewoundTo {
			continue
		}
		if _, err := w.stream().Message(context.Background(), k); err == nil {
			continue
		}
		m, err := w.stream().NextMessage(context.Background(), w.rewoundTo+1, ">")
		if err != nil || m.Sequence > k || w.setBack {
			return true
		}
	}
	return false
}

func (w *world) excuse() {
	w.say("excused: nothing tells that the stream was put back")
	w.tally.hit("excused")
	w.help()
}

// mustThaw reports whether a server that is frozen has no reason for it any more.
func (w *world) mustThaw() bool {
	if !w.undone || !w.untouched || w.remade || w.spoiled {
		return false
	}
	_, err := w.stream().Message(context.Background(), w.server.p.Progress().Checkpoint)
	return err == nil
}

// help is the operator's: the stream is accepted as it is, as a new history, sometimes after what
// the server knows to be delisted has been published again. The server is rebuilt.
func (w *world) help() {
	w.say("the operator helps")
	if w.spoiled {
		w.unspoil()
	}
	if w.rng.IntN(2) == 0 {
		for k, d := range w.ledger {
			if d.seen && !w.twin.subjects[k.String()].record.Removed {
				data := events.Delisting{Revision: 1, Time: time.Unix(1, 0).UTC(), List: k.List, EntryID: k.ID}
				w.send(w.event(data), data)
			}
		}
	}
	w.stop(w.rng.IntN(2) == 0)
	w.setTwin(w.replay())
	w.ledger.accepted(w.twin)
	w.calm()
	w.rebuild()
	w.settle()
}

// calm ends the time in which the stream was another one.
func (w *world) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble, w.remade, w.undone, w.mustStayFrozen, w.spoiled = false, false, false, false, false
	w.known, w.rewoundTo, w.untouched = nil, w.twin.end, true
	clear(w.stored)
}

// noteTrouble notes where the server stands before something is done to the stream.
func (w *world) noteTrouble() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble, w.undone = true, false
	w.known = append(w.known, w.saved())
	if w.server != nil {
		w.known = append(w.known, w.server.p.Progress().Checkpoint)
	}
}

func (w *world) setTwin(t *twin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.twin = t
	clear(w.stored)
	clear(w.copied)
	for s := range t.rejected { // those before the checkpoint are not copied again
		w.copied[s] = true
	}
}
