package serve

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

var (
	nightSeed = flag.Uint64("night.seed", 0, "first seed of the worst night; 0: the fixed ones")
	nights    = flag.Int("night.count", 4, "seeds of the worst night")
)

// The worst night: after a history of listings, amendments, verifications, delistings, withdrawn
// trust, view totals and donations, one to three disasters in a row, with the backend publishing
// before, between and after; then a recovery, which is interrupted first. Every subject then has the
// greatest state that the server or the stream knew; a replay and a follower of the feed agree with
// the server; and a second recovery publishes nothing.
func TestWorstNight(t *testing.T) {
	first := *nightSeed
	if first == 0 {
		first = 1
	}
	for seed := first; seed < first+uint64(*nights); seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			n := newNight(t, seed)
			for range 2 {
				n.run()
			}
		})
	}
}

type night struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string // of the broker
	addr    string
	broker  *broker.Broker
	js      jetstream.JetStream
	server  *server
	known   map[events.Subject]events.Data // what the server has
	stream  []events.Data
	backups []backup
	serial  int
	told    []string

	follower map[string]string // of the feed: entry by list and id
	epoch    string
	since    uint64
}

// backup is a copy of the broker's directory.
type backup struct {
	dir    string
	stream []events.Data
}

func newNight(t *testing.T, seed uint64) *night {
	n := &night{t: t, rng: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), known: map[events.Subject]events.Data{}, follower: map[string]string{}}
	var err error
	if n.addr, err = eventstest.Address(); err != nil {
		t.Fatal(err)
	}
	n.startBroker()
	connect := func(opts ...nats.Option) jetstream.JetStream {
		opts = append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
		return eventstest.Dial(t, "nats://"+n.addr, opts...)
	}
	n.js = connect()
	eventstest.Stream(t, n.js)
	n.startServer(connect(projector.ConnectOptions()...))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(n.told, "; "))
		}
	})
	return n
}

func (n *night) startBroker() {
	n.broker = eventstest.Broker(n.t, func(c *broker.Config) { c.StoreDir, c.Addr = n.dir, n.addr })
}

// startServer starts a server's projection with its rebuilds.
func (n *night) startServer(js jetstream.JetStream) {
	data := n.t.TempDir()
	s := newServer(Config{Stream: events.DefaultStream, DataDir: data, StreamReplicas: 1, StreamHistory: 5, Logger: discard()})
	store, model, err := snapshots.Open(n.t.Context(), snapshots.Config{Path: s.cfg.storePath()})
	require.NoError(n.t, err)
	s.live.stream.Store(&leader.Stream{JS: js, Name: events.DefaultStream})
	first := s.newGeneration(store, store, model, store.Checkpoint(), 0)
	s.live.show(first)
	drained := make(chan struct{})
	following := task.Go(context.Background(), func(context.Context) error { return s.follow(drained, start(first)) })
	n.t.Cleanup(func() {
		close(drained)
		_ = following.Wait()
		_ = s.live.current().store.Close()
	})
	n.server = s
}

func (n *night) run() {
	n.publish(20+n.rng.IntN(20), true)
	n.backup()
	n.publish(n.rng.IntN(20), true)
	n.backup()
	n.publish(1+n.rng.IntN(20), true) // so that every backup ends before the checkpoint
	n.reached()
	n.follow()
	for range 1 + n.rng.IntN(3) {
		n.disaster()
	}
	n.recover(true)
	if left := n.recover(false); len(left.Changes) > 0 || left.Begins() {
		n.t.Errorf("a second recovery would publish %d events, begins a history: %v", len(left.Changes), left.Begins())
	}
	n.compare()
}

func (n *night) tell(format string, args ...any) {
	n.told = append(n.told, fmt.Sprintf(format, args...))
}

// frozen reports whether the server applies nothing. Once it does, the backend publishes for nobody.
func (n *night) frozen() bool { p, _ := n.server.live.progress(); return p.Frozen }

// publish publishes some events, of few subjects, so that most are changed on both sides.
func (n *night) publish(count int, common bool) {
	for range count {
		d := n.data()
		e := events.Event{ID: events.NewEventID(), Source: "/night", Type: events.TypeListed, Data: d}
		switch d.(type) {
		case events.Delisting:
			e.Type = events.TypeDelisted
		case events.Views:
			e.Type = events.TypeViewsCounted
		case events.Donation:
			e.Type = events.TypeDonationUpdated
		case events.DonationRemoval:
			e.Type = events.TypeDonationRemoved
		}
		payload, err := events.Encode(e)
		require.NoError(n.t, err)
		eventstest.PublishRaw(n.t, n.js, d.Subject().String(), payload)
		n.stream = append(n.stream, d)
		if common {
			n.know(d)
		}
	}
	n.tell("%d published, common %v", count, common)
}

// know joins a state with what the server has.
func (n *night) know(d events.Data) {
	if is := n.known[d.Subject()]; is == nil || events.Compare(d, is) > 0 {
		n.known[d.Subject()] = d
	}
}

