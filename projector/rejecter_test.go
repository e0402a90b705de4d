package projector

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/rejected"
)

// good is an event, encoded.
func good(t *testing.T) (subject string, payload []byte) {
	t.Helper()
	e := eventstest.Events(1, 1)[0]
	payload, err := events.Encode(e)
	require.NoError(t, err)
	return e.Data.Subject().String(), payload
}

// Promise 8: each kind of bad event is copied with its reason, counted, logged once and passed
// over; the events around it are applied.
func TestRejections(t *testing.T) {
	subject, payload := good(t)
	tests := []struct {
		name, subject string
		payload       []byte
		reason        string // part of it
	}{
		{"not JSON", subject, []byte("{"), "not JSON"},
		{"empty", subject, nil, "event"},
		{"binary", subject, []byte{0, 1, 2, 0xff}, "event"},
		{"duplicate member", subject, bytes.Replace(payload, []byte("{"), []byte(`{"id":"x",`), 1), "twice"},
		{"no id", subject, bytes.Replace(payload, []byte(`"id":`), []byte(`"ID":`), 1), "id"},
		{"unknown type", subject, bytes.Replace(payload, []byte("registry.entry.listed"), []byte("registry.entry.praised"), 1), "type"},
		{"bound", subject, bytes.Replace(payload, []byte(`"name":"`), fmt.Appendf(nil, `"name":"%s`, strings.Repeat("x", 201)), 1), "data.name"},
		{"unknown subject", "registry.unknown.a.b", payload, "unknown subject"},
		{"other subject", "registry.servers.nobody", payload, "subject"},
		{"deep", subject, []byte(strings.Repeat(`{"a":`, 20_000)), "event"},
		{"long", subject, append(payload, bytes.Repeat([]byte(" "), 100_000)...), ""}, // valid: white space
		{"long and bad", subject, bytes.Repeat([]byte("x"), 100_000), "not JSON"},
	}
	s := newSystem(t)
	s.tune = func(c *Config) { c.History = 0 } // else the later ones may push out the earlier ones before they come
	s.start()
	rejected := map[uint64]int{}
	for i, test := range tests {
		seq := eventstest.PublishRaw(t, s.js, test.subject, test.payload)
		if test.reason != "" {
			rejected[seq] = i
		}
	}
	last := s.publish(eventstest.Events(5, 2)...)
	s.reach(last)
	s.progress("copies counted", func(p Progress) bool { return p.Rejected == uint64(len(rejected)) && p.Lag == 0 })
	epoch := s.p.Progress().StreamEpoch
	for seq, i := range rejected {
		test := tests[i]
		m := s.copyOf(epoch, seq)
		reason := m.Header.Get(events.HeaderReason)
		if !strings.Contains(reason, test.reason) || len(reason) > 200 || strings.ContainsAny(reason, "\r\n") {
			t.Errorf("%s: reason %q", test.name, reason)
		}
		if m.Header.Get(events.HeaderSequence) != fmt.Sprint(seq) || m.Header.Get(events.HeaderSubject) != test.subject {
			t.Errorf("%s: headers %v", test.name, m.Header)
		}
		cut := min(len(test.payload), events.MaxRejected)
		if !bytes.Equal(m.Data, test.payload[:cut]) || (m.Header.Get(events.HeaderTruncated) == "1") != (cut < len(test.payload)) {
			t.Errorf("%s: %d bytes of %d, headers %v", test.name, len(m.Data), len(test.payload), m.Header)
		}
		if m.Header.Get(jetstream.MsgIDHeader) != "" {
			t.Errorf("%s: the copy has a message id", test.name)
		}
	}
	if n := s.log.Count("event rejected"); n != len(rejected) {
		t.Errorf("%d lines about %d rejections", n, len(rejected))
	}
	if p := s.p.Progress(); p.RejectedHere != uint64(len(rejected)) || p.LastError != "" {
		t.Errorf("progress %+v", p)
	}
	s.inspect()
}

