package projector

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/snapshots"
)

// listed returns n entries of a list.
func listed(list events.List, n int) (all []events.Data) {
	for i := range n {
		all = append(all, entry(list, fmt.Sprint("l", i), int64(1000+i), true))
	}
	return all
}

func delisted(list events.List, id string, revision int64) events.Data {
	return events.Delisting{List: list, EntryID: id, Revision: revision}
}

// serving is a world whose server has read a few entries.
func serving(t *testing.T) *world {
	w := newWorld(t, 1)
	w.send(listed(events.Scammers, 10)...)
	w.send(listed(events.Servers, 10)...)
	w.settle(w.server)
	w.requireTruth(w.server, "at first")
	return w
}

// requireFeed fails unless the feed has a name, or none.
func (w *world) requireFeed(s *server, named bool) {
	w.Helper()
	w.await(fmt.Sprintf("the feed is named: %v", named), func() bool { return (s.cfg.Model.View().Epoch() != "") == named })
	if named {
		require.Equal(w, s.Progress().Epoch, s.cfg.Model.View().Epoch())
	}
}

// loseTail brings the broker back to where it was before the last entries.
func (w *world) loseTail(lost ...events.Data) {
	w.stop(w.server, false)
	w.takeImage()
	w.start()
	w.settle(w.server)
	w.send(lost...)
	w.settle(w.server)
	w.stop(w.server, false)
	w.restoreImage()
}

// A stream that ends before the checkpoint is rewound: what it lost is shown, counted and published by
// recover; the feed is away meanwhile.
func TestStreamLostItsTail(t *testing.T) {
	w := serving(t)
	w.loseTail(listed(events.Legit, 5)...)
	w.start()
	w.awaitProgress(w.server, "rewound", func(p Progress) bool {
		return p.Rewound && !p.Reading && p.CaughtUp && p.Unpublished == 5 && p.LastError != ""
	})
	w.requireTruth(w.server, "rewound")
	w.requireFeed(w.server, false)
	w.restart(false)
	w.awaitProgress(w.server, "rewound after a restart", func(p Progress) bool { return p.Rewound && p.CaughtUp && p.Unpublished == 5 })
	epoch := w.server.Progress().Epoch

	w.recover(w.server)
	w.requireTruth(w.server, "recovered")
	w.requireFeed(w.server, true)
	now := w.server.Progress()
	require.NotEqual(t, epoch, now.Epoch)
	require.Contains(t, now.Follows, epoch)
	w.requireWholeStream()
}

// A stream that holds another message at a place that was read is rewound, too, however long it is.
func TestStreamHoldsAnotherMessage(t *testing.T) {
	w := serving(t)
	w.loseTail(listed(events.Legit, 5)...)
	for i := range 20 {
		w.send(entry(events.Servers, fmt.Sprint("other", i), 5000, true))
	}
	w.start()
	w.awaitProgress(w.server, "rewound", func(p Progress) bool { return p.Rewound && !p.Reading && p.CaughtUp && p.Unpublished == 5 })
	w.requireTruth(w.server, "rewound")
	w.recover(w.server)
	w.requireTruth(w.server, "recovered")
}

// Mistake 6: relation is a common epoch, and a server forgets none. A stream that was restored from before a
// recovery is rewound; after the next recovery a replica that still knows the first one's epoch goes on.
func TestStreamFromBeforeARecovery(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	w.takeImage()
	w.start()
	w.settle(w.server)
	w.recover(w.server)
	replica := w.open(filepath.Join(w.dir, "replica.db"), false)
	w.settle(replica)
	w.stop(replica, false)
	recovered := w.server.Progress().Epoch

	w.stop(w.server, false)
	w.restoreImage()
	w.start()
	w.awaitProgress(w.server, "rewound", func(p Progress) bool { return p.Rewound && !p.Reading && p.CaughtUp })
	require.Contains(t, w.server.Progress().Follows, recovered)
	w.recover(w.server)
	require.Contains(t, w.server.Progress().Follows, recovered)

	replica = w.open(filepath.Join(w.dir, "replica.db"), false)
	defer w.stop(replica, true)
	w.awaitRecovered(replica)
	w.requireTruth(replica, "a replica that knew only the first recovery")
}

// A stream with fewer subjects than are known is read again while the server runs, and what it lacks is
// counted and published by recover.
func TestStreamLostSubjects(t *testing.T) {
	w := serving(t)
	w.purge("registry.scammers.*")
	w.awaitProgress(w.server, "the loss is noticed", func(p Progress) bool { return p.Unpublished == 10 && !p.Reading && !p.Rewound })
	w.requireTruth(w.server, "with a purged list")
	w.requireFeed(w.server, false)
	w.recover(w.server)
	w.requireWholeStream()
	w.requireFeed(w.server, true)
}

