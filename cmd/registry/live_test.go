package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"example.org/registry/readmodel"
)

// noticed is a context that tells when somebody begins to wait for its end.
type noticed struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func (n *noticed) Done() <-chan struct{} {
	n.once.Do(func() { close(n.waiting) })
	return n.Context.Done()
}

// Who waits for a sequence waits on over a rebuild: the model that was replaced grows no more.
func TestAwaitOverGenerations(t *testing.T) {
	l := newLive()
	got := make(chan uint64, 1)
	asked := &noticed{Context: t.Context(), waiting: make(chan struct{})}
	go func() {
		defer close(got)
		v, err := l.Await(asked, 5)
		if err != nil {
			t.Error(err)
			return
		}
		got <- v.Sequence()
	}()
	<-asked.waiting // on the first generation
	m := readmodel.New()
	l.show(newGeneration(generation{model: m}))
	l.show(newGeneration(generation{model: m}))
	m.Apply(nil, 7)
	if seq := <-got; seq != 7 {
		t.Errorf("view at %d", seq)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Await(ctx, 8); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}
