package natserr_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/natserr"
)

// What the broker says beside a request that it does not answer is in the error, for the subject of
// the request alone.
func TestRefusal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := `authorization { users = [{user: u, password: u, permissions: {publish: "$JS.API.STREAM.INFO.S", subscribe: "_INBOX.u.>"}}] }`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	b := eventstest.Broker(t, func(c *broker.Config) { c.Addr, c.ConfigFile = "127.0.0.1:0", file })
	for inbox, want := range map[string]string{
		"_INBOX.u": "may not publish to $JS.API.STREAM.DELETE.S",
		"_INBOX.v": "may not listen to _INBOX.v.>",
		"_INBOX":   "may not listen to _INBOX.>",
	} {
		nc, err := nats.Connect(b.ClientURL(), nats.UserInfo("u", "u"), nats.CustomInboxPrefix(inbox),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		require.NoError(t, err)
		defer nc.Close()
		subject := "$JS.API.STREAM.INFO.S"
		if inbox == "_INBOX.u" {
			subject = "$JS.API.STREAM.DELETE.S"
		}
		eventstest.Until(t, func() bool { // the refusal arrives by itself, perhaps after the request has timed out
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err = nc.RequestWithContext(ctx, subject, nil)
			return errors.Is(natserr.Explain(nc, err, subject), natserr.ErrRefused)
		})
		require.ErrorContains(t, natserr.Explain(nc, err, subject), want, inbox)
		if inbox == "_INBOX.u" {
			if said := natserr.Explain(nc, err, "$JS.API.STREAM.INFO.S"); errors.Is(said, natserr.ErrRefused) {
				t.Error("another request's refusal:", said)
			}
		}
		if said := natserr.Explain(nc, jetstream.ErrStreamNotFound, subject); said != jetstream.ErrStreamNotFound {
			t.Error("an answer was changed:", said)
		}
	}
}

// Each error of the library has one explanation and one remedy.
func TestExplainAndRemedy(t *testing.T) {
	api := func(code jetstream.ErrorCode) error { return &jetstream.APIError{ErrorCode: code} }
	for _, c := range []struct {
		err    error
		is     error  // nil: as it was
		remedy string // its beginning; empty: none
	}{
		{nil, nil, ""},
		{jetstream.ErrStreamNotFound, nil, ""},
		{natserr.ErrRefused, nil, ""},
		{jetstream.ErrJetStreamNotEnabled, natserr.ErrNoJetStream, "correct --nats-url"},
		{jetstream.ErrJetStreamNotEnabledForAccount, natserr.ErrNoJetStream, "correct --nats-url"},
		{nats.ErrNoResponders, natserr.ErrNoJetStream, "correct --nats-url"},
		{nats.ErrTimeout, natserr.ErrSilent, "see whether enough brokers"},
		{context.DeadlineExceeded, natserr.ErrSilent, "see whether enough brokers"},
		{context.Canceled, nil, ""},
		{api(10008), nil, "see whether enough brokers"},
		{api(10023), nil, "make space"},
		{api(10047), nil, "make space"},
		{api(10049), nil, "make space"},
		{api(10077), nil, "make space"},
		{x509.UnknownAuthorityError{}, nil, "name the authority"},
		{x509.CertificateInvalidError{Cert: &x509.Certificate{}}, nil, "give it a valid certificate"},
		{x509.HostnameError{Certificate: &x509.Certificate{}}, nil, "give it a valid certificate"},
		{nats.ErrSecureConnWanted, nil, "it speaks no TLS"},
		{nats.ErrAuthorization, nil, "name this user's file"},
		{nats.ErrNoServers, nil, "start the broker"},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("around: %w", c.err)
		}
		got := natserr.Explain(nil, err, "")
		if c.is == nil && got != err || c.is != nil && (got.Error() != c.is.Error() || !errors.Is(got, c.is) || !errors.Is(got, c.err)) {
			t.Errorf("%v: explained as %v", err, got)
		}
		if again := natserr.Explain(nil, got, ""); again != got {
			t.Errorf("%v: explained again as %v", got, again)
		}
		for _, e := range []error{err, got} {
			if r := natserr.Remedy(e); !strings.HasPrefix(r, c.remedy) || (r == "") != (c.remedy == "") {
				t.Errorf("%v: remedy %q", e, r)
			}
		}
	}
}
