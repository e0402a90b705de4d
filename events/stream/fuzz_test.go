package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// FuzzParseMessage: whatever a broker answers, reading it ends in a message or an error.
func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"message":{"subject":"registry.servers.a","seq":3,"hdrs":"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiB4DQoNCg==","data":"e30=","time":"2026-11-21T10:00:00Z"}}`))
	f.Add([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
	f.Add([]byte(`{"error":{"code":503}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		refusal := readRefusal(reply)
		m, err := parseMessage(reply)
		if err != nil && (m.Sequence != 0 || m.Subject != "") {
			t.Errorf("a message with an error: %+v, %v", m, err)
		}
		if errors.Is(refusal, jetstream.ErrMsgNotFound) && !strings.Contains(string(reply), "10037") {
			t.Errorf("not found, from %q", reply)
		}
	})
}

// FuzzEvent: whatever a stream stores, asking it for its event ends in an event or in a reason to reject
// it, which fits a header.
func FuzzEvent(f *testing.F) {
	f.Add("registry.servers.a", []byte("NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n"), []byte("{}"))
	f.Add("registry.servers.a", []byte("NATS/1.0 503\r\n\r\n"), []byte{})
	f.Add("registry.servers.a", []byte("NATS/1.0\r\nStatus: 408\r\n folded\r\n\r\n"), []byte("null"))
	f.Add("registry.servers.a", []byte("no headers"), []byte("{"))
	f.Fuzz(func(t *testing.T, subject string, block, body []byte) {
		type stored struct {
			Subject  string `json:"subject"`
			Sequence uint64 `json:"seq"`
			Header   []byte `json:"hdrs"`
			Data     []byte `json:"data"`
		}
		reply, err := json.Marshal(map[string]any{"message": stored{subject, 7, block, body}})
		require.NoError(t, err)
		m, err := parseMessage(reply)
		if err != nil || m.Sequence != 7 || !bytes.Equal(m.Data, body) {
			t.Fatalf("%+v, %v", m, err)
		}
		_, err = m.Event()
		if err == nil && m.Header.Get("Status") != "" {
			t.Error("an event with a header that no event has")
		}
		if err != nil && (len(err.Error()) > 200 || strings.ContainsAny(err.Error(), "\r\n")) {
			t.Errorf("a reason that fits no header: %q", err)
		}
	})
}
