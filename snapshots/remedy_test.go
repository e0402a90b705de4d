package snapshots

import (
	"os"
	"syscall"
	"testing"

	bolterrors "go.etcd.io/bbolt/errors"
)

// What the system and bbolt say of a store or a data directory is followed by what to do.
func TestRemedy(t *testing.T) {
	disk := func(number syscall.Errno) error { return &os.PathError{Op: "open", Path: "f", Err: number} }
	for _, c := range []struct {
		err  error
		want string
	}{
		{disk(syscall.EISDIR), "; move that directory away, or choose another data directory with --data-dir"},
		{disk(syscall.ENOTDIR), "; choose a directory with --data-dir"},
		{disk(syscall.EACCES), "; make it readable and writable for this user, or choose another data directory with --data-dir"},
		{disk(syscall.ENOENT), "; make that directory, or choose another with --data-dir"},
		{bolterrors.ErrTimeout, "; close the other program that has the file open"},
		{disk(syscall.ENOSPC), "; make space on the disk"},
		{disk(syscall.EDQUOT), "; make space on the disk"},
		{disk(syscall.EROFS), "; make the disk writable, or choose a data directory on another with --data-dir"},
		{disk(syscall.EIO), "; see to the disk, or move the file away: the stream fills a new one"},
	} {
		if got := remedy(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
