package events_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is written is read back, in the message and in the store.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := eventstest.AnyEvent().Draw(t, "event")
		payload, err := events.Encode(e)
		require.NoError(t, err)
		back, err := events.DecodeMessage(e.Data.Subject().String(), payload)
		if err != nil {
			t.Fatalf("%v in %s", err, payload)
		}
		if back != e {
			t.Fatalf("wrote %#v, read %#v", e, back)
		}
		canonical := events.AppendData(nil, e.Data)
		if !bytes.Contains(payload, canonical) || !bytes.Equal(canonical, events.AppendData(nil, back.Data)) {
			t.Fatal("canonical data is not one text for one value")
		}
	})
}

// A time in another zone is the same event, and is written in UTC.
func TestEncodeWritesUTC(t *testing.T) {
	e := eventstest.Listed(eventstest.Entries(1, 1)[0], 1)
	d := e.Data.(events.Entry)
	utc := time.Date(2026, 11, 20, 23, 30, 0, 120e6, time.UTC)
	d.ReportedAt = utc.In(time.FixedZone("", 3600))
	e.Data = d
	b, err := events.Encode(e)
	require.NoError(t, err)
	require.Contains(t, string(b), `"reportedAt":"2026-11-20T23:30:00.12Z"`)
	back, err := events.Decode(b)
	require.NoError(t, err)
	require.Equal(t, utc, back.Data.(events.Entry).ReportedAt)
}

// Different values have different canonical texts, or the digest would not tell them apart.
func TestAppendDataTellsValuesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := eventstest.AnyEvent().Draw(t, "a").Data, eventstest.AnyEvent().Draw(t, "b").Data
		if (a == b) != (string(events.AppendData(nil, a)) == string(events.AppendData(nil, b))) {
			t.Fatalf("%+v and %+v: equal %t, but their texts are not", a, b, a == b)
		}
	})
}
