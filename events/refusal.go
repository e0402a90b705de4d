package events

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// Refusal adds to err, of a question to JetStream on subject that got no answer in time, what the broker said of it: that this
// user may not ask it, or not listen to the answer. It says so beside the question and never in an answer. Any other err is
// returned as it is.
func Refusal(nc *nats.Conn, err error, subject string) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, errNoAnswer) {
		return err
	}
	last := nc.LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) {
		return err
	}
	said, inbox := last.Error(), nc.Opts.InboxPrefix
	if inbox == "" {
		inbox = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	switch {
	case strings.Contains(said, `Publish to "`+subject):
		return fmt.Errorf("this user of the broker may not publish to %s: %w", subject, err)
	case strings.Contains(said, `Subscription to "`+inbox):
		return fmt.Errorf("this user of the broker may not listen to %s.>, where it awaits answers: %w", inbox, err)
	}
	return err
}
