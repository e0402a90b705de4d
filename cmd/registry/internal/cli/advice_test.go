package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
)

// Every error that something can be done about is followed by what.
func TestAdvice(t *testing.T) {
	t.Parallel()
	broker := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("ask: %w", &jetstream.APIError{ErrorCode: code, Description: "no"})
	}
	disk := func(number syscall.Errno) error { return &os.PathError{Op: "open", Path: "f", Err: number} }
	asked := func(err error) string { return Advise(err).Error() }
	for _, c := range []struct {
		advice func(error) string
		err    error
		want   string
	}{
		{asked, fmt.Errorf("%w: %w", natserr.ErrRefused, natserr.ErrSilent), ""},
		{asked, natserr.ErrNoJetStream, "; correct --nats-url or --nats-creds"},
		{asked, natserr.ErrSilent, "; see whether enough brokers are up, and try again"},
		{asked, broker(10008), "; see whether enough brokers are up, and try again"},
		{asked, broker(10023), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10047), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10049), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, broker(10077), "; make space on the broker's disk: its log says what else may be wrong"},
		{asked, disk(syscall.ENOSPC), "; make space on the disk"},
		{asked, disk(syscall.EDQUOT), "; make space on the disk"},
		{SnapshotAdvice, disk(syscall.EIO), "check the file and the disk"},
		{SnapshotAdvice, context.DeadlineExceeded, "check the broker and try again"},
		{SnapshotAdvice, nats.ErrTimeout, "check the broker and try again"},
		{SnapshotAdvice, nats.ErrConnectionClosed, "check the broker and try again"},
		{SnapshotAdvice, io.ErrUnexpectedEOF, "use another one: registry snapshot list shows those in the object store"},
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
		{reading, errors.New("not a regular file"), "name another file"},
		{writing, disk(syscall.EIO), "check the disk, or try again"},
		{writing, errors.New("it exists and is no regular file"), "name another file"},
	} {
		if got := c.advice(c.err); got != c.want && got != fmt.Sprint(natserr.Explain(nil, c.err, ""), c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
