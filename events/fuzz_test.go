package events_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"example.org/registry/events"
)

// Whatever comes in, decoding ends without a panic in an event that survives its own
// encoding, or in an error that fits a header (promise 8).
func FuzzDecode(f *testing.F) {
	for _, s := range []string{entryJSON, delistedJSON, viewsJSON, donationJSON, removedJSON} {
		f.Add("registry.scammers.e_1-A", []byte(s))
	}
	f.Fuzz(func(t *testing.T, subject string, payload []byte) {
		e, err := events.DecodeMessage(subject, payload)
		checkError(t, err)
		if err != nil {
			if e != (events.Event{}) {
				t.Errorf("an error and an event: %v", e)
			}
			return
		}
		if !utf8.Valid(payload) || !json.Valid(payload) || len(payload) > events.MaxPayload {
			t.Error("took what is no JSON of at most 256 KiB")
		}
		again, err := events.Encode(e)
		if err != nil {
			t.Fatalf("decoded and cannot be encoded: %v", err)
		}
		if back, err := events.DecodeMessage(subject, again); err != nil || back != e {
			t.Errorf("decoded %v, encoded and decoded %v, %v", e, back, err)
		}
	})
}

// The store's data is read as carefully as the stream's.
func FuzzDecodeData(f *testing.F) {
	for _, s := range []string{entryJSON, delistedJSON, viewsJSON, donationJSON, removedJSON} {
		e, err := events.Decode([]byte(s))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(e.Type), events.CanonicalData(e.Data))
	}
	f.Fuzz(func(t *testing.T, typ string, b []byte) {
		d, err := events.DecodeData(events.Type(typ), b)
		checkError(t, err)
		if err != nil {
			return
		}
		canonical := events.CanonicalData(d)
		back, err := events.DecodeData(events.Type(typ), canonical)
		if err != nil || back != d || !bytes.Equal(canonical, events.CanonicalData(back)) {
			t.Errorf("%s, then %s: %v", b, canonical, err)
		}
	})
}