// A backend's mistakes are logged one by one, and a flood of them does not fill the disk with lines.
func TestFewLinesOfManyRejections(t *testing.T) {
	var log eventstest.Log
	cfg := Config{ReadOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()
	r := newRejecter(cfg, leader.Stream{}, &tracker{}, cfg.Logger)
	bad := slices.Repeat([]rejection{{Copy: rejected.Copy{Sequence: 1}}}, 5000)
	began := time.Now()
	for n := range 20 {
		require.NoError(t, r.add(t.Context(), "e", bad))
		if n == 0 {
			require.GreaterOrEqual(t, log.Count("event rejected"), loggedAtOnce)
		}
	}
	if n, most := log.Count("event rejected"), loggedAtOnce+1+int(time.Since(began).Seconds()*logged); n > most {
		t.Errorf("%d lines, more than %d", n, most)
	}
	r.lines = rate.NewLimiter(1, 1) // some time later
	require.NoError(t, r.add(t.Context(), "e", bad[:1]))
	require.Equal(t, 1, log.Count("unlogged="), "how many had no line")
}

// A copy names the message that a backend sent, unless its id is none that an event may have.
func TestRejectedMessageID(t *testing.T) {
	s := newSystem(t)
	s.start()
	for _, test := range []struct{ id, want string }{
		{"registry.scammers.x@7", "registry.scammers.x@7"},
		{strings.Repeat("ą", 256), strings.Repeat("ą", 256)},
		{strings.Repeat("x", 257), ""},
		{strings.Repeat("x", 60_000), ""},
		{"tab\there", ""},
		{"", ""},
	} {
		m := nats.NewMsg("registry.scammers.x")
		m.Data = []byte("bad")
		if test.id != "" {
			m.Header.Set(jetstream.MsgIDHeader, test.id)
		}
		ack, err := s.js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
		s.reach(ack.Sequence)
		require.Equal(t, test.want, s.copyOf(s.p.Progress().StreamEpoch, ack.Sequence).Header.Get(events.HeaderMessageID))
	}
}

// copyOf is the copy of the event rejected at seq.
func (s *system) copyOf(epoch string, seq uint64) *jetstream.RawStreamMsg {
	s.t.Helper()
	st, err := s.js.Stream(context.Background(), events.RejectedStream)
	require.NoError(s.t, err)
	m, err := st.GetLastMsgForSubject(context.Background(), fmt.Sprint(events.RejectedPrefix, epoch, ".", seq))
	if err != nil {
		s.t.Fatalf("copy of %d: %v", seq, err)
	}
	return m
}

// A rebuild, or a second replica, copies again and adds nothing.
func TestCopiesAreIdempotent(t *testing.T) {
	s := newSystem(t)
	s.start()
	for n := range 20 {
		eventstest.PublishRaw(t, s.js, fmt.Sprint("registry.servers.e", n), []byte("bad"))
	}
	last := s.publish(eventstest.Events(1, 1)...)
	s.reach(last)
	for range 2 {
		s.mustStop()
		s.path += ".new"
		s.start()
		s.reach(last)
		s.progress("20 copies", func(p Progress) bool { return p.RejectedHere == 20 && p.Rejected == 20 })
	}
}

// The checkpoint on disk never passes a rejection that has not been copied; the one in memory may.
func TestUncopiedRejectionHoldsTheStore(t *testing.T) {
	s := newSystem(t)
	ctx := context.Background()
	// Another stream has the subjects: the one of rejected events cannot be made.
	_, err := s.js.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"registry-rejected.>"}})
	require.NoError(t, err)
	s.start()
	before := s.reach(s.publish(eventstest.Events(10, 1)...)).Sequence()
	eventstest.PublishRaw(t, s.js, "registry.servers.bad", []byte("bad"))
	last := s.publish(eventstest.Events(20, 1)[10:]...)
	s.until("applied in memory", func() bool { return s.model.View().Sequence() == last })
	s.progress("said", func(p Progress) bool { return strings.Contains(p.LastError, "cannot be copied") })
	flushing, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // without the copy it waits until its context ends
	defer cancel()
	if err := s.p.Flush(flushing); err == nil || s.p.Progress().Saved > before {
		t.Errorf("flushed: %v; saved at %d, behind a rejection at %d that is not copied", err, s.p.Progress().Saved, before+1)
	}
	require.NoError(t, s.js.DeleteStream(ctx, "OTHER"))
	s.reach(last)
	s.progress("well again", func(p Progress) bool { return p.Rejected == 1 && p.LastError == "" })
	s.inspect()
}