// Without a stream a server serves its last state, applies nothing, and goes on when the stream is back. It
// takes two looks to freeze.
func TestStreamIsMissing(t *testing.T) {
	w := serving(t)
	began := time.Now()
	w.deleteStream()
	w.awaitProgress(w.server, "frozen", func(p Progress) bool { return p.Frozen == FrozenMissing })
	require.GreaterOrEqual(t, time.Since(began), w.server.cfg.pace.retryEvery)
	now := w.server.Progress()
	require.True(t, now.CaughtUp)
	require.Contains(t, now.LastError, "registry recover --create-stream")
	require.Positive(t, now.LagSeconds)
	w.requireTruth(w.server, "frozen")
	w.restart(false)
	w.awaitProgress(w.server, "frozen after a restart", func(p Progress) bool { return p.Frozen == FrozenMissing && p.CaughtUp })

	lost := Recovery{JetStream: w.js, Stream: events.DefaultStream}
	require.NoError(t, lost.Add(w.export(w.server)))
	_, err := lost.Run(t.Context())
	require.ErrorContains(t, err, "--create-stream")
	w.recover(w.server)
	w.requireTruth(w.server, "recovered")
}

// Another registry's stream freezes a server, and recover refuses it without --into.
func TestStreamIsForeign(t *testing.T) {
	w := serving(t)
	known := w.digest()
	w.deleteStream()
	w.makeStream(func(c *jetstream.StreamConfig) { c.Metadata[events.MetadataEpoch] = "FOREIGN" })
	w.send(entry(events.Legit, "theirs", 9000, true))
	w.awaitProgress(w.server, "frozen", func(p Progress) bool { return p.Frozen == FrozenForeign })
	require.Equal(t, known, w.server.cfg.Model.View().Digest().String())

	join := Recovery{JetStream: w.js, Stream: events.DefaultStream, Create: true}
	require.NoError(t, join.Add(w.export(w.server)))
	_, err := join.Run(t.Context())
	require.ErrorContains(t, err, "FOREIGN")
	require.ErrorContains(t, err, "1 messages")
	join.Into = "FOREIGN"
	_, plan, err := join.Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, 20, plan.Sent)
	_, err = join.Run(t.Context())
	require.NoError(t, err)
	w.awaitRecovered(w.server)
	w.requireTruth(w.server, "both joined")
}

// A start without a broker serves a complete saved state after StartupTimeout, and no other.
func TestStartWithoutBroker(t *testing.T) {
	worldBegan := time.Now()
	w := serving(t)
	w.restart(false)
	w.settle(w.server)
	w.stop(w.server, false)
	const startPatience = 500 * time.Millisecond
	away, err := nats.Connect("nats://127.0.0.1:1", ConnectOptions()...)
	require.NoError(t, err)
	defer away.Close()
	js, err := jetstream.New(away)
	require.NoError(t, err)
	start := func(path string) *server {
		store, model := w.openStore(path)
		cfg := w.config(store, model, false)
		cfg.JetStream, cfg.StartupTimeout = js, startPatience
		return w.run(New(cfg), store)
	}

	began := time.Now()
	saved := start(w.storePath())
	defer w.stop(saved, true)
	w.awaitProgress(saved, "the saved state is served", func(p Progress) bool { return p.CaughtUp })
	require.GreaterOrEqual(t, time.Since(began), startPatience)
	w.requireTruth(saved, "without a broker")
	now := saved.Progress()
	require.False(t, now.Connected)
	require.WithinRange(t, now.AsOf, worldBegan, time.Now())
	require.NotZero(t, now.LastError)
	require.Equal(t, now.Epoch, saved.cfg.Model.View().Epoch(), "the feed of the saved state")

	empty := start(filepath.Join(w.dir, "empty.db"))
	defer w.stop(empty, true)
	w.await("both have looked", func() bool { return empty.Progress().LastError != "Waiting for the broker." })
	require.False(t, empty.Progress().CaughtUp)
}

// While the broker is away, a server serves its last state, and the stream's end is no longer known.
func TestBrokerIsAway(t *testing.T) {
	w := serving(t)
	asOf := w.server.Progress().AsOf
	w.awaitProgress(w.server, "the model is known to be complete, again and again", func(p Progress) bool { return p.AsOf.After(asOf) })
	w.broker.Shutdown()
	w.awaitProgress(w.server, "away", func(p Progress) bool { return !p.Connected && p.CaughtUp && p.LastError != "" })
	w.requireTruth(w.server, "without a broker")
	require.WithinRange(t, w.server.Progress().AsOf, asOf, time.Now())
	w.restart(false) // saves nothing new, and nothing is lost
	w.stop(w.server, false)
	w.startBroker()
	w.start()
	w.settle(w.server)
	w.requireTruth(w.server, "with the broker back")
}

