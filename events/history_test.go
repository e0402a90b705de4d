package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

func TestHistory(t *testing.T) {
	h := events.History{Name: "B", Follows: []string{"1732406400000000000"}, Kind: events.HistoryNew, Revision: 1}
	payload, err := events.EncodeHistory(h)
	require.NoError(t, err)
	got, err := events.DecodeHistory(payload)
	require.NoError(t, err)
	require.Equal(t, h, got)
	require.Equal(t, []string{"B", "1732406400000000000"}, h.Names())
	for _, change := range []func(h *events.History){
		func(h *events.History) { h.Name = "" },
		func(h *events.History) { h.Name = "a b" },
		func(h *events.History) { h.Name = "a\n" },
		func(h *events.History) { h.Name = strings.Repeat("x", events.MaxHistoryName+1) },
		func(h *events.History) { h.Follows = []string{"ł"} },
		func(h *events.History) { h.Follows = []string{"A", h.Name} },
		func(h *events.History) { h.Follows = strings.Fields(strings.Repeat("a ", events.MaxFollows+1)) },
		func(h *events.History) { h.Kind = "" },
		func(h *events.History) { h.Revision = 0 },
		func(h *events.History) { h.Revision = events.MaxRevision + 1 },
	} {
		bad := h
		change(&bad)
		if _, err := events.EncodeHistory(bad); err == nil {
			t.Errorf("%+v was encoded", bad)
		}
	}
	h.Kind = events.HistoryFork
	require.Equal(t, []string{"B"}, h.Names(), "a fork shares no earlier history")
}

// FuzzDecodeHistory: a payload is an error, or a marker that can be encoded again.
func FuzzDecodeHistory(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"B","source":"urn:registry:history","type":"registry.history.begun","data":{"history":"B","follows":["A"],"kind":"new","revision":7}}`))
	f.Add([]byte(`{"specversion":"1.0","type":"registry.entry.listed","data":{}}`))
	f.Add([]byte(`{"specversion":"1.0","type":"registry.history.begun","data":null}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		h, err := events.DecodeHistory(payload)
		if err != nil {
			return
		}
		again, err := events.EncodeHistory(h)
		if err != nil {
			t.Fatalf("%+v was decoded and cannot be encoded: %v", h, err)
		}
		got, err := events.DecodeHistory(again)
		require.NoError(t, err)
		require.Equal(t, h.Names(), got.Names())
	})
}
