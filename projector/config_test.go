package projector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// runOnce runs a projector that must end by itself and returns its error.
func (s *system) runOnce(tune func(*Config)) error {
	s.t.Helper()
	s.tune = tune
	s.open()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer s.nc.Close()
	err := s.p.Run(ctx)
	if ctx.Err() != nil {
		s.t.Error("Run did not end by itself")
	}
	return errors.Join(err, s.store.Close())
}

// A stream that would lose events is refused, and left as it is.
func TestUnusableStreams(t *testing.T) {
	tests := map[string]func(*jetstream.StreamConfig){
		"MaxAge":    func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"MaxMsgs":   func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 },
		"discard":   func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"retention": func(c *jetstream.StreamConfig) { c.Retention, c.AllowAtomicPublish = jetstream.InterestPolicy, false },
	}
	for word, change := range tests {
		t.Run(word, func(t *testing.T) {
			s := newSystem(t)
			eventstest.Stream(t, s.js, change)
			before := s.info(events.DefaultStream).Config
			err := s.runOnce(nil)
			if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Run: %v", err)
			}
			if after := s.info(events.DefaultStream).Config; after.MaxAge != before.MaxAge || after.Discard != before.Discard {
				t.Error("the stream has been altered")
			}
		})
	}
}

func TestStreamThatCannotBeMade(t *testing.T) {
	s := newSystem(t)
	_, err := s.js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"registry.scammers.>"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.runOnce(nil); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("Run: %v", err)
	}
	alone := newSystemIn(t)
	if err := alone.runOnce(func(c *Config) { c.Replicas = 3 }); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("Run with replicas and without a cluster: %v", err)
	}
}

// The demonstration and the real registry are kept apart.
func TestDemoMark(t *testing.T) {
	marked := func(c *jetstream.StreamConfig) { c.Metadata[events.MetadataDemo] = "true" }
	unmarked := func(*jetstream.StreamConfig) {}
	tests := []struct {
		name   string
		change func(*jetstream.StreamConfig)
		events int
		demo   bool
		refuse bool
	}{
		{"marked, real", marked, 0, false, true},
		{"marked, demo", marked, 3, true, false},
		{"unmarked with events, demo", unmarked, 3, true, true},
		{"unmarked and empty, demo", unmarked, 0, true, false},
		{"unmarked, real", unmarked, 3, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSystem(t)
			eventstest.Stream(t, s.js, test.change)
			s.publish(eventstest.Events(test.events, 1)...)
			if test.refuse {
				if err := s.runOnce(func(c *Config) { c.Demo = test.demo }); err == nil || !strings.Contains(err.Error(), "demo") {
					t.Errorf("Run: %v", err)
				}
				return
			}
			s.tune = func(c *Config) { c.Demo = test.demo }
			s.start()
			s.reach(uint64(test.events))
		})
	}
	t.Run("made", func(t *testing.T) {
		s := newSystem(t)
		s.tune = func(c *Config) { c.Demo = true }
		s.start()
		s.progress("caught up", func(p Progress) bool { return p.CaughtUp })
		if got := s.info(events.DefaultStream).Config.Metadata[events.MetadataDemo]; got != "true" {
			t.Errorf("mark of a new stream: %q", got)
		}
	})
}

// Lesser differences are one warning each, once, and the stream is used.
func TestLesserDifferences(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) {
		c.MaxMsgsPerSubject, c.Storage, c.DenyDelete, c.AllowRollup = 1, jetstream.MemoryStorage, false, false
		c.Metadata = nil
	})
	s.start()
	s.reach(s.publish(eventstest.Events(3, 1)...))
	if err := s.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	s.reach(s.publish(eventstest.Events(6, 1)[3:]...))
	if n := s.log.count("stream differs"); n != 5 {
		t.Errorf("%d warnings", n)
	}
}

// When a state is being served already, an unusable stream freezes instead of ending the process.
func TestUnusableWhileServing(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(10, 1)...))
	s.mustStop()
	cfg := s.info(events.DefaultStream).Config
	cfg.MaxAge = time.Hour
	if _, err := s.js.UpdateStream(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	s.away()
	s.log = &logBuffer{}
	s.start()
	s.progress("served from the store", func(p Progress) bool { return p.CaughtUp })
	s.back()
	s.progress("frozen", func(p Progress) bool { return p.Frozen && strings.Contains(p.LastError, "MaxAge") })
	if s.model.View().Digest() != v.Digest() {
		t.Error("not the saved state")
	}
}
