package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/projector"
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

// Every error that something can be done about is followed by what.
func TestAdvice(t *testing.T) {
	t.Parallel()
	broker := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("ask: %w", &jetstream.APIError{ErrorCode: code, Description: "no"})
	}
	disk := func(number syscall.Errno) error { return &os.PathError{Op: "open", Path: "f", Err: number} }
	asked := func(err error) string { return advised(err).Error() }
	for _, c := range []struct {
		advice func(error) string
		err    error
		want   string
	}{
		{asked, fmt.Errorf("%w: %w", events.ErrRefused, projector.ErrSilent), ""},
		{asked, projector.ErrNoJetStream, "; correct --nats-url or --nats-creds"},
		{asked, projector.ErrSilent, "; see whether enough brokers are up, and try again"},
		{asked, broker(10008), "; see whether enough brokers are up, and try again"},
		{asked, broker(10023), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10047), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10049), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10077), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, disk(syscall.ENOSPC), "; make space on the disk"},
		{asked, disk(syscall.EDQUOT), "; make space on the disk"},
		{insteadOf, disk(syscall.EIO), "see to the file and the disk"},
		{insteadOf, context.DeadlineExceeded, "see to the broker and try again"},
		{insteadOf, nats.ErrTimeout, "see to the broker and try again"},
		{insteadOf, nats.ErrConnectionClosed, "see to the broker and try again"},
		{insteadOf, io.ErrUnexpectedEOF, "use another one: registry snapshot list shows those in the object store"},
		{reading, disk(syscall.ENOENT), "correct its name"},
		{reading, disk(syscall.ENOTDIR), "correct its name"},
		{reading, disk(syscall.EACCES), "make it readable for this user"},
		{reading, disk(syscall.EISDIR), "name a file in it"},
		{reading, disk(syscall.ENOSPC), "make space on the disk"},
		{writing, disk(syscall.ENOENT), "make its directory, or name a file elsewhere"},
		{writing, disk(syscall.EACCES), "name a file in a directory that this user may write to"},
		{writing, disk(syscall.EROFS), "name a file in a directory that this user may write to"},
		{writing, disk(syscall.ENOTDIR), "name a file in a directory that this user may write to"},
		{writing, disk(syscall.EISDIR), "name a file in it"},
		{writing, disk(syscall.EDQUOT), "make space on the disk"},
		{writing, disk(syscall.EIO), "see to the disk, or try again"},
	} {
		if got := c.advice(c.err); got != c.want && got != fmt.Sprint(projector.Reason(c.err), c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
