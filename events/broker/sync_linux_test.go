package broker

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// child starts a broker on what is in dir and sends again what written has sent.
func child(dir string) int {
	b, err := Start(Config{StoreDir: dir, Addr: "127.0.0.1:0"})
	if err != nil {
		fmt.Print(err)
		return 1
	}
	defer b.Shutdown()
	duplicate, err := sendOne(b)
	fmt.Print("duplicate: ", duplicate, " ", err)
	return 0
}

// sendOne sends a message that has always the same id.
func sendOne(b *Broker) (duplicate bool, err error) {
	nc, err := b.Connect()
	if err != nil {
		return false, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		return false, err
	}
	ack, err := js.Publish(ctx, "s", []byte("x"), jetstream.WithMsgID("one"))
	if err != nil {
		return false, err
	}
	return ack.Duplicate, nil
}

// written is a directory with a message that no sync has followed, as it is after a process was
// killed between the two.
func written(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	b := start(t, Config{StoreDir: dir, UnsafeNoSync: true})
	if duplicate, err := sendOne(b); err != nil || duplicate {
		t.Fatal(duplicate, err)
	}
	b.Shutdown()
	return dir
}

// trace runs the child under strace and returns what it printed, and its syncs and listeners.
func trace(t *testing.T, dir string, inject ...string) (printed string, calls []string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("strace is missing")
	}
	if err != nil {
		t.Skip("strace is missing")
	}
	file := filepath.Join(t.TempDir(), "calls")
	args := append([]string{"-f", "-qq", "-y", "-o", file, "-e", "trace=fsync,fdatasync,listen"}, inject...)
	cmd := exec.CommandContext(t.Context(), strace, append(args, os.Args[0])...)
	cmd.Env = append(os.Environ(), "BROKER_CHILD="+dir)
	out, _ := cmd.Output() // its status is the child's
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(out), strings.Split(string(text), "\n")
}

// What a killed process has only written is acknowledged as a duplicate by the next one, which
// therefore syncs it before anybody can ask: every file and every directory.
func TestSyncsWhatWasWritten(t *testing.T) {
	dir := written(t)
	var want []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		want = append(want, path)
		return err
	})
	require.NoError(t, err)
	printed, calls := trace(t, dir)
	if printed != "duplicate: true <nil>" {
		t.Fatalf("the child says %q", printed)
	}
	synced, listens := map[string]bool{}, false
	for _, call := range calls {
		if listens = strings.Contains(call, " listen("); listens {
			break
		}
		_, path, _ := strings.Cut(call, "<")
		path, _, _ = strings.Cut(path, ">")
		synced[path] = true
	}
	if !listens {
		t.Fatalf("it never listens: %q", calls)
	}
	for _, path := range want {
		if !synced[path] {
			t.Errorf("not synced before clients can come: %s", path)
		}
	}
	if !strings.Contains(fmt.Sprint(want), "/msgs/1.blk") {
		t.Errorf("no message was there: %q", want)
	}
}

// No client is served what a disk does not confirm, and the error says why.
func TestRefusesWhatCannotBeSynced(t *testing.T) {
	dir := written(t)
	block := filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs", "1.blk")
	printed, _ := trace(t, dir, "-P", block, "-e", "inject=fsync:error=EIO")
	want := "embedded broker: what an earlier run has written cannot be synced: sync " + block + ": input/output error; mend the disk and start again"
	if printed != want {
		t.Errorf("the child says %q, want %q", printed, want)
	}
}

// A file system that cannot sync directories is no broken disk; one that says so of a file is.
func TestSyncsWhereDirectoriesCannotBe(t *testing.T) {
	dir := written(t)
	messages := filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs")
	for path, want := range map[string]string{messages: "duplicate: true <nil>", filepath.Join(messages, "1.blk"): "invalid argument"} {
		if printed, _ := trace(t, dir, "-P", path, "-e", "inject=fsync:error=EINVAL"); !strings.Contains(printed, want) {
			t.Errorf("%s: the child says %q, want %q", path, printed, want)
		}
	}
}
