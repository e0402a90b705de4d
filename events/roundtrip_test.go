package events_test

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Promise 4 rests on it: what is written is read back, in the message and in the store.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := eventstest.AnyEvent().Draw(t, "event")
		payload, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := events.DecodeMessage(e.Data.Subject(), payload)
		if err != nil {
			t.Fatalf("%v in %s", err, payload)
		}
		if back != e {
			t.Fatalf("wrote %#v, read %#v", e, back)
		}
		canonical := events.CanonicalData(e.Data)
		data, err := events.DecodeData(e.Type, canonical)
		if err != nil || data != e.Data {
			t.Fatalf("canonical %s: %v", canonical, err)
		}
		if !bytes.Contains(payload, canonical) || !bytes.Equal(canonical, events.CanonicalData(data)) {
			t.Fatal("canonical data is not one text for one value")
		}
	})
}
