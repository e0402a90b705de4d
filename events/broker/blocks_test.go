package broker

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// What deploy/erasing.md says of the broker's files: a purged text stays in its block
// while most of that is in use, and goes once more than half of it has been purged.
func TestBlocksAreCompacted(t *testing.T) {
	dir := t.TempDir()
	srv, err := server.NewServer(&server.Options{JetStream: true, StoreDir: dir, Port: -1, NoSigs: true, SyncInterval: 100 * time.Millisecond})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	nc, err := nats.Connect(srv.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, DenyDelete: true})
	require.NoError(t, err)
	const word = "KANAREKWKOPALNI"
	text := strings.Repeat("x", 20_000)
	for i := range 600 { // more than one block of 8 MiB
		body := text
		if i == 0 {
			body += word
		}
		_, err := js.Publish(t.Context(), "s."+string(rune('a'+i%20))+"."+time.Duration(i).String(), []byte(body))
		require.NoError(t, err)
	}
	kept := func() bool {
		found := false
		err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
			if err == nil && f.Type().IsRegular() {
				b, _ := os.ReadFile(path) // one that is removed meanwhile has nothing
				found = found || bytes.Contains(b, []byte(word))
			}
			return nil
		})
		require.NoError(t, err)
		return found
	}
	purge := func(subject string) {
		require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(subject)))
	}
	purge("s.a.0s")
	if !kept() {
		t.Error("the block has lost a purged text at once: the page says less than is true")
	}
	for c := 'a'; c < 'p'; c++ {
		purge("s." + string(c) + ".>")
	}
	for until := time.Now().Add(20 * time.Second); kept(); {
		if time.Now().After(until) {
			t.Fatal("the text is still in a block that is mostly purged")
		}
	}
}