func (n *night) data() events.Data {
	n.serial++
	revision := int64(n.serial)
	if n.rng.IntN(4) == 0 {
		revision = 1 + n.rng.Int64N(revision) // a worker that was overtaken, or a file that is published again
	}
	id := fmt.Sprint("e", n.rng.IntN(12))
	list := events.Lists()[n.rng.IntN(events.NumLists)]
	switch n.rng.IntN(10) {
	case 0, 1, 2:
		return events.Delisting{Revision: revision, Time: eventstest.Start(), List: list, EntryID: id}
	case 3:
		return events.Views{Revision: revision, List: list, EntryID: id, Views: int64(n.serial)}
	case 4:
		if n.rng.IntN(3) == 0 {
			return events.DonationRemoval{Revision: revision, Time: eventstest.Start(), DonationID: id}
		}
		at := time.Unix(1_700_000_000, 0).UTC()
		return events.Donation{Revision: revision, DonationID: id, Status: events.DonationStatuses()[0], Amount: fmt.Sprint(n.serial), Currency: "BTC", RequiredConfirmations: 6, CreatedAt: at, UpdatedAt: at}
	}
	return events.Entry{Revision: revision, List: list, EntryID: id, ChatID: fmt.Sprint(900000 + n.serial), Name: fmt.Sprint("Osoba ", n.serial), Verified: n.rng.IntN(2) == 0,
		ReportID: "r", ReportedAt: time.Unix(1_700_000_000, 0).UTC()}
}

// reached waits until the server has everything.
func (n *night) reached() {
	info, err := n.js.Stream(n.t.Context(), events.DefaultStream)
	require.NoError(n.t, err)
	last := info.CachedInfo().State.LastSeq
	until(n.t, func() bool {
		p, _ := n.server.live.progress()
		return p.CaughtUp && !p.Frozen && p.Checkpoint >= last
	})
}

func (n *night) restartBroker(between func()) {
	n.broker.Shutdown()
	between()
	n.startBroker()
	until(n.t, func() bool {
		ctx, cancel := context.WithTimeout(n.t.Context(), time.Second)
		defer cancel()
		_, err := n.js.AccountInfo(ctx)
		return err == nil
	})
}

func (n *night) backup() {
	b := backup{filepath.Join(n.t.TempDir(), "copy"), slices.Clone(n.stream)}
	n.restartBroker(func() {
		require.NoError(n.t, os.CopyFS(b.dir, os.DirFS(n.dir)))
	})
	n.backups = append(n.backups, b)
}

func (n *night) disaster() {
	n.reachedOrFrozen()
	switch n.rng.IntN(4) {
	case 0:
		n.tell("stream lost")
		for empty := false; !empty; { // the broker may make a stream out of the files of one that it is erasing
			require.NoError(n.t, n.js.DeleteStream(n.t.Context(), events.DefaultStream))
			empty = eventstest.Stream(n.t, n.js).CachedInfo().State.Msgs == 0
		}
		n.stream = nil
		until(n.t, n.frozen)
	case 1:
		if n.frozen() {
			return
		}
		n.tell("everything erased")
		s, err := n.js.Stream(n.t.Context(), events.DefaultStream)
		require.NoError(n.t, err)
		require.NoError(n.t, s.Purge(n.t.Context()))
		n.stream = nil
		n.publish(n.rng.IntN(10), true)
		return
	default:
		b := n.backups[n.rng.IntN(len(n.backups))]
		n.tell("back to a backup of %d", len(b.stream))
		n.restartBroker(func() {
			require.NoError(n.t, os.RemoveAll(n.dir))
			require.NoError(n.t, os.CopyFS(n.dir, os.DirFS(b.dir)))
		})
		n.stream = slices.Clone(b.stream)
		until(n.t, n.frozen)
	}
	n.publish(n.rng.IntN(15), !n.frozen())
}

func (n *night) reachedOrFrozen() {
	n.t.Helper()
	var last uint64
	until(n.t, func() bool {
		info, err := n.js.Stream(n.t.Context(), events.DefaultStream)
		if err == nil {
			last = info.CachedInfo().State.LastSeq
		}
		return err == nil
	})
	until(n.t, func() bool {
		p, _ := n.server.live.progress()
		return p.Frozen || p.Connected && p.Checkpoint >= last
	})
}

// recover compares and, if it may, publishes and accepts. It is interrupted at first.
func (n *night) recover(publish bool) *recovery.Plan {
	n.t.Helper()
	n.reachedOrFrozen()
	known := n.snapshot()
	if !publish {
		return n.plan(known)
	}
	plan := n.publishLost(known)
	if !plan.Continues || n.frozen() {
		n.accept()
	}
	return plan
}

// snapshot returns the content of a snapshot of the server.
func (n *night) snapshot() *recovery.Known {
	n.t.Helper()
	archive, _, err := n.server.snapshots.Archive(n.t.Context())
	require.NoError(n.t, err)
	defer archive.Close()
	r, err := snapshots.NewReader(archive)
	require.NoError(n.t, err)
	known := &recovery.Known{At: r.Manifest.Checkpoint}
	require.NoError(n.t, r.EachState(n.t.Context(), known.Add))
	return known
}

