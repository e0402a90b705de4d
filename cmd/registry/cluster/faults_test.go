//go:build unix && !race && nightly

package cluster

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
)

// system is a cluster with two replicas, a backend, and a reader at each replica.
type system struct {
	t        *testing.T
	nodes    *nodes
	js       jetstream.JetStream
	replicas []*replica
	backend  *backend
	end      func() // ends the backend
	readers  []*registrytest.Readers
	hangUp   []func() // ends the reader of the same index
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t}
	s.nodes, s.js = startNodes(t)
	s.replicas = append(s.replicas, serve(t, t.TempDir(), s.nodes.urls(), "--snapshot-every=5s"))
	s.backend, s.end = publishing(t, s.js)
	s.replicas = append(s.replicas, serve(t, t.TempDir(), s.nodes.urls(), "--snapshot-every=5s"))
	filled(t, s.js, s.replicas...)
	for _, r := range s.replicas {
		reader, end := registrytest.StartReaders(t, r.HTTP, 1)
		s.readers, s.hangUp = append(s.readers, reader), append(s.hangUp, end)
	}
	until(t, "there is a snapshot", func() bool { return snapshotted(s.js, 1) })
	return s
}

// TestFaults takes one cluster under load through everything that happens to nodes.
func TestFaults(t *testing.T) {
	long(t)
	t.Parallel()
	s := newSystem(t)
	for i := range times(3, 50) {
		stepDown(t, s.js)
		s.healed("leader changed", i)
	}
	for i := range times(2, 20) {
		n := s.nodes.leader(s.js) // the worst one to lose
		if i%2 == 1 {
			n = (n + 1) % 3
		}
		s.nodes.kill(n)
		s.taken("node killed", i)
		s.peersMissing(1)
		s.nodes.start(n)
		s.healed("killed node back", i)
		s.peersMissing(0)
	}
	for i := range times(1, 10) {
		s.pauseLeader(i)
	}
	for i := range times(1, 5) {
		n := s.nodes.leader(s.js)
		s.nodes.kill(n)
		s.nodes.wipe(n)
		s.nodes.start(n)
		s.healed("node wiped", i)
	}
	for i := range times(1, 5) {
		s.loseQuorum(i)
	}
	s.compare()
}

// healWithin bounds the time from the first event that the stream takes again to replicas that lack
// nothing. Before that the brokers hold an election, which takes as long as it takes.
const healWithin = 10 * time.Second

// healed is called when a fault is over. It waits until the stream takes events and every replica
// follows, and logs how long that took.
func (s *system) healed(fault string, round int) {
	s.t.Helper()
	began := time.Now()
	before := s.backend.acked.Load()
	writes := until(s.t, "the stream takes events again", func() bool { return s.backend.acked.Load() > before })
	sequence := s.backend.last.Load()
	for i, r := range s.replicas {
		until(s.t, "a replica follows again", func() bool {
			if r.well(s.t, sequence) {
				return true
			}
			if time.Since(began) > registrytest.Patience-time.Second {
				s.t.Logf("replica %d: %+v", i, r.projection(s.t))
			}
			return false
		})
	}
	took := time.Since(began)
	s.t.Logf("%s %d: events taken after %v, replicas in step after %v", fault, round, writes.Round(time.Millisecond), took.Round(time.Millisecond))
	if took-writes > healWithin {
		s.t.Errorf("%s %d: replicas in step %v after the stream", fault, round, took-writes)
	}
	s.nodes.whole(s.js)
}

// peersMissing waits until a replica's metric says so.
func (s *system) peersMissing(n int) {
	s.t.Helper()
	until(s.t, fmt.Sprintf("registry_stream_peers_missing is %d", n), func() bool {
		a, err := registrytest.Ask(s.t.Context(), s.replicas[0].Admin+"/metrics", nil)
		return err == nil && strings.Contains(string(a.Body), fmt.Sprintf("\nregistry_stream_peers_missing %d\n", n))
	})
}

// taken waits until the stream takes events while a node is missing.
func (s *system) taken(fault string, round int) {
	s.t.Helper()
	before := s.backend.acked.Load()
	took := until(s.t, "the stream takes events without a node", func() bool { return s.backend.acked.Load() > before+2 })
	s.t.Logf("%s %d: events taken after %v", fault, round, took.Round(time.Millisecond))
}

