//go:build !race

package cluster

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// system is a cluster with two replicas, a writer, and a reader at each replica.
type system struct {
	t        *testing.T
	nodes    *nodes
	js       jetstream.JetStream
	replicas []*replica
	dirs     []string // their data directories
	writer   *writer
	readers  []*reader
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, nodes: startNodes(t), dirs: []string{t.TempDir(), t.TempDir()}}
	s.js = s.nodes.connect()
	s.nodes.formed(s.js)
	s.replicas = append(s.replicas, serve(t, s.dirs[0], s.nodes.urls(), "--snapshot-every=5s"))
	s.writer = writing(t, s.js)
	until(t, "there are entries", func() bool { n, _ := s.writer.done(); return n >= len(s.writer.entries) })
	s.replicas = append(s.replicas, serve(t, s.dirs[1], s.nodes.urls(), "--snapshot-every=5s"))
	for _, r := range s.replicas {
		s.readers = append(s.readers, reading(t, r.HTTP, true))
	}
	until(t, "there is a snapshot", func() bool { return snapshotted(s.js, 1) })
	return s
}

// healWithin bounds the time from the first event that the stream takes again to replicas that lack nothing. Until then the
// brokers hold an election, which takes what it takes.
const healWithin = 10 * time.Second

// healed waits until what is published from now on has arrived everywhere and nobody complains, and logs how
// long that took since the fault was over.
func (s *system) healed(fault string, round int) {
	s.t.Helper()
	began := time.Now()
	before, _ := s.writer.done()
	writes := until(s.t, "the stream takes events again", func() bool { n, _ := s.writer.done(); return n > before })
	_, sequence := s.writer.done()
	for i, r := range s.replicas {
		until(s.t, "a replica follows again", func() bool {
			if r.well(s.t, sequence) {
				return true
			}
			if time.Since(began) > patience-time.Second {
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

// end compares everything.
func (s *system) end() {
	s.t.Helper()
	s.writer.end()
	count, last := s.writer.done()
	s.t.Logf("%d events acknowledged up to sequence %d, %d sent again; replicas were frozen %d times", count, last, s.writer.retried, s.frozen())
	for _, r := range s.readers {
		r.flawless(s.t)
	}
	// What was sent last may be stored without having been acknowledged.
	until(s.t, "the stream says where it ends", func() bool {
		i := info(s.js, "REGISTRY")
		if i != nil {
			last = max(last, i.State.LastSeq)
		}
		return i != nil
	})
	agree(s.t, s.nodes, last, s.replicas...)
	for _, r := range s.replicas {
		s.writer.kept(s.t, r)
	}
}

// TestFaults is one cluster through everything that happens to nodes, under load.
func TestFaults(t *testing.T) {
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
		s.healedBut("node killed", i)
		s.nodes.start(n)
		s.healed("killed node back", i)
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
	s.end()
}

// healedBut is healed while a node is still missing.
func (s *system) healedBut(fault string, round int) {
	s.t.Helper()
	before, _ := s.writer.done()
	took := until(s.t, "the stream takes events without a node", func() bool { n, _ := s.writer.done(); return n > before+1 })
	s.t.Logf("%s %d: events taken after %v", fault, round, took.Round(time.Millisecond))
}

// pauseLeader stops the leader until another one leads and is ahead, and lets it go on: for a moment it takes itself
// for the leader, of a shorter stream, and says so to whoever asks it.
func (s *system) pauseLeader(round int) {
	s.t.Helper()
	n := s.nodes.leader(s.js)
	s.nodes.signal(n, syscall.SIGSTOP)
	s.healedBut("leader stopped", round)
	until(s.t, "another node leads", func() bool { return s.nodes.leader(s.js) != n })
	s.nodes.signal(n, syscall.SIGCONT)
	s.healed("stopped leader back", round)
}

// loseQuorum takes two of three nodes away: nothing can be published, everything can be read. A node that is left alone
// goes on telling of the stream as it knows it; no replica may take that for being up to date.
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
		before[i] = r.answered.Load()
	}
	for i, r := range s.readers {
		until(s.t, "readers get answers without a quorum", func() bool { return r.answered.Load() > before[i]+100 })
	}
	s.nodes.start(a)
	s.nodes.start(b)
	s.healed("quorum back", round)
}

// restart stops a replica and starts it with what it saved; serve waits until it answers.
func (s *system) restart(i int) {
	s.t.Helper()
	s.readers[i].flawless(s.t)
	if status := s.replicas[i].stop(); status != 0 {
		s.t.Errorf("exit status %d", status)
	}
	began := time.Now()
	s.replicas[i] = serve(s.t, s.dirs[i], s.nodes.urls(), "--snapshot-every=5s")
	s.t.Logf("a replica started without a quorum answers after %v", time.Since(began).Round(time.Millisecond))
	s.readers[i] = reading(s.t, s.replicas[i].HTTP, true)
}

// frozen counts how often a replica did not believe the stream.
func (s *system) frozen() (n int) {
	for _, r := range s.replicas {
		n += strings.Count(r.said(), `"msg":"frozen`)
	}
	return n
}
