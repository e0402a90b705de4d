package main

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

func contains(body []byte, text string) bool { return bytes.Contains(body, []byte(text)) }

// The names and help texts keep to Prometheus's conventions, before and after the projector runs.
func TestMetricsAreWellNamed(t *testing.T) {
	l := newLive()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(newProjectionCollector(l)); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 4 {
		t.Errorf("%d metrics before the projector runs, want the entries of three lists and the index: %v", n, err)
	}
	l.projector.Store(projector.New(projector.Config{Model: readmodel.New()})) // Progress may be asked before Run
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 4+len(newProjectionCollector(l).numbers) {
		t.Errorf("%d metrics once there is a projector: %v", n, err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
