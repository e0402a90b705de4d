package projector

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"
)

// FuzzReadStored: whatever a broker answers, reading it ends in a message or an error.
func FuzzReadStored(f *testing.F) {
	f.Add([]byte(`{"message":{"subject":"registry.servers.a","seq":3,"hdrs":"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiB4DQoNCg==","data":"e30=","time":"2026-11-21T10:00:00Z"}}`))
	f.Add([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
	f.Add([]byte(`{"error":{"code":503}}`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		m, err := readStored(reply)
		if err != nil && (m.seq != 0 || m.subject != "") {
			t.Errorf("a message with an error: %+v, %v", m, err)
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) && !strings.Contains(string(reply), "10037") {
			t.Errorf("not found, from %q", reply)
		}
	})
}

// FuzzOneLine: what a panic says fits a header.
func FuzzOneLine(f *testing.F) {
	f.Add("runtime error:\r\nindex out of range")
	f.Add(strings.Repeat("ą", 300))
	f.Fuzz(func(t *testing.T, s string) {
		got := oneLine(s)
		if len(got) > 180 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(got) {
			t.Errorf("%q became %q", s, got)
		}
	})
}
