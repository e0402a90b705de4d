// Package natserr explains the errors of a NATS broker to an operator: one sentence for what
// happened, and one for what to do about it.
//
// The client library reports most mistakes in a broker's configuration as a request that timed out.
// The broker's own error arrives separately, as an error of the whole connection. Errors are wrapped,
// never replaced: errors.Is and errors.As still find the library's errors.
//
// Start with Explain, which finds the broker's error. Remedy says what to do.
package natserr

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Reasons why a broker that can be reached does not answer a request.
var (
	// ErrRefused matches the errors of requests that the user may not make. Retrying is useless until the
	// broker's configuration changes.
	ErrRefused = errors.New("refused by the broker")

	ErrNoJetStream = errors.New("it has no JetStream, or this user may not use it")
	ErrSilent      = errors.New("its JetStream does not answer; in a cluster: it has no leader, since too few nodes are up and connected")
)

// explained is an error of the library in an operator's words.
type explained struct {
	text        string
	kind, cause error // kind is one of the reasons above
}

func (e *explained) Error() string   { return e.text }
func (e *explained) Unwrap() []error { return []error{e.kind, e.cause} }

// Explain adds the reason to the error of a request or publish: the user may not make the request, there is
// no JetStream, or JetStream does not answer. Any other error, such as jetstream.ErrStreamNotFound, stays
// unchanged. The subject of the request begins with prefix. nc is nil if there is no connection.
func Explain(nc *nats.Conn, err error, prefix string) error {
	if nc != nil {
		err = explainRefusal(nc, err, prefix)
	}
	if isAny(err, ErrRefused, ErrNoJetStream, ErrSilent) {
		return err
	}

	if isAny(err, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, nats.ErrNoResponders) {
		return &explained{ErrNoJetStream.Error(), ErrNoJetStream, err}
	}
	if isTimeout(err) {
		return &explained{ErrSilent.Error(), ErrSilent, err}
	}
	return err
}

// explainRefusal explains a timeout by the connection's last error, if that is a permission violation. The
// violation must name a subject that begins with prefix, or the inbox for replies: else it is about another
// request.
func explainRefusal(nc *nats.Conn, err error, prefix string) error {
	if !isTimeout(err) || errors.Is(err, ErrRefused) {
		return err
	}

	last := nc.LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) {
		return err
	}

	// Did the broker refuse the request, or the inbox of the reply? The text has: Publish to "SUBJECT".
	_, afterQuote, _ := strings.Cut(last.Error(), `Publish to "`)
	subject, _, isPublish := strings.Cut(afterQuote, `"`)
	if isPublish && strings.HasPrefix(subject, prefix) {
		return &explained{"this user of the broker may not publish to " + events.MaskSubject(subject, nil), ErrRefused, err}
	}

	inbox := cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
	if strings.Contains(last.Error(), `Subscription to "`+inbox) {
		return &explained{"this user of the broker may not listen to " + inbox +
			".>, where it awaits answers; --nats-inbox-prefix says where else it may", ErrRefused, err}
	}
	return err
}

// Codes of the broker's errors that are not in nats.go.
const (
	codeNotAvailable = 10008 // the cluster has no leader
	codeNoResources  = 10023
	codeNoStorage    = 10047
	codeNotCreated   = 10049 // the files of a stream
	codeNotStored    = 10077 // a message
)

// NotRunning is the remedy if the broker is not running.
const NotRunning = "start the broker, or correct --nats-url (REGISTRY_NATS_URL); without it registry serve has a broker of its own"

// Remedy returns the advice to an operator about the error of a connection or a request, as the end of a
// sentence in the imperative. It returns "" if there is no advice, and for a refusal, whose text has it.
func Remedy(err error) string {
	err = Explain(nil, err, "") // from here on, err matches the kind of its reason
	for _, known := range [...]struct {
		kind   error
		remedy string
	}{
		{ErrRefused, ""},
		{ErrNoJetStream, "correct --nats-url or --nats-creds"},
		{ErrSilent, tryAgain},
		{nats.ErrSecureConnWanted, "it speaks no TLS: give it a certificate, or write nats:// for tls://"},
		{nats.ErrAuthorization, "name this user's file with --nats-creds"},
		{nats.ErrNoServers, NotRunning},
	} {
		if errors.Is(err, known.kind) {
			return known.remedy
		}
	}

	if isA[x509.UnknownAuthorityError](err) {
		return "name the authority of its certificate with --nats-ca"
	}
	if isA[x509.CertificateInvalidError](err) || isA[x509.HostnameError](err) {
		return "give it a valid certificate for this address, or correct --nats-url"
	}

	switch apiCode(err) {
	case codeNotAvailable:
		return tryAgain
	case codeNoResources, codeNoStorage, codeNotCreated, codeNotStored:
		return "make space on the broker's disk: its log says what else may be wrong"
	}
	return ""
}

const tryAgain = "see whether enough brokers are up, and try again"

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// apiCode returns the broker's error code, or 0 if err has none.
func apiCode(err error) jetstream.ErrorCode {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// OneLine returns the text of err on one line: a server reports several mistakes on several lines.
func OneLine(err error) string {
	isBreak := func(r rune) bool { return r == '\n' || r == '\r' }
	lines := strings.FieldsFunc(strings.TrimSpace(err.Error()), isBreak)
	return strings.Join(lines, "; ")
}

func isTimeout(err error) bool {
	return isAny(err, context.DeadlineExceeded, nats.ErrTimeout, jetstream.ErrAsyncPublishTimeout)
}

// IsConflict reports whether a message was not stored because the last sequence differs from the sequence that
// the publisher expected.
func IsConflict(err error) bool {
	code := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}
