package events

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// ErrRefused matches an error that Refusal has explained: the broker's configuration has to change, so that asking again
// is of no use.
var ErrRefused = errors.New("refused by the broker")

// refused is an unanswered question and why there was no answer.
type refused struct {
	what string
	err  error
}

func (r *refused) Error() string   { return "this user of the broker may not " + r.what }
func (r *refused) Unwrap() []error { return []error{ErrRefused, r.err} }

// Refusal replaces err, of a question to the broker that got no answer in time, by what the broker said of it: that this
// user may not ask it, or not listen to the answer. It says so beside the question and never in an answer, so that only what
// it said last, of the whole connection, is known: that must be of a subject that begins with prefix. An empty one is for
// connections that ask one question at a time. Any other err is returned as it is.
func Refusal(nc *nats.Conn, err error, prefix string) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, errNoAnswer) {
		return err
	}
	last := nc.LastError()
	if errors.Is(err, ErrRefused) || !errors.Is(last, nats.ErrPermissionViolation) {
		return err
	}
	inbox := nc.Opts.InboxPrefix
	if inbox == "" {
		inbox = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	_, asked, _ := strings.Cut(last.Error(), `Publish to "`)
	asked, _, published := strings.Cut(asked, `"`)
	switch {
	case published && strings.HasPrefix(asked, prefix):
		return &refused{"publish to " + asked, err}
	case strings.Contains(last.Error(), `Subscription to "`+inbox):
		return &refused{"listen to " + inbox + ".>, where it awaits answers; --nats-inbox-prefix says where else it may", err}
	}
	return err
}