// pauseLeader stops the leader until another node leads and is ahead, and lets it go on. For a
// moment it takes itself for the leader of a shorter stream, and tells its clients so.
func (s *system) pauseLeader(round int) {
	s.t.Helper()
	n := s.nodes.leader(s.js)
	s.nodes.signal(n, syscall.SIGSTOP)
	s.taken("leader stopped", round)
	until(s.t, "another node leads", func() bool { return s.nodes.leader(s.js) != n })
	s.nodes.signal(n, syscall.SIGCONT)
	s.healed("stopped leader back", round)
}

// loseQuorum takes two of three nodes away: nothing can be published, everything can be read. The
// node that is left goes on describing the stream as it knows it; no replica may take that for
// being up to date.
func (s *system) loseQuorum(round int) {
	s.t.Helper()
	keep := s.nodes.leader(s.js) // the one that is believed for longest
	a, b := (keep+1)%3, (keep+2)%3
	s.nodes.kill(a)
	s.nodes.kill(b)
	var noticed time.Duration
	for _, r := range s.replicas {
		noticed += until(s.t, "a replica says that the stream does not answer", func() bool {
			e := r.projection(s.t).LastError
			return e != nil && (strings.Contains(*e, "does not answer") || strings.Contains(*e, "has no leader") || strings.Contains(*e, "cannot be reached"))
		})
	}
	s.t.Logf("quorum lost %d: every replica says so after %v", round, noticed.Round(time.Millisecond))
	s.restart(0)
	before := make([]int64, len(s.readers))
	for i, r := range s.readers {
		before[i] = r.Answered.Load()
	}
	for i, r := range s.readers {
		until(s.t, "readers get answers without a quorum", func() bool { return r.Answered.Load() > before[i]+100 })
	}
	s.nodes.start(a)
	s.nodes.start(b)
	s.healed("quorum back", round)
}

// restart stops a replica and starts it with what it saved; it must answer.
func (s *system) restart(i int) {
	s.t.Helper()
	s.hangUp[i]()
	if status := s.replicas[i].stop(); status != 0 {
		s.t.Errorf("exit status %d", status)
	}
	began := time.Now()
	s.replicas[i] = serve(s.t, filepath.Dir(s.replicas[i].data), s.nodes.urls(), "--snapshot-every=5s")
	s.t.Logf("a replica started without a quorum answers after %v", time.Since(began).Round(time.Millisecond))
	s.readers[i], s.hangUp[i] = registrytest.StartReaders(s.t, s.replicas[i].HTTP, 1)
}

// compare ends the load and compares everything.
func (s *system) compare() {
	s.t.Helper()
	s.end()
	frozen := 0
	for i, r := range s.replicas {
		frozen += strings.Count(r.Log(), `"msg":"frozen`)
		s.hangUp[i]()
	}
	s.t.Logf("%d events acknowledged up to sequence %d, publishing repeated %d times; replicas froze %d times",
		s.backend.acked.Load(), s.backend.last.Load(), s.backend.repeated.Load(), frozen)
	agree(s.t, s.nodes, lastOf(s.t, s.js), s.replicas...)
	for _, r := range s.replicas {
		require.NoError(s.t, s.backend.shown(s.t.Context(), r, rand.New(rand.NewPCG(6, 6))))
	}
}

// filled waits until replicas have what the stream holds. Those that were started on an empty
// stream answer at sequence 0 until then, which readers take for an error.
func filled(t *testing.T, js jetstream.JetStream, replicas ...*replica) {
	t.Helper()
	last := lastOf(t, js)
	for _, r := range replicas {
		until(t, "a replica has the first content", func() bool { return r.projection(t).Checkpoint >= last })
	}
}

// lastOf returns the stream's last sequence. What was sent last may be stored without having been
// acknowledged.
func lastOf(t *testing.T, js jetstream.JetStream) (last uint64) {
	t.Helper()
	until(t, "the stream says where it ends", func() bool {
		i := info(js, events.DefaultStream)
		if i != nil {
			last = i.State.LastSeq
		}
		return i != nil
	})
	return last
}
