package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// sink stands for a Publisher: what it has stored, and how it shall fail.
type sink struct {
	stored []string // event ids
	fail   func(batch []publish.Message) (stored int, err error)
}

func (s *sink) send(_ context.Context, batch []publish.Message) (publish.Summary, error) {
	n := len(batch)
	var err error
	if s.fail != nil {
		n, err = s.fail(batch)
	}
	for _, m := range batch[:n] {
		s.stored = append(s.stored, m.Event.ID)
	}
	return publish.Summary{Sent: n, LastSequence: uint64(len(s.stored))}, err
}

// publishText publishes lines and returns what became of them.
func publishText(t *testing.T, s *sink, maxErrors int, lines ...string) (summary, complaints string, err error) {
	t.Helper()
	var out bytes.Buffer
	r := &publishing{send: s.send, maxErrors: maxErrors, stderr: &out, progress: &cli.Progress{}}
	err = r.publishFiles(t.Context(), []string{"-"}, strings.NewReader(strings.Join(lines, "\n")))
	return r.summary(), out.String(), err
}

// made makes n good lines.
func made(t *testing.T, n int) (lines, ids []string) {
	t.Helper()
	for _, e := range eventstest.Events(n, 11) {
		payload, err := events.Encode(e)
		require.NoError(t, err)
		lines, ids = append(lines, string(payload)), append(ids, e.ID)
	}
	return lines, ids
}

func TestPublishInOrder(t *testing.T) {
	lines, ids := made(t, 2*batchLines+7)
	s := &sink{}
	summary, complaints, err := publishText(t, s, 0, lines...)
	if err != nil || complaints != "" || !slices.Equal(s.stored, ids) {
		t.Errorf("%v, %q, %d stored", err, complaints, len(s.stored))
	}
	if want := "2007 sent, 0 already there, 0 stale, 0 bad lines; last sequence 2007"; summary != want {
		t.Errorf("%q, want %q", summary, want)
	}
}

// Every place of a bad line, around the ends of a batch too: all good lines before it are sent.
func TestPublishStopsAtABadLine(t *testing.T) {
	lines, ids := made(t, batchLines+2)
	for _, at := range []int{0, 1, batchLines - 1, batchLines, batchLines + 1, batchLines + 2} {
		s := &sink{}
		summary, complaints, err := publishText(t, s, 0, slices.Insert(slices.Clone(lines), at, "bad")...)
		place := fmt.Sprintf("-:%d", at+1)
		if err == nil || !slices.Equal(s.stored, ids[:at]) || !strings.HasPrefix(complaints, place+": ") || !strings.HasSuffix(summary, "stopped at "+place) {
			t.Errorf("at %d: %d stored, %q, %q, %v", at, len(s.stored), complaints, summary, err)
		}
		s = &sink{}
		if _, _, err := publishText(t, s, 1, slices.Insert(slices.Clone(lines), at, "bad")...); err == nil || !slices.Equal(s.stored, ids) {
			t.Errorf("with one error allowed, at %d: %d stored, %v", at, len(s.stored), err)
		}
	}
}

// What the publisher alone finds wrong, a message too long with its headers, is a bad line too.
func TestPublisherRefusesAMessage(t *testing.T) {
	lines, ids := made(t, 10)
	refuse := func(batch []publish.Message) (int, error) {
		for i, m := range batch {
			if m.Event.ID == ids[4] {
				return i, &publish.MessageError{Index: i, Err: &events.Error{Field: "event", Problem: "too long"}}
			}
		}
		return len(batch), nil
	}
	s := &sink{fail: refuse}
	_, complaints, err := publishText(t, s, 1, lines...)
	if err == nil || !slices.Equal(s.stored, slices.Delete(slices.Clone(ids), 4, 5)) || !strings.HasPrefix(complaints, "-:5: ") {
		t.Errorf("%d stored, %q, %v", len(s.stored), complaints, err)
	}
	s = &sink{fail: refuse}
	if _, _, err := publishText(t, s, 0, lines...); err == nil || !slices.Equal(s.stored, ids[:4]) {
		t.Errorf("%v stored, %v", s.stored, err)
	}
}

// When the broker goes away the message says where, and the summary what got through.
func TestPublishingBreaksOff(t *testing.T) {
	lines, ids := made(t, 10)
	s := &sink{fail: func(batch []publish.Message) (int, error) {
		for i, m := range batch {
			if m.Event.ID == ids[3] {
				return i, &publish.MessageError{Index: i, Err: errors.New("no answer")}
			}
		}
		return len(batch), nil
	}}
	summary, _, err := publishText(t, s, 0, lines...)
	if err == nil || !strings.Contains(err.Error(), "stopped at -:4: ") || !slices.Equal(s.stored, ids[:3]) {
		t.Errorf("%v, %d stored", err, len(s.stored))
	}
	if !strings.HasPrefix(summary, "3 sent,") {
		t.Error(summary)
	}
}

// natsServer runs a broker that is not ours.
func natsServer(t *testing.T, opts *natsd.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", natsd.RANDOM_PORT, true, true
	opts.StoreDir = t.TempDir()
	s, err := natsd.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the broker does not start")
	}
	return s.ClientURL()
}

// What a broker cannot do is said with the broker's name and what to do, by every command alike.
func TestBrokerAdvice(t *testing.T) {
	t.Parallel()
	without := natsServer(t, &natsd.Options{})
	alone := natsServer(t, &natsd.Options{
		ServerName: "one", JetStream: true, Routes: natsd.RoutesFromStr("nats://127.0.0.1:1,nats://127.0.0.1:2"),
		Cluster: natsd.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: natsd.RANDOM_PORT},
	})
	for url, want := range map[string]string{
		without: `it has no JetStream, or this user may not use it; correct --nats-url or --nats-creds$`,
		alone:   `(its JetStream does not answer|JetStream system temporarily unavailable).*; see whether enough brokers are up, and try again$`,
	} {
		for _, args := range [][]string{{"snapshot", "list"}, {"snapshot", "verify", "name"}, {"publish", "-"}} {
			t.Run(args[0]+" "+args[1], func(t *testing.T) {
				t.Parallel()
				err := run(t.Context(), append(args, "--nats-url="+url), func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard)
				if err == nil || !strings.HasPrefix(err.Error(), "broker at "+url+": ") || !regexp.MustCompile(want).MatchString(err.Error()) {
					t.Errorf("%q: %v", args, err)
				}
			})
		}
	}
}

// A run that the broker stops says where the broker's reason is.
func TestStoppedPublishSaysWhere(t *testing.T) {
	lines, _ := made(t, 1)
	s := &sink{fail: func([]publish.Message) (int, error) { return 0, errors.New("no acknowledgment") }}
	_, _, err := publishText(t, s, 0, lines...)
	require.ErrorContains(t, err, "; publish the same files again to send the rest; if it stops again, "+
		"the broker's log or /projection of the server says why")
}
