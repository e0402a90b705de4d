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

// scanRest is the wait between two scans of the stream's subjects, in multiples of the time that
// the last scan took.
const scanRest = 20

// loss is watch's knowledge of subjects that the stream has lost. Normal operation never removes a
// subject's last message. So a stream with fewer subjects than before, or than the model, has lost
// some: by a message with Nats-Rollup: all, by a purge, or on a disk.
type loss struct {
	compared bool      // the subjects were compared by name once since the start: before, new subjects may hide lost ones
	highest  uint64    // the most subjects that the stream had, or its number at the last scan if that found none missing
	missed   int       // missing subjects at the last scan
	next     time.Time // no scan before
	scan     chan scan // delivers the result of the current scan; nil if there is none
}

// scan is the result of a scan of the stream's subjects.
type scan struct {
	subjects uint64 // number of the stream's subjects when the scan began
	missed   int
	err      error
	next     time.Time // no scan before
}

// compareSubjects compares the stream's number of subjects with its earlier number, and with the
// model's number from before the request. If the stream is another one, the session handles that.
//
// The model's number is the lower bound. The stream may have more: rejected events and removed
// donations have subjects too, and an operator may purge these. So fewer subjects than before prove
// nothing until the subjects have been compared by name. At a start, even as many as the model has
// prove nothing: they are compared then, once.
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

// scanSubjects compares the subjects by name. It takes 5 s for each 100,000, and polls must go on,
// so it runs beside them.
func (w *watcher) scanSubjects(ctx context.Context, now uint64) scan {
	began := time.Now()
	missed, err := w.missingSubjects(ctx)
	rest := w.cfg.VerifyEvery
	if err == nil { // waiting for a missing reply was no work
		rest = max(rest, scanRest*time.Since(began))
	}
	return scan{now, missed, err, time.Now().Add(rest)}
}

// showLoss reports the number of missing subjects to the operator.
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
// It reads the model first, so it ignores subjects that are applied later.
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
