package projector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// The corpus of poison events through the real path: each is rejected with its reason or applied, exactly as
// the contract has it, the good events among them are not touched, and a replay from the start has the
// same digest (promises 1 and 8).
func TestPoisonCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "events", "testdata", "poison", "*"))
	if err != nil || len(files) < 200 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	s := newSystem(t)
	s.tune = func(c *Config) { c.History = 0 } // each state is kept, so that each is decoded again
	s.start()
	problems := map[uint64]string{} // by sequence
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		subject, rest, _ := strings.Cut(string(text), "\n")
		problem, payload, _ := strings.Cut(rest, "\n\n")
		seq := eventstest.PublishRaw(t, s.js, subject, []byte(payload))
		if problem != "" {
			problems[seq] = problem
		}
	}
	s.reach(s.publish(eventstest.Events(20, 3)...))
	s.progress("copies counted", func(p Progress) bool { return p.Rejected == uint64(len(problems)) && p.Lag == 0 })
	epoch := s.p.Progress().Epoch
	for seq, problem := range problems {
		if reason := s.copyOf(epoch, seq).Header.Get(events.HeaderReason); !strings.Contains(reason, problem) {
			t.Errorf("%d: reason %q, want %q", seq, reason, problem)
		}
	}
	digest := s.model.Digest()
	s.inspect()
	s.mustStop()
	s.path = filepath.Join(t.TempDir(), "registry.db") // a rebuild
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp && p.Rejected == uint64(len(problems)) })
	if again := s.model.Digest(); again != digest {
		t.Errorf("digest %s, a replay has %s", digest, again)
	}
}