// Mistake 1: a purge looks at its removal first. Where the stream holds something else in its place, the
// sequence is of another numbering, and newer states would be erased.
func TestPurgeLooksFirst(t *testing.T) {
	w := serving(t)
	w.send(delisted(events.Scammers, "l0", 5000), entry(events.Scammers, "l0", 6000, true))
	w.settle(w.server)
	listing := events.Subject{Kind: events.KindEntry, List: events.Scammers, ID: "l0"}
	last, err := w.stream().LastMessage(t.Context(), listing.String())
	require.NoError(t, err)
	for name, sequence := range map[string]uint64{"a listing": last.Sequence, "another subject": last.Sequence - 3, "nothing": last.Sequence + 100} {
		require.NoError(t, w.server.upkeep.purgeBefore(t.Context(), listing, sequence), name)
	}
	m, err := w.stream().Message(t.Context(), last.Sequence-1)
	require.NoError(t, err, "the removal before the listing")
	require.Equal(t, listing.String(), m.Subject)
	require.NoError(t, w.server.upkeep.purgeBefore(t.Context(), listing, last.Sequence-1))
}

// Messages before a removal are purged, also by a server that finds the removal in its store.
func TestPurge(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	w.server = w.open(w.storePath(), false)
	w.send(delisted(events.Scammers, "l3", 5000))
	w.settle(w.server)
	w.restart(false)
	w.requireWholeStream()
	w.awaitProgress(w.server, "nothing waits", func(p Progress) bool { return p.WaitingPurges == 0 })
	w.settle(w.server)
	w.send(listed(events.Legit, 1)...)
	w.await("the position of purges is saved", func() bool { return w.server.store.Meta().Erased > 0 })
}

// Mistake 3: a rebuild never knows less than what it replaces, although the count of subjects is equal.
func TestRebuildNeverKnowsLess(t *testing.T) {
	w := serving(t)
	w.send(listed(events.Legit, 1)...)
	w.settle(w.server)
	_, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: "registry.legit.broken", Data: []byte("{")})
	require.NoError(t, err)
	w.settle(w.server)
	w.purge("registry.legit.l0")
	require.ErrorIs(t, w.rebuild(), ErrKnowsMore)
	w.recover(w.server)
	require.NoError(t, w.rebuild())
	w.requireTruth(w.server, "rebuilt")
}

// Mistake 4: what is saved is counted anew when the stream is read again, or "saved up to" would speak of
// the old numbering.
func TestSavedIsCountedAnew(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	store, model := w.openStore(w.storePath())
	p := New(w.config(store, model, true))
	require.Positive(t, p.Progress().Saved)
	p.readAgain(p.projection.meta.Identity, true)
	require.Zero(t, p.Progress().Saved)
	require.Zero(t, p.Progress().Checkpoint)
	require.Equal(t, w.digest(), model.View().Digest().String())
}

// Mistake 5: a recovery makes servers read again even where it publishes nothing: the stream has come back
// whole, and nothing else would tell them.
func TestRecoveryThatPublishesNothing(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	w.takeImage()
	w.start()
	w.settle(w.server)
	w.purge("registry.scammers.*")
	w.awaitProgress(w.server, "the loss is noticed", func(p Progress) bool { return p.Unpublished == 10 && !p.Reading })
	w.settle(w.server)
	w.stop(w.server, false)
	w.restoreImage()
	w.start()
	w.settle(w.server)

	again := Recovery{JetStream: w.js, Stream: events.DefaultStream}
	require.NoError(t, again.Add(w.export(w.server)))
	sum, err := again.Run(t.Context())
	require.NoError(t, err)
	require.Zero(t, sum.Sent)
	w.awaitRecovered(w.server)
}

// Mistake 7: what is left of purges and of states to publish again dies with the numbering in which it
// was decided.
func TestLeftOversDieWithTheNumbering(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	store, model := w.openStore(w.storePath())
	p := New(w.config(store, model, true))
	k := events.Subject{Kind: events.KindEntry, List: events.Scammers, ID: "l0"}
	p.saver.running = newCommit()
	p.saver.running.meta = p.projection.metaToSave()
	p.saver.pending.states[k] = snapshots.State{Sequence: 7, Line: []byte("{}")}
	p.upkeep.purges[k], p.upkeep.displaced[k] = 7, 8

	p.readAgain(p.projection.meta.Identity, true)
	p.saver.finish(nil)
	require.Zero(t, p.saver.sequence)
	require.Zero(t, p.saver.pending.states[k].Sequence)
	require.Empty(t, p.upkeep.purges)
	require.Empty(t, p.upkeep.displaced)
}

