package httpapi

import (
	"cmp"
	"context"
	"fmt"
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

// Readiness is the projection's own status. The zero value is not ready.
type Readiness struct {
	Ready  bool   // it has caught up once (httpapi/CONTRACT.md#readiness)
	Reason string // reason for not being ready, in English, for /readyz
	Frozen bool   // nothing more is applied: waiting for a sequence is useless
	// Stopping makes /readyz fail, so that no new clients come. Current requests are served.
	Stopping bool
	AsOf     time.Time // the last moment at which the model is known to be complete
}

// Health decides whether lists, checks and donations are served. The public and the admin listener
// share one. It does not change after construction; any goroutine may use it.
type Health struct {
	Reader Reader
	// Readiness is called once per request; it must be as cheap as an atomic load.
	Readiness func() Readiness
	// MaxStaleness is the maximum age of AsOf at which responses are sent. Zero means any age.
	MaxStaleness time.Duration
	// MinEntries is how many entries the lists must show in all. Zero means none.
	MinEntries int
}

// View returns the view to serve and its readiness, or the reason why nothing may be served
// (promise 7, readmodel/doc.go). It reads the readiness before the view, so that AsOf never
// promises more than the view has.
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
	switch {
	case !readiness.Ready:
		return loading(readiness.Reason)
	case h.MaxStaleness > 0 && time.Since(readiness.AsOf) > h.MaxStaleness:
		return loading("out of touch with the stream since " + FormatTime(readiness.AsOf))
	case h.MinEntries > 0 && view.Total() == 0:
		return loading("the registry is empty: lists and checks are answered once somebody is listed; --min-entries 0 answers them now")
	case h.MinEntries > 0 && view.Total() < h.MinEntries:
		return loading(fmt.Sprintf("%d entries, fewer than the %d required", view.Total(), h.MinEntries))
	}
	return nil
}

// IsEmpty reports whether the registry has no entries yet, which is why nothing is served.
func (h *Health) IsEmpty() bool {
	return h.MinEntries > 0 && h.Readiness().Ready && h.Reader.View().Total() == 0
}

// loading returns errLoading with its reason, for /readyz.
func loading(reason string) error {
	return notReady(cmp.Or(reason, errLoading.reason), errLoading.retryAfter)
}

// minSeqHeader asks for an answer at a sequence or after it (httpapi/CONTRACT.md#sequences).
const minSeqHeader = "Registry-Min-Sequence"

const (
	sequenceWait       = 2 * time.Second
	maxSequenceWaiting = 256
)

// loadView loads the state to answer from: the newest one or, where the client asks for a sequence, one that has it. The
// parameters have been checked. Errors: a failure, or that of the request's context.
func (x *exchange) loadView() error {
	atLeast, given, err := minSequence(x.c.Request.Header[minSeqHeader])
	if err != nil {
		return err
	}
	x.atSequence = given
	return x.loadViewAt(atLeast)
}

// loadViewAt loads a state at a sequence or after it, for which it waits a little.
func (x *exchange) loadViewAt(atLeast uint64) error {
	view, readiness, err := x.health.View()
	if err != nil {
		return err
	}
	if view.Sequence() < atLeast {
		if readiness.Frozen {
			return errNotReached
		}
		if err := x.awaitSequence(atLeast); err != nil {
			return err
		}
		if view, readiness, err = x.health.View(); err != nil { // the new view may not be good enough to serve
			return err
		}
		if view.Sequence() < atLeast { // another model has replaced it
			return errNotReached
		}
	}

	x.view, x.asOf = view, readiness.AsOf
	return nil
}

func (x *exchange) awaitSequence(sequence uint64) error {
	if !x.sequenceWaiting.enter() {
		return errBusy
	}
	defer x.sequenceWaiting.leave()

	ctx := x.c.Request.Context()
	bounded, cancel := context.WithTimeout(ctx, sequenceWait)
	defer cancel()
	if _, err := x.health.Reader.Await(bounded, sequence); err != nil && ctx.Err() == nil {
		return errNotReached
	}
	return ctx.Err()
}

// minSequence reads the values of Registry-Min-Sequence. As with parameters, an empty one is absent, and a repeated one is
// wrong.
func minSequence(values []string) (sequence uint64, given bool, err error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0, false, nil
	}
	if sequence, err = strconv.ParseUint(values[0], 10, 64); err != nil || len(values) > 1 {
		return 0, false, invalid(minSeqHeader)
	}
	return sequence, true, nil
}
