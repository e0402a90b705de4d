package leader

import (
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
