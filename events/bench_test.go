package events

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func benchEvent() Event {
	return Event{
		ID: "0198b2f4-7c1e-7a55-9d31-2b7f3a1c9e10", Source: "https://moderacja.example/panel", Type: TypeListed,
		Time: time.Date(2026, 11, 21, 10, 15, 0, 123e6, time.UTC),
		Data: Entry{
			List: Scammers, EntryID: "66f2c0ffee0123456789abcd", ChatID: "123456789012345678", Name: "Żółty Łukasz",
			Reason:   strings.Repeat("Sprzedał konto, **zniknął** z pieniędzmi. ", 4),
			Verified: true, Proofs: Proofs{ID: "p-123456"}, ReportID: "R-2026-000123",
			ReportedAt: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Revision: 1,
		},
	}
}

func BenchmarkDecode(b *testing.B) {
	payload, err := Encode(benchEvent())
	require.NoError(b, err)
	subject := benchEvent().Data.Subject().String()
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := DecodeMessage(subject, payload)
		require.NoError(b, err)
	}
}

func BenchmarkEncode(b *testing.B) {
	e := benchEvent()
	b.ReportAllocs()
	for b.Loop() {
		_, err := Encode(e)
		require.NoError(b, err)
	}
}
