package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

func TestHistory(t *testing.T) {
	h := events.History{Name: "B", Previous: "1732406400000000000"}
	payload, err := events.EncodeHistory(h)
	require.NoError(t, err)
	if got, err := events.DecodeHistory(payload); err != nil || got != h {
		t.Errorf("decoded %+v, %v", got, err)
	}
	long := strings.Repeat("x", events.MaxHistoryName+1)
	for _, bad := range []events.History{{}, {Name: "a"}, {Previous: "a"}, {"a", "a"}, {"a b", "c"}, {"a", "ł"}, {"a\n", "b"}, {long, "a"}, {"a", long}} {
		if _, err := events.EncodeHistory(bad); err == nil {
			t.Errorf("%+v was encoded", bad)
		}
	}
}

// FuzzDecodeHistory: a payload is an error, or a marker that can be encoded again.
func FuzzDecodeHistory(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"B","source":"urn:registry:history","type":"registry.history.begun","data":{"history":"B","previous":"A"}}`))
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
		if got, err := events.DecodeHistory(again); err != nil || got != h {
			t.Errorf("%+v became %+v, %v", h, got, err)
		}
	})
}