// The stream of rejected events is made again when it has been deleted.
func TestRejectedStreamDeleted(t *testing.T) {
	s := newSystem(t)
	s.start()
	eventstest.PublishRaw(t, s.js, "registry.servers.bad", []byte("bad"))
	s.progress("first copy", func(p Progress) bool { return p.Rejected == 1 })
	require.NoError(t, s.js.DeleteStream(context.Background(), events.RejectedStream))
	s.progress("none", func(p Progress) bool { return p.Rejected == 0 })
	s.reach(eventstest.PublishRaw(t, s.js, "registry.servers.bad", []byte("bad")))
	s.progress("second copy", func(p Progress) bool { return p.Rejected == 1 && p.LastError == "" })
}

// A copy of our own is counted at once, not at the next poll.
func TestCountedAtOnce(t *testing.T) {
	s := newSystem(t)
	s.tune = func(c *Config) { c.PollEvery = time.Hour }
	s.start()
	s.progress("caught up", func(p Progress) bool { return p.CaughtUp && p.Connected })
	for n := range uint64(3) {
		eventstest.PublishRaw(t, s.js, fmt.Sprint("registry.servers.e", n), []byte("bad"))
		s.progress("counted", func(p Progress) bool { return p.Rejected == n+1 })
	}
}

// badEvents publishes rejected events of n subjects, whose names begin with prefix, and a good one.
// It returns the last sequence.
func (s *system) badEvents(prefix string, n int) (last uint64) {
	s.t.Helper()
	for i := range n {
		eventstest.PublishRaw(s.t, s.js, fmt.Sprintf("registry.servers.%s%02d", prefix, i), []byte("bad"))
	}
	e := eventstest.Events(1, 1)[0]
	e.ID += prefix
	return s.publish(e)
}

// Where some of the answers are lost, every event is copied in the end.
func TestRejectionsWithLostAnswers(t *testing.T) {
	s := newSystem(t)
	r := s.relay()
	s.start()
	last := s.badEvents("a", 20)
	s.reach(last)
	s.mustStop()
	var answers, lost atomic.Int32
	r.Lose(func(m []byte) bool {
		ours := bytes.Contains(m, []byte("REGISTRY_REJECTED")) || bytes.Contains(m, []byte(`"registry.servers.`))
		if !ours || isDelivery(m) || answers.Add(1)%6 != 0 {
			return false
		}
		lost.Add(1)
		return true
	})
	s.start()
	last = s.badEvents("b", 20)
	s.reach(last)
	s.progress("counted", func(p Progress) bool { return p.Rejected == 40 && p.LastError == "" })
	if lost.Load() == 0 {
		t.Error("no answer was lost")
	}
}

// A count that waits for another ends with its context.
func TestCountObeysItsContext(t *testing.T) {
	r := newRejecter(Config{}, leader.Stream{}, &tracker{}, nil)
	r.counting <- struct{}{} // the other's request gets no answer
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.count(ctx) }()
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("waits for ever")
	}
}

// What is rejected is one line of at most 200 bytes, whatever a panic says.
func TestPanicCostsOneEvent(t *testing.T) {
	d := decoder{log: slog.New(slog.DiscardHandler)} // without a renderer, rendering panics
	subject, payload := good(t)
	m := &leader.Message{Subject: subject, Data: payload, Sequence: 7}
	if _, err := d.record(m); err == nil || !strings.HasPrefix(err.Error(), "internal: ") {
		t.Errorf("a panic became %v", err)
	}
	if r, err := d.record(m); err != nil || r.Sequence != 7 {
		t.Errorf("the event after a panic: %v", err)
	}
	// A message that speaks of a donation keeps its own words out of the log.
	var log eventstest.Log
	d = decoder{log: slog.New(slog.NewTextHandler(&log, nil))}
	m.Data = bytes.Replace(payload, []byte("{"), []byte(`{"donationId":"d",`), 1)
	if _, err := d.record(m); err == nil || log.Count("caused a panic") != 1 || log.Count(subject+" ") != 0 {
		t.Errorf("%v: %s", err, log.String())
	}
	if got := headerText("a\r\nb\x00" + strings.Repeat("ż", 500)); len(got) > 190 || strings.ContainsAny(got, "\r\n\x00") {
		t.Errorf("one line: %q", got)
	}
}

