package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	natsd "github.com/nats-io/nats-server/v2/server"

	"example.org/registry/events"
)

// natsServer runs a broker that is not ours.
func natsServer(t *testing.T, opts *natsd.Options) string {
	t.Helper()
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", natsd.RANDOM_PORT, true, true
	opts.StoreDir = t.TempDir()
	s, err := natsd.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the broker does not start")
	}
	return s.ClientURL()
}

// What a broker cannot do is said with the broker's name and what to do, by every command alike.
func TestBrokerAdvice(t *testing.T) {
	t.Parallel()
	without := natsServer(t, &natsd.Options{})
	alone := natsServer(t, &natsd.Options{
		ServerName: "one", JetStream: true, Routes: natsd.RoutesFromStr("nats://127.0.0.1:1,nats://127.0.0.1:2"),
		Cluster: natsd.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: natsd.RANDOM_PORT},
	})
	for url, want := range map[string]string{
		without: `it has no JetStream, or this user may not use it; correct --nats-url or --nats-creds$`,
		alone:   `(its JetStream does not answer|JetStream system temporarily unavailable).*; see whether enough brokers are up, and try again$`,
	} {
		for _, args := range [][]string{{"snapshot", "list"}, {"snapshot", "verify", "name"}, {"publish", "-"}} {
			err := run(t.Context(), append(args, "--nats-url="+url), func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), "broker at "+url+": ") || !regexp.MustCompile(want).MatchString(err.Error()) {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}

// A run that the broker stops says where the broker's reason is.
func TestStoppedPublishSaysWhere(t *testing.T) {
	r := &publishing{complaint: io.Discard, ids: idSet{}, pending: []line{{}},
		send: func(context.Context, []events.Message) (events.Summary, error) {
			return events.Summary{}, errors.New("no acknowledgement")
		}}
	err := r.flush(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "; publish the same files again to send the rest; if it stops again, "+
		"the broker's log or /projection of the server says why") {
		t.Error(err)
	}
}
