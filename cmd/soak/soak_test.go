//go:build unix && !race

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary be the broker. The replicas are processes: the race detector would not see them, so
// the test is left out with it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == brokerWord {
		os.Exit(beBroker(os.Args[2], os.Args[3], os.Stdin, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// TestShort is the soak in little, so that the command cannot rot. So short a time says nothing about memory.
func TestShort(t *testing.T) {
	var out, complaints strings.Builder
	status := run(t.Context(), []string{"--for=12s", "--every=3s", "--entries=300", "--rate=100", "--growth=50"}, &out, &complaints)
	if status != 0 {
		t.Errorf("status %d", status)
	}
	t.Logf("%s%s", &out, &complaints)
	for _, done := range []string{"kills ", "poison events ", "rebuild ", "hostile requests ", "least in the second quarter "} {
		if !strings.Contains(out.String(), done) {
			t.Errorf("no %sin the summary", done)
		}
	}
}

// TestInterrupted: ctrl-C whenever it comes ends everything that was started, and leaves nothing.
func TestInterrupted(t *testing.T) {
	binary, err := program(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var out, complaints strings.Builder
	if status := run(ctx, []string{"--entries=200", "--registry=" + binary}, &out, &complaints); status != 1 || complaints.String() != "soak: interrupted\n" {
		t.Errorf("status %d: %s%s", status, &out, &complaints)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--rate=0"}, {"--for=1m"}, {"--nonsense"}, {"more"}} {
		var complaints strings.Builder
		if status := run(t.Context(), args, &complaints, &complaints); status != 2 || complaints.Len() == 0 {
			t.Errorf("%q: status %d, %q", args, status, &complaints)
		}
	}
}