// An epoch from outside that would not fit a subject, and a stream without one.
func TestForeignEpochs(t *testing.T) {
	for name, epoch := range map[string]string{"none": "", "odd": "a.b >*"} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			eventstest.Stream(t, s.js, func(c *jetstream.StreamConfig) {
				c.Metadata = map[string]string{events.MetadataEpoch: epoch}
			})
			s.start()
			s.reach(eventstest.PublishRaw(t, s.js, "registry.servers.bad", []byte("bad")))
			s.progress("copied", func(p Progress) bool { return p.Rejected == 1 })
			s.mustStop()
			s.start()
			s.progress("ours again", func(p Progress) bool { return p.CaughtUp && p.Connected && !p.Frozen() })
			if p := s.p.Progress(); p.StreamEpoch == "" || epoch != "" && p.StreamEpoch != epoch {
				t.Errorf("epoch %q", p.StreamEpoch)
			}
		})
	}
}

// The corpus of poison events through the real path: each is rejected with its reason or applied,
// exactly as the contract has it, the good events among them are not touched, and a replay from the
// start has the same digest (promises 1 and 8).
func TestPoisonCorpus(t *testing.T) {
	corpus, err := eventstest.Poisons(filepath.Join("..", "events", "testdata", "poison.txt"))
	require.NoError(t, err)
	s := newSystem(t)
	s.tune = func(c *Config) { c.History = 0 } // each state is kept, so that each is decoded again
	s.start()
	problems := map[uint64]string{} // by sequence
	raw := eventstest.DialRaw(t, s.addr)
	for _, p := range corpus {
		if p.Problem == "" { // each state is newer than those before it
			s.revision++
			p.Payload = strings.Replace(p.Payload, `"revision":1`, fmt.Sprintf(`"revision":%d`, s.revision), 1)
		}
		if seq := raw.Publish(p.Subject, p.Headers, []byte(p.Payload)); p.Problem != "" {
			problems[seq] = p.Problem
		}
	}
	s.reach(s.publish(eventstest.Events(20, 3)...))
	s.progress("copies counted", func(p Progress) bool { return p.Rejected == uint64(len(problems)) && p.Lag == 0 })
	epoch := s.p.Progress().StreamEpoch
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

// A delisting behind any message is applied within a second: no poison makes the projector wait for
// the next message, a check or a new session. On a busy machine a poison has three attempts.
func TestDelistingBehindAnyMessage(t *testing.T) {
	corpus, err := eventstest.Poisons(filepath.Join("..", "events", "testdata", "poison.txt"))
	require.NoError(t, err)
	s := newSystem(t)
	s.start()
	raw := eventstest.DialRaw(t, s.addr)
	e := eventstest.Entries(1, 3)[0]
	behind := func(p eventstest.Poison) time.Duration {
		s.reach(s.publish(eventstest.Listed(e, int(s.revision))))
		raw.Publish(p.Subject, p.Headers, []byte(p.Payload))
		began, last := time.Now(), s.publish(removal(e, fmt.Sprint("r", s.revision)))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		v, err := s.model.Await(ctx, last)
		if err != nil || v.Entry(e.List, e.EntryID) != nil {
			t.Fatalf("%s: a delisting behind it is not applied: %v, %+v", p.Name, err, s.p.Progress())
		}
		return time.Since(began)
	}
	for _, p := range corpus {
		took := behind(p)
		for n := 0; n < 2 && took > time.Second; n++ {
			took = behind(p)
		}
		if took > time.Second {
			t.Errorf("%s: a delisting behind it is applied after %v", p.Name, took)
		}
	}
}
