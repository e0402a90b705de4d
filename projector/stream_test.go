package projector

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
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

// A stream that would lose events is refused, and left as it is. The error is a line that says what
// to do.
func TestUnusableStreams(t *testing.T) {
	tests := map[string]func(*jetstream.StreamConfig){
		"MaxAge":      func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"AllowMsgTTL": func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true },
		"markers":     func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Minute }, // sets AllowMsgTTL
		"MaxMsgs":     func(c *jetstream.StreamConfig) { c.MaxMsgs = 100 },
		"discard":     func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"retention":   func(c *jetstream.StreamConfig) { c.Retention, c.AllowAtomicPublish = jetstream.InterestPolicy, false },
	}
	for word, change := range tests {
		t.Run(word, func(t *testing.T) {
			s := newSystem(t)
			eventstest.Stream(t, s.js, change)
			before := s.info().Config
			err := s.runOnce(nil)
			if word == "markers" {
				word = "AllowMsgTTL"
			}
			if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") ||
				!strings.Contains(err.Error(), "; change the stream") && !strings.Contains(err.Error(), "into a new stream") {
				t.Errorf("Run: %v", err)
			}
			if after := s.info().Config; after.MaxAge != before.MaxAge || after.Discard != before.Discard {
				t.Error("the stream has been altered")
			}
		})
	}
}

// A stream that cannot be made ends Run with a line that says what to do.
func TestStreamThatCannotBeMade(t *testing.T) {
	holders := map[string]string{"part": "registry.scammers.>", "all": events.StreamSubjects}
	for name, subject := range holders {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			_, err := s.js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{subject}})
			require.NoError(t, err)
			err = s.runOnce(nil)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("Run: %v", err)
			}
			for _, part := range []string{"create stream REGISTRY: ", "overlap", "stream OTHER holds registry.>", "--stream OTHER", "remove it"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Run: %v: does not say %q", err, part)
				}
			}
		})
	}
	t.Run("replicas", func(t *testing.T) {
		err := newSystem(t).runOnce(func(c *Config) { c.Replicas = 3 })
		if err == nil || !strings.Contains(err.Error(), "lower --stream-replicas") {
			t.Errorf("Run with replicas and without a cluster: %v", err)
		}
	})
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
		if got := s.info().Config.Metadata[events.MetadataDemo]; got != "true" {
			t.Errorf("mark of a new stream: %q", got)
		}
	})
}

// Lesser differences are one warning each, once, and the stream is used.
func TestLesserDifferences(t *testing.T) {
	s := newSystem(t)
	eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) {
		c.MaxMsgsPerSubject, c.Storage, c.DenyDelete, c.AllowRollup = 1, jetstream.MemoryStorage, false, true
		c.Metadata = nil
	})
	s.start()
	s.reach(s.publish(eventstest.Events(3, 1)...))
	require.NoError(t, s.nc.ForceReconnect())
	s.reach(s.publish(eventstest.Events(6, 1)[3:]...))
	if n := s.log.Count("stream differs"); n != 5 {
		t.Errorf("%d warnings", n)
	}
}

