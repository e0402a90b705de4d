package leader

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// FuzzParse: whatever a broker answers, reading it ends in a message or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"message":{"subject":"registry.servers.a","seq":3,"hdrs":"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiB4DQoNCg==","data":"e30=","time":"2026-11-21T10:00:00Z"}}`))
	f.Add([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
	f.Add([]byte(`{"error":{"code":503}}`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		m, err := parse(reply)
		if err != nil && (m.Sequence != 0 || m.Subject != "") {
			t.Errorf("a message with an error: %+v, %v", m, err)
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) && !strings.Contains(string(reply), "10037") {
			t.Errorf("not found, from %q", reply)
		}
	})
}

// FuzzMessage: whatever a stream stores, reading it ends in a message with the same subject and
// body, and asking it for its event in an event or in a reason to reject it.
func FuzzMessage(f *testing.F) {
	f.Add("registry.servers.a", []byte("NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n"), []byte("{}"))
	f.Add("registry.servers.a", []byte("NATS/1.0 503\r\n\r\n"), []byte{})
	f.Add("registry.history", []byte("NATS/1.0\r\nStatus: 408\r\n folded\r\n\r\n"), []byte("null"))
	f.Add("registry.servers.a", []byte("no headers"), []byte("{"))
	f.Fuzz(func(t *testing.T, subject string, block, body []byte) {
		type stored struct {
			Subject  string `json:"subject"`
			Sequence uint64 `json:"seq"`
			Header   []byte `json:"hdrs"`
			Data     []byte `json:"data"`
		}
		reply, err := json.Marshal(map[string]any{"message": stored{subject, 7, block, body}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := parse(reply)
		if err != nil || m.Sequence != 7 || !bytes.Equal(m.Data, body) {
			t.Fatalf("%+v, %v", m, err)
		}
		if m.Unreadable && (m.Header != nil || m.ID != "") {
			t.Errorf("headers of what does not decode: %v", m.Header)
		}
		if _, err := m.Event(); err == nil && (m.Unreadable || m.Header.Get("Status") != "") {
			t.Error("an event with headers that no event has")
		}
	})
}
