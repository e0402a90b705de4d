//go:build !race

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// fullDisk is a disk that gets full under one part of the server.
type fullDisk struct {
	part, size string // a directory below the data directory, and what the disk holds
	says       string // in /projection
	refused    []string
	remedy     string // in the command's error
	restart    bool   // the process is restarted once there is room
}

// TestDisks: one part of the server is on a disk that gets full under it. Everything that was
// acknowledged is served exactly, and no reader is turned away; /projection and the commands name the
// trouble; nothing is left behind. Once there is room everything works again, also after a kill
// (httpapi/CONTRACT.md#readiness).
func TestDisks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]fullDisk{
		"store":  {size: "8m", says: "The store cannot be written", refused: []string{"rebuild"}, remedy: "no space left"},
		"broker": {part: "broker", size: "32m", says: "The embedded broker takes in no events", refused: []string{"snapshot", "create"}, remedy: "make space on the broker's disk", restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c fullDisk) run(t *testing.T) {
	k := newKiller(t, 1, 40)
	for i := range k.pool { // large entries fill a disk soon
		k.pool[i].Reason = strings.Repeat(k.pool[i].Reason+" ", 1+8000/(1+len(k.pool[i].Reason)))
	}
	d := mountDisk(t, filepath.Join(k.data, c.part), c.size)
	if c.part == "" {
		mountDisk(t, filepath.Join(k.data, "broker"), "512m")
	}
	k.start()
	k.feed(200)
	k.saved()
	_, endReading := registrytest.StartReaders(t, k.HTTP, 1)

	require.NoError(t, d.fill(0))
	k.until("/projection says: "+c.says, func() bool {
		k.feed(400)
		p := k.projection()
		return p.LastError != nil && strings.Contains(*p.LastError, c.says)
	})
	_, err := k.try(c.refused...)
	require.ErrorContains(t, err, c.remedy)
	k.until("nothing is left behind", func() bool { // the server may end its part of a command after the client
		left, _ := filepath.Glob(k.storePath() + ".*")
		return len(left) == 0
	})
	k.right()

	require.NoError(t, d.free())
	endReading()
	if c.restart {
		k.stop()
		k.start()
	}
	k.saved()
	k.until("100 events are acknowledged", func() bool {
		before := len(k.acked)
		k.feed(100)
		return len(k.acked)-before == 100
	})
	k.run("snapshot", "create")
	k.right()

	k.End(os.Kill)
	k.start()
	k.notBackwards()
	k.right()
	k.stop()
	require.NoFileExists(t, k.storePath()+".damaged")
}

// mountDisk mounts a disk of a size, and shows one of its directories at path. Where tests may not
// mount it skips the test, and fails it in CI.
func mountDisk(t *testing.T, path, size string) *disk {
	t.Helper()
	d, err := newDisk(t.TempDir(), path, size)
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip("only root may mount a disk")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.unmount()) })
	return d
}
