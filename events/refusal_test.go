package events_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
)

// What the broker says beside a question that it does not answer is in the error, for the subject asked alone.
func TestRefusal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := `authorization { users = [{user: u, password: u, permissions: {publish: "$JS.API.STREAM.INFO.S", subscribe: "_INBOX.u.>"}}] }`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := eventstest.Broker(t, func(c *broker.Config) { c.Addr, c.ConfigFile = "127.0.0.1:0", file })
	for inbox, want := range map[string]string{
		"_INBOX.u": "may not publish to $JS.API.STREAM.DELETE.S",
		"_INBOX.v": "may not listen to _INBOX.v.>",
		"_INBOX":   "may not listen to _INBOX.>",
	} {
		nc, err := nats.Connect(b.ClientURL(), nats.UserInfo("u", "u"), nats.CustomInboxPrefix(inbox),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		question := "$JS.API.STREAM.INFO.S"
		if inbox == "_INBOX.u" {
			question = "$JS.API.STREAM.DELETE.S"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = nc.RequestWithContext(ctx, question, nil)
		if said := events.Refusal(nc, err, question); !strings.Contains(said.Error(), want) {
			t.Errorf("%s: %v, want %q", inbox, said, want)
		}
		if inbox == "_INBOX.u" {
			if said := events.Refusal(nc, err, "$JS.API.STREAM.INFO.S"); said != err {
				t.Error("another question's refusal:", said)
			}
		}
		if said := events.Refusal(nc, jetstream.ErrStreamNotFound, question); said != jetstream.ErrStreamNotFound {
			t.Error("an answer was changed:", said)
		}
	}
}
