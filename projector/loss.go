package projector

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// scanRest is how many times as long as a scan of the stream's subjects took the next one waits.
const scanRest = 20

// loss is what watch knows of subjects that the stream has lost. Nothing in normal operation takes
// a subject's last message away, so a stream that has fewer subjects than it had, or fewer than the
// model, has lost some: by a message with Nats-Rollup: all, by a purge, or on a disk.
type loss struct {
	compared bool      // once since the start: other subjects may make up for one that was lost before
	highest  uint64    // the most subjects that the stream had; what it had at the last scan, if that missed none
	missed   int       // by the last scan
	next     time.Time // no scan before
	scan     chan scan // gives the result of the scan under way; nil: none
}

// scan is the result of a scan of the stream's subjects.
type scan struct {
	subjects uint64 // that the stream had when it began
	missed   int
	err      error
	next     time.Time // no scan before
}

// compareSubjects compares how many subjects the stream has with what it had, and with what the
// model had before the stream was asked. A stream that is not the model's own is left to the
// session.
//
// The model's number is the lower bound. The stream may have more: rejected events and removed
// donations have subjects too, and an operator may purge these. So fewer than before proves nothing
// until the subjects have been compared by name, and as many as the model has prove nothing at a
// start: they are compared then, once.
func (w *watcher) compareSubjects(ctx context.Context, info *jetstream.StreamInfo, inModel int) {
	status := w.Status()
	if w.cfg.ReadOnly || !status.CaughtUp || status.Frozen || lineage.Compare(info, w.checkpoint()) != nil {
		return
	}
	l, now := &w.loss, info.State.NumSubjects
	select {
	case done := <-l.scan:
		l.scan, l.next = nil, done.next
		if done.err != nil {
			break // asked again
		}
		l.compared, l.missed = true, done.missed
		if l.missed == 0 {
			l.highest = done.subjects
		}
	default:
	}
	switch {
	case l.compared && now >= l.highest && l.missed == 0:
		l.highest = now
	case l.scan == nil && time.Now().After(l.next):
		l.scan = make(chan scan, 1)
		w.scans.Go(func() { l.scan <- w.scanSubjects(ctx, now) })
	}
	w.showLoss(max(0, l.missed, inModel-int(now)))
}

// scanSubjects compares the subjects by name. It takes 5 s for each hundred thousand, while polls
// must go on.
func (w *watcher) scanSubjects(ctx context.Context, now uint64) scan {
	began := time.Now()
	missed, err := w.missingSubjects(ctx)
	rest := w.cfg.VerifyEvery
	if err == nil { // to wait for an answer that did not come was no work
		rest = max(rest, scanRest*time.Since(began))
	}
	return scan{now, missed, err, time.Now().Add(rest)}
}

// showLoss tells the operator how many subjects are missing.
func (w *watcher) showLoss(lost int) {
	before := w.Progress().SubjectsLost
	if lost == before {
		return
	}
	sentence := ""
	if lost > 0 {
		sentence = fmt.Sprintf("The stream %s has lost %d subjects that the registry knows; what they said is still served. "+
			"registry recover publishes it again.", w.cfg.Stream, lost)
	}
	switch {
	case before == 0:
		w.log.Error("the stream has lost subjects; what they said is still served, and registry recover publishes it again", "subjects", lost)
	case lost == 0:
		w.log.Info("the stream has every subject again")
	}
	w.tracker.setTrouble(troubleLoss, sentence)
	w.tracker.update(func(p *Progress) { p.SubjectsLost = lost })
}

// missingSubjects counts the subjects that have a state in the model and no message in the stream.
// The model is read first: what is applied meanwhile is not looked for.
func (w *watcher) missingSubjects(ctx context.Context) (int, error) {
	var all *readmodel.Inventory
	w.Inspect(func(m *readmodel.Model) { all = m.Inventory() })
	seed := maphash.MakeSeed()
	missing := make(map[uint64]struct{}, all.Len())
	for s := range all.Subjects() {
		missing[maphash.String(seed, s.String())] = struct{}{}
	}
	for offset, total := 0, 0; ; {
		page, n, err := w.stream.Subjects(ctx, ">", offset)
		if err != nil {
			return 0, err
		}
		if n < total {
			return 0, errors.New("subjects were purged while they were read") // a page may have skipped some
		}
		for subject := range page {
			delete(missing, maphash.String(seed, subject))
		}
		if offset, total = offset+len(page), n; len(page) == 0 || offset >= total {
			return len(missing), nil
		}
	}
}
