package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"example.org/registry/readmodel"
)

// Reader gives access to the read model. Any goroutine may call it.
type Reader interface {
	// View returns the newest state of the model, never nil.
	View() *readmodel.View
	// Await returns the first state that it sees at seq or after it, or ctx's error.
	Await(ctx context.Context, seq uint64) (*readmodel.View, error)
}

// Readiness is the state of the projector. The zero value is not ready.
type Readiness struct {
	Ready  bool   // the model has caught up once (httpapi/CONTRACT.md#readiness)
	Reason string // why it is not ready, in English, for /readyz
	Frozen bool   // the projector applies nothing more, so waiting for a sequence is useless
	// Stopping makes /readyz fail, so that no new clients come. Current requests are served.
	Stopping bool
	AsOf     time.Time // the last moment at which the model is known to be complete
}

// Health decides whether lists, checks and donations are served. The public and the admin listener share one. It does not change
// after construction; any goroutine may use it.
type Health struct {
	Reader Reader
	// Readiness is called once per request; it must be as cheap as an atomic load.
	Readiness func() Readiness
	// MaxStaleness is the greatest age of AsOf at which the model is served. Zero means any age.
	MaxStaleness time.Duration
	// MinEntries is how many entries the lists must show in all before anything is served. Zero means no minimum.
	MinEntries int
}

// View returns the view to serve and its readiness, or an error with the reason why nothing may be served. It reads the readiness
// before the view, so that AsOf never promises more than the view has.
func (h *Health) View() (*readmodel.View, Readiness, error) {
	readiness := h.Readiness()
	view := h.Reader.View()
	if err := h.admit(view, readiness); err != nil {
		return nil, readiness, err
	}
	return view, readiness, nil
}

// admit returns why a view may not be served, or nil.
func (h *Health) admit(view *readmodel.View, readiness Readiness) error {
	if !readiness.Ready {
		return loading(readiness.Reason)
	}
	if h.MaxStaleness > 0 && time.Since(readiness.AsOf) > h.MaxStaleness {
		return loading("out of touch with the stream since " + formatTime(readiness.AsOf))
	}

	entries := view.Total()
	if h.MinEntries > 0 && entries == 0 {
		return errEmpty
	}
	if entries < h.MinEntries {
		return loading(fmt.Sprintf("%d entries, fewer than the %d required", entries, h.MinEntries))
	}
	return nil
}

// ready returns 1 while lists, checks and donations are served, else 0.
func (h *Health) ready() int64 {
	if _, _, err := h.View(); err != nil {
		return 0
	}
	return 1
}

// minSeqHeader asks for an answer at a sequence or after it (httpapi/CONTRACT.md#sequences).
const minSeqHeader = "Registry-Min-Sequence"

const (
	sequenceWait       = 2 * time.Second // how long a request waits for a sequence
	maxSequenceWaiting = 256             // requests that wait at once
)

// loadView loads the state to answer from: the newest one or, if the client asks for a sequence, a state at it or after it. The
// caller has checked the parameters, since a bad one is 400 even while loadView would give 503.
func (x *exchange) loadView() (*readmodel.View, error) {
	// The header is read like a parameter: an empty one counts as absent, a repeated one is wrong.
	p := params{values: url.Values(x.c.Request.Header)}
	text := p.readTrimmed(minSeqHeader)
	atLeast, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		p.refuse(minSeqHeader)
	}
	if p.err != nil {
		return nil, p.err
	}

	if text != "" {
		x.waits = true // no cache may keep the answer
	}
	return x.loadViewAt(atLeast)
}

// loadViewAt loads a state at a sequence or after it. It waits at most sequenceWait for one.
func (x *exchange) loadViewAt(atLeast uint64) (*readmodel.View, error) {
	// Wait before asking Health.View, which may refuse the present state but accept the awaited one.
	readiness := x.api.health.Readiness()
	isBehind := x.api.health.Reader.View().Sequence() < atLeast
	canCatchUp := readiness.Ready && !readiness.Frozen
	if isBehind && canCatchUp {
		if err := x.awaitSequence(atLeast); err != nil {
			return nil, err
		}
	}

	view, readiness, err := x.api.health.View()
	if err != nil {
		return nil, err
	}
	if view.Sequence() < atLeast { // the projector is frozen, or another model, with an older state, has replaced the awaited one
		return nil, errNotReached
	}

	x.view = view
	x.asOf = readiness.AsOf
	return view, nil
}

// awaitSequence waits until the model has reached a sequence. It returns errBusy if too many requests wait, or errNotReached after
// sequenceWait.
func (x *exchange) awaitSequence(seq uint64) error {
	if !x.api.sequenceWaiting.enter() {
		return errBusy
	}
	defer x.api.sequenceWaiting.leave()

	ctx := x.c.Request.Context()
	bounded, cancel := context.WithTimeout(ctx, sequenceWait)
	defer cancel()
	_, err := x.api.health.Reader.Await(bounded, seq)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // sequenceWait is over
		return errNotReached
	}
	return nil
}
