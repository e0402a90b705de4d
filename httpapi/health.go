package httpapi

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/httpapi/body"
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
		return notReady(readiness.Reason)
	case h.MaxStaleness > 0 && time.Since(readiness.AsOf) > h.MaxStaleness:
		return notReady("out of touch with the stream since " + body.Time(readiness.AsOf))
	case h.MinEntries > 0 && view.Total() == 0:
		return notReady("the registry is empty: lists and checks are answered once somebody is listed; --min-entries 0 answers them now")
	case h.MinEntries > 0 && view.Total() < h.MinEntries:
		return notReady(fmt.Sprintf("%d entries, fewer than the %d required", view.Total(), h.MinEntries))
	}
	return nil
}

// IsEmpty reports whether the registry has no entries yet, which is why nothing is served.
func (h *Health) IsEmpty() bool {
	return h.MinEntries > 0 && h.Readiness().Ready && h.Reader.View().Total() == 0
}

// notReady is the reason why the read model may not be served. Clients see errLoading.
type notReady string

func (n notReady) Error() string {
	if n == "" {
		return "not caught up with the stream"
	}
	return string(n)
}

func (notReady) Is(target error) bool { return target == errLoading }