// A server that may not write leaves the stream as it is.
func TestReplicaWritesNothing(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	w.server = w.open(w.storePath(), false)
	w.send(delisted(events.Scammers, "l3", 5000), entry(events.Scammers, "l4", 5, true))
	w.settle(w.server)
	settled := time.Now()
	w.awaitProgress(w.server, "it has had time to write", func(p Progress) bool { return p.Superseded > 0 && p.AsOf.After(settled.Add(200*time.Millisecond)) })
	info, err := w.stream().Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 22, info.State.LastSeq)
	require.EqualValues(t, 22, info.State.Msgs)
}

// A snapshot, an older server and an export join with the stream: the greatest states win.
func TestKnownJoins(t *testing.T) {
	w := serving(t)
	old := w.export(w.server)
	w.send(entry(events.Scammers, "l1", 9000, false), delisted(events.Scammers, "l2", 9000))
	w.settle(w.server)
	var joined Recovery
	require.NoError(t, joined.Add(w.export(w.server)))
	require.NoError(t, joined.Add(old))
	require.Len(t, joined.sources, 2)
	require.Len(t, joined.states, len(w.truth))
	for k, data := range w.truth {
		require.Zero(t, events.Compare(data, joined.states[k]), k)
	}
}

// Replay reads the stream alone, and leaves no trace.
func TestReplay(t *testing.T) {
	w := serving(t)
	_, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: "registry.legit.broken", Data: []byte("{")})
	require.NoError(t, err)
	w.settle(w.server)
	w.awaitProgress(w.server, "the copy is counted", func(p Progress) bool { return p.Rejected == 1 })
	require.NoError(t, w.js.DeleteStream(t.Context(), events.RejectedStream))
	dir := t.TempDir()
	store, err := Replay(t.Context(), w.js, events.DefaultStream, dir, nil)
	require.NoError(t, err)
	require.Equal(t, w.digest(), store.Meta().Digest)
	require.NoError(t, store.Close())
	_, err = w.js.Stream(t.Context(), events.RejectedStream)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	_, err = Replay(t.Context(), w.js, "NOTHING", t.TempDir(), nil)
	require.ErrorContains(t, err, "The stream NOTHING is missing")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A message that displaces another one while the stream is read is there when the model is first served: it
// is complete at the end that the stream had when its first end was reached.
func TestMessagesDisplacedWhileCatchingUp(t *testing.T) {
	w := newBroker(t, 1)
	w.makeStream(func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 })
	w.send(listed(events.Scammers, 10)...)
	store, model := w.openStore(w.storePath())
	p := New(w.config(store, model, false))
	info, err := p.source.find(t.Context(), true)
	require.NoError(t, err)
	require.NoError(t, p.acceptStream(t.Context(), info))
	p.setTarget(info, time.Now())

	// Nothing is left of what was there, and the last message is read first.
	for i := range 10 {
		w.send(entry(events.Scammers, fmt.Sprint("l", i), 9000, true))
	}
	p.apply(nil, 10)
	require.NoError(t, p.reachEnds(t.Context()))
	require.False(t, p.Progress().CaughtUp)
	require.Equal(t, end{20, p.target.askedAt}, p.target)
}

// An end of the stream that was erased is passed over, while a consumer waits for it.
func TestErasedTail(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	store, model := w.openStore(w.storePath())
	p := New(w.config(store, model, false))
	p.cfg.pace.stuckAfter = time.Hour
	p.movedAt = time.Now()
	last := w.put(messageOf(t, entry(events.Legit, "x", 1000, true)))
	require.NoError(t, p.checkDelivery(t.Context(), last), "it may come yet")
	require.Less(t, p.projection.meta.Sequence, last)
	w.purge("registry.legit.x")
	require.NoError(t, p.checkDelivery(t.Context(), last))
	require.Equal(t, last, p.projection.meta.Sequence)
}

// A stream that is replaced while its consumer is made is not read before it has been looked at.
func TestStreamReplacedBeforeTheConsumer(t *testing.T) {
	w := serving(t)
	w.stop(w.server, false)
	store, model := w.openStore(w.storePath())
	p := New(w.config(store, model, false))
	info, err := p.source.find(t.Context(), true)
	require.NoError(t, err)
	w.deleteStream()
	w.makeStream(func(*jetstream.StreamConfig) {})
	require.ErrorContains(t, p.source.checkReplaced(t.Context(), info), "replaced")
}

// A rebuild waits until the new model is as far as the one that is shown, however fast that goes on.
func TestReplaceWaits(t *testing.T) {
	w := serving(t)
	store, model := w.openStore(w.storePath() + ".rebuilding")
	fresh := w.run(w.server.NewBeside(model, store, nil), store)
	w.settle(fresh)
	w.stop(fresh, false)             // Run owns the projection until it has returned
	fresh.projection.meta.Sequence-- // as one that has one message to read
	done, err := trySwap(w.server.Projector, fresh.Projector, func() error { t.Error("swapped"); return nil })
	require.NoError(t, err)
	require.False(t, done)
}
