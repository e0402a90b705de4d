package main

import (
	"context"
	"sync/atomic"

	"example.org/registry/httpapi"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// live is what the listeners see of the rest of the process while it starts, runs and stops. Any
// goroutine may use it; each part is set once it exists.
type live struct {
	model     atomic.Pointer[readmodel.Model]     // empty until the saved state is loaded
	projector atomic.Pointer[projector.Projector] // nil until then
	brokerURL atomic.Pointer[string]              // of the embedded broker; nil or empty without a listener
	storage   atomic.Pointer[storage]             // for the status page; nil until it is open
	indexer   atomic.Pointer[readmodel.Indexer]   // nil until then
	stopping  atomic.Bool
	history   httpapi.History // of the lag
}

func newLive() *live {
	l := &live{}
	l.model.Store(readmodel.New())
	return l
}

// View is the newest state, of the empty model while the saved one is being loaded.
func (l *live) View() *readmodel.View { return l.model.Load().View() }

// Await waits on the model of this moment. While that is the empty one nobody gets here: the
// state below is not ready.
func (l *live) Await(ctx context.Context, seq uint64) (*readmodel.View, error) {
	return l.model.Load().Await(ctx, seq)
}

// progress is false until the projector exists.
func (l *live) progress() (projector.Progress, bool) {
	p := l.projector.Load()
	if p == nil {
		return projector.Progress{}, false
	}
	return p.Progress(), true
}

// lag is how many stream sequences wait to be dealt with; 0 until the projector runs.
func (l *live) lag() uint64 {
	p, _ := l.progress()
	return p.Lag
}