func (n *night) plan(known *recovery.Known) *recovery.Plan {
	n.t.Helper()
	plan, err := recovery.Compare(n.t.Context(), leader.Stream{JS: n.js, Name: events.DefaultStream}, known)
	require.NoError(n.t, err)
	return plan
}

// publishLost publishes what the stream lacks of known. It is interrupted at first, and the backend
// is faster than the next attempt.
func (n *night) publishLost(known *recovery.Known) *recovery.Plan {
	n.t.Helper()
	ctx, stream := n.t.Context(), leader.Stream{JS: n.js, Name: events.DefaultStream}
	plan := n.plan(known)
	n.tell("recovers: continues %v, %+v", plan.Continues, plan.Counts())
	if part := *plan; len(part.Changes) > 1 { // a kill after some of them
		part.Changes = part.Changes[:n.rng.IntN(len(part.Changes))]
		if _, err := recovery.Publish(ctx, stream, &part, nil); err != nil {
			n.t.Fatal(err)
		}
		n.tell("killed after %d", len(part.Changes))
		n.publish(n.rng.IntN(5), plan.Continues)
		if plan.Continues && !n.frozen() {
			n.reached()
		}
	}
	for range 10 {
		plan = n.plan(known)
		conflicts, err := recovery.Publish(ctx, stream, plan, nil)
		require.NoError(n.t, err)
		if conflicts == 0 {
			break
		}
	}
	return plan
}

// accept has the server accept the stream.
func (n *night) accept() {
	n.t.Helper()
	until(n.t, n.frozen)
	if _, err := n.server.rebuild(n.t.Context(), admin.RebuildOptions{AcceptStream: true, Yes: true}); err != nil {
		n.t.Fatal(err)
	}
}

// compare holds the server against what it should have, a replay, and a follower.
func (n *night) compare() {
	n.t.Helper()
	n.reached()
	for _, d := range n.stream {
		n.know(d)
	}
	v := n.server.live.current().model.View()
	for k, want := range n.known {
		if k.Kind != events.KindEntry {
			continue
		}
		e, listed := want.(events.Entry)
		shown := listed && (!e.List.Trusted() || e.Verified)
		row := v.Entry(k.List, k.ID)
		name := ""
		if row != nil {
			name, _, _ = row.Text()
		}
		switch {
		case row != nil && !shown:
			n.t.Errorf("%s is listed as %q, and should not be: %T %+v", k, name, want, want)
		case shown && row == nil:
			n.t.Errorf("%s is not listed, and should be as %q", k, e.Name)
		case shown && name != e.Name:
			n.t.Errorf("%s is listed as %q, want %q", k, name, e.Name)
		}
	}
	n.replays(v)
	n.follow()
	if got := len(n.follower); got != v.Total() {
		n.t.Errorf("a follower of the feed has %d entries, the lists show %d", got, v.Total())
	}
	for key, entry := range n.follower {
		list, id, _ := strings.Cut(key, "/")
		if row := v.Entry(events.List(list), id); row == nil || row.JSON() != entry {
			n.t.Errorf("a follower of the feed has another state of %s", key)
		}
	}
	n.stream = slices.Collect(maps.Values(n.known))
	n.backups = nil
}

// replays holds a replica that starts with nothing against v.
func (n *night) replays(v *readmodel.View) {
	n.t.Helper()
	if is := n.replica(); is.Digest() != v.Digest() || is.FeedDigest() != v.FeedDigest() || is.Sequence() != v.Sequence() || is.Epoch() != v.Epoch() {
		n.t.Errorf("a replica has %s at %d of %s, the server %s at %d of %s", is.Digest(), is.Sequence(), is.Epoch(), v.Digest(), v.Sequence(), v.Epoch())
	}
}

// replica returns the content of a server that replays the stream from nothing.
func (n *night) replica() *readmodel.View {
	n.t.Helper()
	m := readmodel.New()
	p := projector.New(projector.Config{JetStream: n.js, Model: m, ReadOnly: true})
	replay := task.Go(context.Background(), p.Run)
	defer func() { _ = replay.Stop() }()
	until(n.t, func() bool { return p.Progress().CaughtUp })
	return m.View()
}

// follow brings the follower of the feed up to date, as a client does.
func (n *night) follow() {
	n.t.Helper()
	v := n.server.live.current().model.View()
	if v.Epoch() != n.epoch {
		n.epoch, n.since = v.Epoch(), 0
		clear(n.follower)
	}
	if n.since > v.Sequence() {
		n.t.Errorf("a follower at %d is ahead of the server at %d, in the same history", n.since, v.Sequence())
		return
	}
	for up := false; !up; {
		page := v.Feed(n.since, 50, 1<<20)
		for _, c := range page.Changes {
			key := string(c.List) + "/" + c.ID
			delete(n.follower, key)
			if c.Row != nil {
				n.follower[key] = c.Row.JSON()
			}
		}
		n.since, up = page.Until, page.UpToDate
	}
}
