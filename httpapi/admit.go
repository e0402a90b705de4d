package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"example.org/registry/readmodel"
)

// The bounds on requests that wait for a sequence (API contract, parameters).
const (
	maxMinWait   = 2 * time.Second
	maxWaiting   = 256
	minSeqHeader = "Registry-Min-Sequence"
)

// position is where an answer is computed: one immutable state of the model.
type position struct {
	view  *readmodel.View
	heads *heads
	// fresh says that the reader asked for a sequence: such answers are not to be cached.
	fresh bool
	// staleSince is when the data was last known to be complete, if a page of the site is to say so; else zero.
	staleSince time.Time
}

// admitter decides whether a request may be answered, and from which state.
type admitter struct {
	health  *Health
	heads   headCache
	wait    time.Duration // maxMinWait, less in tests
	waiting atomic.Int64
}

// admit is called once the parameters are known to be good. Its errors: a bad header, errLoading,
// errBehind, errBusy, or that of the request's context.
func (a *admitter) admit(r *http.Request) (position, error) {
	atLeast, fresh, err := minSequence(r.Header[minSeqHeader])
	if err != nil {
		return position{}, err
	}
	view, state, err := a.health.look()
	if err != nil {
		return position{}, err
	}
	if view.Sequence() < atLeast {
		if state.Frozen {
			return position{}, errBehind
		}
		if view, err = a.await(r.Context(), atLeast); err != nil {
			return position{}, err
		}
	}
	return position{view: view, heads: a.heads.of(view, state.AsOf), fresh: fresh}, nil
}

// await waits for a state at seq or beyond it.
func (a *admitter) await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > maxWaiting {
		return nil, errBusy
	}
	bounded, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	view, err := a.health.Reader.Await(bounded, seq)
	switch {
	case err == nil:
		return view, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, errBehind
	}
}

// minSequence reads the header Registry-Min-Sequence; given says whether it is there. As with
// parameters, an empty one is absent, and one given twice is wrong.
func minSequence(lines []string) (seq uint64, given bool, err error) {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "" {
		return 0, false, nil
	}
	if len(lines) > 1 || !digits(lines[0]) {
		return 0, false, invalid(minSeqHeader)
	}
	if seq, err = strconv.ParseUint(lines[0], 10, 64); err != nil {
		return 0, false, invalid(minSeqHeader)
	}
	return seq, true, nil
}

// ready is 1 while lists, checks and donations are answered, for the metrics.
func (a *admitter) ready() float64 {
	if _, _, err := a.health.look(); err != nil {
		return 0
	}
	return 1
}
