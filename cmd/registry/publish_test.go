package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// TestPublishingBreaksOff: when the broker goes away the message says where and what to do, and the
// summary what got through.
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
	require.ErrorContains(t, err, "stopped at -:4: no answer; publish the same files again to send the rest; if it stops again, "+
		"the broker's log or /projection of the server says why")
	require.Equal(t, ids[:3], s.stored)
	require.True(t, strings.HasPrefix(summary, "3 sent,"), summary)
}
