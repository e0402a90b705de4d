package httpapi

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Reader gives the state of the read model to answer from. Any goroutine may call it.
type Reader interface {
	// View is the newest state, never nil.
	View() *readmodel.View
	// Await is the first state seen at seq or beyond it, or ctx's error.
	Await(ctx context.Context, seq uint64) (*readmodel.View, error)
}

// State is what the projection says of itself. The zero value is not ready.
type State struct {
	Ready  bool   // has caught up once (API contract, operators)
	Reason string // while not ready: why, in English, for /readyz
	Frozen bool   // applies nothing any more: waiting for a sequence is in vain
	// Stopping is said by /readyz alone, so that nobody is sent here any more; who is here already
	// is answered to the end.
	Stopping bool
	AsOf     time.Time // the last moment at which the model was known to be complete
}

// Health decides whether lists, checks and donations are answered. One is shared by the public
// and the admin listener. Fixed after construction; any goroutine may use it.
type Health struct {
	Reader Reader
	// State is asked once a request: it is to be an atomic load.
	State func() State
	// MaxStaleness is how old AsOf may grow before answers stop. Zero: any age.
	MaxStaleness time.Duration
	// MinEntries is how many entries the lists must show in all. Zero: none.
	MinEntries int
}

// look is the view to answer from and the state it is under, or the reason why nothing may be
// answered (a notReady). The state is read before the view: what AsOf promises, the view has.
func (h *Health) look() (*readmodel.View, State, error) {
	state := h.State()
	view := h.Reader.View()
	switch {
	case !state.Ready:
		return nil, state, notReady(state.Reason)
	case h.MaxStaleness > 0 && time.Since(state.AsOf) > h.MaxStaleness:
		return nil, state, notReady("out of touch with the stream since " + stamp(state.AsOf))
	case h.MinEntries > 0 && shown(view) < h.MinEntries:
		return nil, state, notReady(fmt.Sprintf("%d entries, fewer than the %d required", shown(view), h.MinEntries))
	}
	return view, state, nil
}

// notReady is why the read model is not fit to answer from; to readers it is errLoading.
type notReady string

func (n notReady) Error() string {
	if n == "" {
		return "not caught up with the stream"
	}
	return string(n)
}

func (notReady) Is(target error) bool { return target == errLoading }

// shown is how many entries the lists show in all.
func shown(v *readmodel.View) (n int) {
	for _, l := range events.Lists() {
		n += v.Entries(l)
	}
	return n
}

// stamp is a time as the API writes it: RFC 3339 in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
