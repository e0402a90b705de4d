//go:build faultinject

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// place is a failpoint and how a server comes by it.
type place struct {
	name    string
	hits    int           // how often a server passes it in a short life; 0: as often as it is fed
	prepare func(*killer) // before each start that is to fail
	poison  bool          // events that are rejected are published, too
	ask     string        // what is asked of the admin listener meanwhile
	many    bool          // entries, so that there is an index to be written
}

// places is every failpoint of the program; TestFailpointsAreAllKilledAt compares it with the
// sources.
func places() []place {
	return []place{
		{name: "start/locked", hits: 1},
		{name: "start/before-load", hits: 1},
		{name: "start/connected", hits: 1},
		{name: "store/before-create", hits: 1, prepare: noStore},
		{name: "store/after-create", hits: 1, prepare: noStore},
		{name: "store/before-set-aside", hits: 1, prepare: damageStore},
		{name: "store/after-set-aside", hits: 1, prepare: damageStore},
		{name: "store/before-known", hits: 1, prepare: noStore},
		{name: "store/before-transaction"},
		{name: "store/in-transaction"},
		{name: "store/after-transaction"},
		{name: "projector/received"},
		{name: "projector/applied"},
		{name: "rebuild/begun", hits: 1, ask: "/rebuild?yes=true"},
		{name: "rebuild/saved", hits: 1, ask: "/rebuild?yes=true"},
		{name: "rebuild/before-replace", hits: 1, ask: "/rebuild?yes=true"},
		{name: "rebuild/after-replace", hits: 1, ask: "/rebuild?yes=true"},
		{name: "projector/before-copy", poison: true},
		{name: "projector/after-copy", poison: true},
		{name: "snapshot/packed", hits: 2, ask: "/snapshots?output=1"},
		{name: "upload/chunk", hits: 1, ask: "/snapshots"},
		{name: "upload/before-name", hits: 1, ask: "/snapshots"},
		{name: "upload/named", hits: 1, ask: "/snapshots"},
		{name: "restore/part", hits: 1, prepare: onlySnapshot},
		{name: "restore/written", hits: 1, prepare: onlySnapshot},
		{name: "restore/before-rename", hits: 1, prepare: onlySnapshot},
		{name: "restore/renamed", hits: 1, prepare: onlySnapshot},
		{name: "index/emptied", hits: 1, many: true},
		{name: "index/before-write", hits: 3, many: true},
		{name: "index/written", hits: 3, many: true},
		{name: "index/kept", hits: 3, many: true},
		{name: "ranked/before-batch", hits: 3},
		{name: "ranked/after-batch", hits: 3},
		{name: "ranked/merged", hits: 1, many: true},
	}
}

// The program dies as by kill -9 at each of its failpoints, at the first, second and third hit, and
// starts again: no acknowledged event is lost, the digest is that of a replay, and no store had to
// be set aside (promises 1, 3 and 4).
func TestFailpoints(t *testing.T) {
	for _, p := range places() {
		t.Run(strings.ReplaceAll(p.name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			k := newFailing(t)
			k.poisoned = p.poison
			if p.many {
				k.pool = eventstest.Entries(1200, 1)
			}
			k.survive() // something is saved
			for hit := 1; hit <= 3 && (p.hits == 0 || hit <= p.hits); hit++ {
				if p.prepare != nil {
					p.prepare(k)
				}
				k.dieAt(p, hit)
				if strings.HasPrefix(p.name, "upload/") {
					noStore(k) // to be restored from what was uploaded, or replayed
				}
				k.survive()
				k.nothingLeft()
			}
			if p.name == "start/connected" {
				return // the store may be loading beside it, and one whose loading died is set aside
			}
			if aside, _ := filepath.Glob(k.storePath() + ".damaged-*"); (len(aside) > 0) != strings.HasSuffix(p.name, "set-aside") {
				t.Errorf("set aside: %q", aside)
			}
		})
	}
}

// dieAt runs the server until it dies at a hit of the point, feeding it meanwhile.
func (k *killer) dieAt(p place, hit int) {
	k.t.Helper()
	k.env = []string{fmt.Sprintf("REGISTRY_FAILPOINTS=%s=kill:%d", p.name, hit)}
	defer func() { k.env = nil }()
	k.launch()
	if k.WaitReady(k.t.Context()) == nil {
		k.feedUntilDead(p)
	}
	select {
	case <-k.Ended():
	case <-time.After(patience):
		k.End(os.Kill)
		k.t.Fatalf("hit %d of %s was never reached", hit, p.name)
	}
	if state := k.State().Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != syscall.SIGKILL {
		k.t.Fatalf("not killed at %s: %v %s", p.name, k.State(), k.Tail())
	}
}

