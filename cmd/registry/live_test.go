package main

import (
	"context"
	"errors"
	"testing"

	"example.org/registry/readmodel"
)

// Who waits for a sequence waits on over a rebuild: the model that was replaced grows no more.
func TestAwaitOverGenerations(t *testing.T) {
	l := newLive()
	got := make(chan uint64, 1)
	go func() {
		v, err := l.Await(t.Context(), 5)
		if err != nil {
			t.Error(err)
		}
		got <- v.Sequence()
	}()
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
