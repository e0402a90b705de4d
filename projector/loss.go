package projector

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// scanRest is the wait between two scans of the stream's subjects, in multiples of the time that
// the last scan took.
const scanRest = 20

// loss is watch's knowledge of subjects that the stream has lost: by a purge, or on a disk. Normal
// operation never removes a subject's last message.
type loss struct {
	next time.Time      // no scan before
	scan chan time.Time // delivers the next of the current scan; nil if there is none
}

// compareSubjects has the subjects compared by name where the stream has fewer than are known to be
// in it. It may have more: those of rejected events, and markers. The view is from before the
// request.
func (w *watcher) compareSubjects(ctx context.Context, info *jetstream.StreamInfo, v *readmodel.View) {
	p := w.Progress()
	if w.cfg.ReadOnly || !p.CaughtUp || !p.Compared || p.Frozen() {
		return
	}
	l := &w.loss
	select {
	case l.next = <-l.scan:
		l.scan = nil
	default:
	}
	if l.scan == nil && time.Now().After(l.next) && info.State.NumSubjects < uint64(v.NumSubjects()-v.Lacking()) {
		l.scan = make(chan time.Time, 1)
		w.scans.Go(func() { l.scan <- w.findLost(ctx) })
	}
}

// findLost compares the subjects by name, and returns when the next scan may begin. It takes 5 s for
// each 100,000, and polls must go on, so it runs beside them.
func (w *watcher) findLost(ctx context.Context) time.Time {
	began := time.Now()
	rest := w.cfg.VerifyEvery
	lost, err := w.missingSubjects(ctx)
	if err == nil && len(lost) > 0 {
		err = w.tellLost(ctx, lost)
	}
	if err == nil { // waiting for a missing reply was no work
		rest = max(rest, scanRest*time.Since(began))
	}
	return time.Now().Add(rest)
}

// tellLost tells the session which subjects the stream lacks.
func (p *Projector) tellLost(ctx context.Context, lost []events.Subject) error {
	select {
	case p.lost <- lost:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// missingSubjects returns the subjects that have a state in the model and no message in the stream.
// It reads the model first, so it ignores subjects that are applied later.
func (w *watcher) missingSubjects(ctx context.Context) (lost []events.Subject, err error) {
	missing := map[string]events.Subject{}
	w.Inspect(func(m *readmodel.Model) {
		for _, k := range m.After(0) {
			missing[k.String()] = k
		}
	})
	for offset, total := 0, 0; ; {
		page, n, err := w.stream.Subjects(ctx, ">", offset)
		if err != nil {
			return nil, err
		}
		if n < total {
			return nil, errors.New("subjects were purged while they were read") // a page may have skipped some
		}
		for subject := range page {
			delete(missing, subject)
		}
		if offset, total = offset+len(page), n; len(page) == 0 || offset >= total {
			break
		}
	}
	for _, k := range missing {
		lost = append(lost, k)
	}
	return lost, nil
}