// Every setting of the contract's stream that differs is one warning that names it
// (events/CONTRACT.md, the stream), and so is what else stands in somebody's way.
func TestEachDifferenceIsOneWarning(t *testing.T) {
	tests := map[string]func(*jetstream.StreamConfig){
		"storage":                    func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"subjects":                   func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other.>") },
		"messages kept of a subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject++ },
		"max bytes":                  func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 30 },
		"max message size":           func(c *jetstream.StreamConfig) { c.MaxMsgSize = -1 },
		"duplicate window":           func(c *jetstream.StreamConfig) { c.Duplicates = time.Hour },
		"deny delete":                func(c *jetstream.StreamConfig) { c.DenyDelete = false },
		"deny purge":                 func(c *jetstream.StreamConfig) { c.DenyPurge = true },
		"allow rollup":               func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		"allow direct":               func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"allow atomic publish":       func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false },
		"metadata registry-epoch":    func(c *jetstream.StreamConfig) { c.Metadata = nil },
		"subject transform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "registry.old.*", Destination: "registry.legit.{{wildcard(1)}}"}
		},
		"discard new per subject": func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true },
		"no ack":                  func(c *jetstream.StreamConfig) { c.NoAck = true },
		"max consumers":           func(c *jetstream.StreamConfig) { c.MaxConsumers = 5 },
		"persist mode": func(c *jetstream.StreamConfig) {
			c.PersistMode, c.AllowAtomicPublish = jetstream.AsyncPersistMode, false
		},
		"": func(*jetstream.StreamConfig) {},
	}
	beside := map[string]int{"persist mode": 1} // the broker allows them only with another difference
	s := newSystem(t)
	for option, change := range tests {
		eventstest.Stream(t, s.js, change)
		var log eventstest.Log
		p := New(Config{JetStream: s.js, History: events.DefaultHistory, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := p.acceptStream(s.info()); err != nil {
			t.Errorf("%s: %v", option, err)
		}
		want := 1 + beside[option]
		if option == "" {
			want = 0
		}
		named := strings.Contains(log.String(), "option=\""+option+"\"") || strings.Contains(log.String(), "option="+option+" ")
		if log.Count("stream differs") != want || want > 0 && !named {
			t.Errorf("%q: logged %s", option, log.String())
		}
		require.NoError(t, s.js.DeleteStream(context.Background(), events.DefaultStream))
	}
}

// The broker has one node here: replicas, streams with sources and sealed ones are compared without it.
func TestReplicasAndOrigin(t *testing.T) {
	want := publish.StreamConfig(events.DefaultStream, 1, 0, "e")
	c := want
	c.Replicas, c.Sources, c.Sealed = 3, []*jetstream.StreamSource{{Name: "FAR"}}, true
	found := append(differences(c, want), additions(c)...)
	if len(found) != 3 || found[0].option != "replicas" || found[1].option != "origin" || found[2].option != "sealed" {
		t.Errorf("found %v", found)
	}
}

// What an operator changes on a stream that is being followed is said at once, not when the next
// start refuses it.
func TestStreamChangedWhileFollowed(t *testing.T) {
	s := newSystem(t)
	s.start()
	s.reach(s.publish(eventstest.Events(10, 1)...))
	cfg := s.info().Config
	for _, age := range []time.Duration{time.Hour, 0} {
		cfg.MaxAge = age
		_, err := s.js.UpdateStream(t.Context(), cfg)
		require.NoError(t, err)
		s.progress("said, or no more", func(p Progress) bool {
			return !p.Frozen() && strings.Contains(p.LastError, "MaxAge 1h0m0s") == (age > 0)
		})
	}
}

// When a state is being served already, an unusable stream is not followed, and does not end the
// process.
func TestUnusableWhileServing(t *testing.T) {
	s := newSystem(t)
	s.start()
	v := s.reach(s.publish(eventstest.Events(10, 1)...))
	s.mustStop()
	cfg := s.info().Config
	cfg.MaxAge = time.Hour
	_, err := s.js.UpdateStream(context.Background(), cfg)
	require.NoError(t, err)
	s.away()
	s.log = &eventstest.Log{}
	s.start()
	s.progress("served from the store", func(p Progress) bool { return p.CaughtUp })
	s.back()
	s.progress("said", func(p Progress) bool { return strings.Contains(p.LastError, "MaxAge") })
	if s.model.View().Digest() != v.Digest() {
		t.Error("not the saved state")
	}
	cfg.MaxAge = 0
	_, err = s.js.UpdateStream(context.Background(), cfg)
	require.NoError(t, err)
	s.reach(s.publish(others(1)...))
	s.progress("followed again", func(p Progress) bool { return p.LastError == "" })
}