// feedUntilDead publishes a few events at a time until the server dies.
func (k *killer) feedUntilDead(p place) {
	for range 1000 {
		if k.Exited() {
			return
		}
		if p.poison {
			publishPoison(k.NATS)
		}
		if p.ask != "" {
			k.post(p.ask)
		}
		n := 20
		if p.many {
			n = len(k.pool)
		}
		k.feed(n)
		k.rest(50) // so that the saver and the projector see more than one batch
	}
}

// publishPoison publishes an event that is rejected; failing is no matter.
func publishPoison(url string) {
	nc, err := nats.Connect(url, nats.NoReconnect())
	if err != nil {
		return
	}
	defer nc.Close()
	_ = nc.Publish("registry.scammers.poison", []byte("{"))
	_ = nc.Flush()
}

// nothingLeft looks for temporary files after a start.
func (k *killer) nothingLeft() {
	k.t.Helper()
	for _, pattern := range []string{"temporary/*", "index/*", "registry.db.restoring", "registry.db.rebuilding*"} {
		left, _ := filepath.Glob(filepath.Join(k.data, pattern))
		if len(left) > 0 {
			k.t.Errorf("left behind: %q", left)
		}
	}
}

func noStore(k *killer) {
	require.NoError(k.t, os.Remove(k.storePath()))
	k.checkpoint = 0 // by the operator's doing
}

// onlySnapshot leaves the store's content in the object store alone.
func onlySnapshot(k *killer) {
	k.start()
	k.post("/snapshots")
	k.stop()
	noStore(k)
}

func damageStore(k *killer) {
	require.NoError(k.t, os.Truncate(k.storePath(), 100))
}

// A transaction that fails at any point, kept or not, costs nothing: it is written again, readers
// see nothing of it, and a kill afterwards finds the right state.
func TestFailpointErrors(t *testing.T) {
	for _, name := range []string{"store/before-transaction", "store/in-transaction", "store/after-transaction",
		"projector/received", "projector/before-copy", "projector/after-copy"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			k := newFailing(t)
			k.poisoned = true
			k.survive()
			k.env = []string{"REGISTRY_FAILPOINTS=" + name + "=error:1"}
			k.start()
			for range 5 {
				publishPoison(k.NATS)
				k.feed(20)
			}
			k.right()
			k.saved()
			k.End(os.Kill)
			k.env = nil
			k.survive()
		})
	}
}

// A directory that cannot be synced after a restore: the command says what is in place now, and a
// server that starts from a snapshot goes on with it.
func TestFailpointRestoreNotSynced(t *testing.T) {
	t.Parallel()
	k := newFailing(t)
	k.survive()
	onlySnapshot(k)
	k.env = []string{"REGISTRY_FAILPOINTS=restore/renamed=error:1"}
	k.start()
	k.End(os.Kill)
	if text := k.Log(); !strings.Contains(text, "after a power failure") || !strings.Contains(text, `"starting from a snapshot"`) {
		t.Error(text)
	}
}

// A disk that hangs stops neither the readers nor what is applied (promise 5).
func TestFailpointHangingDisk(t *testing.T) {
	t.Parallel()
	k := newFailing(t)
	k.survive()
	k.env = []string{"REGISTRY_FAILPOINTS=store/in-transaction=block:1"}
	k.start()
	for range 3 {
		k.feed(100)
		k.right()
	}
	if now := k.projection(); now.SnapshotSequence >= now.Checkpoint {
		t.Errorf("saved although the disk hangs: %+v", now)
	}
	k.End(os.Kill)
	k.env = nil
	k.survive()
}

// Every failpoint in the sources is killed at, and every one that is killed at is in the sources.
func TestFailpointsAreAllKilledAt(t *testing.T) {
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	var there, killed []string
	for room := range arrows() {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "doc.go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range call.FindAllSubmatch(text, -1) {
				there = append(there, string(m[1]))
			}
			return err
		})
		require.NoError(t, err)
	}
	for _, p := range places() {
		killed = append(killed, p.name)
	}
	slices.Sort(there)
	slices.Sort(killed)
	if !slices.Equal(there, killed) {
		t.Errorf("in the sources: %q\nkilled at: %q", there, killed)
	}
}

// While the copying of a rejected event hangs, the checkpoint on disk stays before it, so that the
// event is copied after all (promise 8, readmodel/doc.go; events/CONTRACT.md#rejection). What comes
// after it is still applied.
func TestFailpointHangingCopy(t *testing.T) {
	t.Parallel()
	k := newFailing(t)
	k.poisoned = true
	k.survive()
	k.env = []string{"REGISTRY_FAILPOINTS=projector/before-copy=block:1"}
	k.start()
	publishPoison(k.NATS)
	for range 20 { // long enough for the saver to have come by, several times over
		k.feed(100)
		k.rest(100)
	}
	stream := k.readStream()
	k.applied(stream[len(stream)-1].seq)
	k.answersAreRight(stream)
	k.End(os.Kill)
	k.env = nil
	k.survive()
}
