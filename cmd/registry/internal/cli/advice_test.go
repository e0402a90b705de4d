package cli

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/natserr"
)

// TestAdvice: an error that something can be done about is followed by the remedy.
func TestAdvice(t *testing.T) {
	t.Parallel()
	broker := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("ask: %w", &jetstream.APIError{ErrorCode: code, Description: "no"})
	}
	disk := func(number syscall.Errno) error { return &os.PathError{Op: "open", Path: "f", Err: number} }
	advise := func(err error) string { return Advise(err).Error() }
	for name, c := range map[string]struct {
		advice func(error) string
		err    error
		want   string // the end of it
	}{
		"refused and silent": {advise, fmt.Errorf("%w: %w", natserr.ErrRefused, natserr.ErrSilent), natserr.ErrSilent.Error()},
		"no JetStream":       {advise, natserr.ErrNoJetStream, "; correct --nats-url or --nats-creds"},
		"silent":             {advise, natserr.ErrSilent, "; see whether enough brokers are up, and try again"},
		"no leader":          {advise, broker(10008), "; see whether enough brokers are up, and try again"},
		"broker's disk full": {advise, broker(10077), "; make space on the broker's disk: its log says what else may be wrong"},
		"disk full":          {advise, disk(syscall.ENOSPC), "; make space on the disk"},
		"quota":              {advise, disk(syscall.EDQUOT), "; make space on the disk"},
		"missing":            {Remedy, disk(syscall.ENOENT), "correct its name"},
		"below a file":       {Remedy, disk(syscall.ENOTDIR), "correct its name"},
		"not permitted":      {Remedy, disk(syscall.EACCES), "name a file that this user may use"},
		"directory":          {Remedy, disk(syscall.EISDIR), "name a file in it"},
		"a damaged snapshot": {Remedy, io.ErrUnexpectedEOF, "^"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Regexp(t, c.want+"$", c.advice(c.err))
		})
	}
}
