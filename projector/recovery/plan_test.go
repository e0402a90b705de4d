package recovery

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.Leaks()...) }

// knownOf returns what a reader of the whole stream knows.
func knownOf(t *testing.T, s leader.Stream, source Source) *Known {
	t.Helper()
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	marker, _, err := lineage.Newest(t.Context(), s, math.MaxUint64)
	require.NoError(t, err)
	k := &Known{Source: source, States: States{}}
	k.At.StreamIdentity, k.At.Histories, k.At.Sequence = lineage.Of(info), marker.Names(lineage.Of(info)), info.State.LastSeq
	k.Stream = k.At.StreamIdentity
	k.At.History, k.At.HistoryRevision = marker.Name, marker.Revision
	require.NoError(t, s.ReadAfter(t.Context(), "test", 0, func(m leader.Message) {
		k.At.Passed([]readmodel.Position{{Sequence: m.Sequence, Time: m.Time}})
		if e, err := m.Event(); err == nil {
			k.States.Add(readmodel.State{Sequence: m.Sequence, Data: e.Data})
		}
	}))
	return k
}

// A marker comes first where the stream is not as it was read, once; what is foreign is refused; and
// a second recovery has nothing to do.
func TestCompare(t *testing.T) {
	all := eventstest.Events(20, 1)
	system := func(t *testing.T, n int, mutate ...func(*jetstream.StreamConfig)) (jetstream.JetStream, leader.Stream) {
		js := eventstest.Connect(t, eventstest.Broker(t))
		eventstest.Stream(t, js, mutate...)
		if n > 0 {
			eventstest.Publish(t, js, all[:n]...)
		}
		return js, leader.Stream{JS: js, Name: events.DefaultStream}
	}
	again := func(t *testing.T, js jetstream.JetStream, n int, epoch string) {
		require.NoError(t, js.DeleteStream(t.Context(), events.DefaultStream))
		eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.Metadata[events.MetadataEpoch] = epoch })
		if n > 0 {
			eventstest.Publish(t, js, all[:n]...)
		}
	}
	for name, c := range map[string]struct {
		source  Source
		change  func(t *testing.T, js jetstream.JetStream, epoch string)
		options Options
		begins  bool
		foreign bool
	}{
		"well, as a server":          {source: Following},
		"well, as a snapshot":        {source: Snapshot},
		"new history":                {source: Following, options: Options{NewHistory: true}, begins: true},
		"empty and new":              {source: Frozen, change: func(t *testing.T, js jetstream.JetStream, _ string) { again(t, js, 0, "B") }, begins: true},
		"rewound, of its history":    {source: Snapshot, change: func(t *testing.T, js jetstream.JetStream, epoch string) { again(t, js, 9, epoch) }, begins: true},
		"rewound, frozen":            {source: Frozen, change: func(t *testing.T, js jetstream.JetStream, epoch string) { again(t, js, 9, epoch) }, begins: true},
		"another's, from a snapshot": {source: Snapshot, change: func(t *testing.T, js jetstream.JetStream, _ string) { again(t, js, 9, "B") }, foreign: true},
		"another's, frozen":          {source: Frozen, change: func(t *testing.T, js jetstream.JetStream, _ string) { again(t, js, 9, "B") }, foreign: true},
		"a copy of a well one's":     {source: Following, change: func(t *testing.T, js jetstream.JetStream, epoch string) { again(t, js, 9, epoch) }, foreign: true},
		"adopted":                    {source: Frozen, change: func(t *testing.T, js jetstream.JetStream, _ string) { again(t, js, 9, "B") }, options: Options{Adopt: "B"}, begins: true},
		"another one adopted":        {source: Frozen, change: func(t *testing.T, js jetstream.JetStream, _ string) { again(t, js, 9, "B") }, options: Options{Adopt: "C"}, foreign: true},
		"a demonstration": {source: Snapshot, change: func(t *testing.T, js jetstream.JetStream, epoch string) {
			require.NoError(t, js.DeleteStream(t.Context(), events.DefaultStream))
			eventstest.Stream(t, js, func(c *jetstream.StreamConfig) {
				c.Metadata = map[string]string{events.MetadataEpoch: epoch, events.MetadataDemo: "true"}
			})
		}, options: Options{Adopt: "A"}, foreign: true},
		"a fork": {source: Snapshot, change: func(t *testing.T, js jetstream.JetStream, _ string) {
			_, err := Fork(t.Context(), leader.Stream{JS: js, Name: events.DefaultStream})
			require.NoError(t, err)
		}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js, s := system(t, 20, func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{events.MetadataEpoch: "A"} })
			known := knownOf(t, s, c.source)
			if c.change != nil {
				c.change(t, js, "A")
			}
			before, err := s.Info(t.Context())
			require.NoError(t, err)
			plan, err := Compare(t.Context(), s, known, c.options)
			if foreign := (*ForeignError)(nil); errors.As(err, &foreign) || c.foreign {
				require.True(t, c.foreign && foreign != nil, "%v", err)
				after, err := s.Info(t.Context())
				require.NoError(t, err)
				require.Equal(t, before.State.LastSeq, after.State.LastSeq)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.begins, plan.Begins)
			want := len(plan.Changes)
			published, conflicts, err := Publish(t.Context(), s, plan, nil)
			require.NoError(t, err)
			require.Equal(t, []int{want, 0}, []int{published, conflicts})
			marker, _, err := lineage.Newest(t.Context(), s, math.MaxUint64)
			require.NoError(t, err)
			require.Equal(t, c.begins, marker.Sequence > 0)
			if c.begins {
				require.Contains(t, marker.Follows, "A")
				require.Less(t, marker.Revision, time.Now().Add(time.Minute).UnixMilli())
			}
			if c.begins { // the server goes on, before its store has anything of the new history
				known.Source, known.Stream = Following, lineage.Of(before)
			}
			plan, err = Compare(t.Context(), s, known, Options{Adopt: c.options.Adopt})
			require.NoError(t, err)
			require.False(t, plan.Begins, "a second time")
			require.Empty(t, plan.Changes, "a second time")
			has, err := Scan(t.Context(), s, func(events.Subject) bool { return true })
			require.NoError(t, err)
			for k, state := range known.States {
				require.Zero(t, events.Compare(state.Data, has.States.Data(k)))
			}
		})
	}
}

// Nothing that another publisher adds between comparing and publishing is overwritten, and of two
// recoveries one begins the history.
func TestPublishConflicts(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	s := leader.Stream{JS: js, Name: events.DefaultStream}
	known := knownOf(t, s, Frozen)
	known.At.Sequence = 1
	e := eventstest.Entries(1, 1)[0]
	known.States.Add(readmodel.State{Data: e})
	one, err := Compare(t.Context(), s, known, Options{})
	require.NoError(t, err)
	other, err := Compare(t.Context(), s, known, Options{})
	require.NoError(t, err)
	require.True(t, one.Begins && other.Begins)
	newer := e
	newer.Revision++
	eventstest.Publish(t, js, events.StateEvent(newer))
	published, conflicts, err := Publish(t.Context(), s, one, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{published, conflicts})
	published, conflicts, err = Publish(t.Context(), s, other, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{published, conflicts})
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, info.State.Msgs, "one marker, and the newer event")
	last, err := Compare(t.Context(), s, known, Options{})
	require.NoError(t, err)
	require.True(t, !last.Begins && len(last.Changes) == 0 && last.Newer == 1, "%+v", last)
}

// What a file of tombstones knew of the same history stays in it; one of another is not touched.
func TestTombstonesGrow(t *testing.T) {
	at := time.UnixMilli(1).UTC()
	gone := func(id string, revision int64) events.Data {
		return events.Delisting{List: events.Scammers, EntryID: id, Revision: revision}
	}
	now := Tombstones{Histories: []string{"B", "A"}, Removals: []events.Data{gone("b", 2), gone("c", 1)}, Time: at}
	require.NoError(t, now.Add(Tombstones{Histories: []string{"A", "0"}, Removals: []events.Data{gone("a", 1), gone("b", 1)}, Time: at.Add(1e9)}))
	require.Equal(t, Tombstones{Histories: []string{"B", "A", "0"}, Removals: []events.Data{gone("a", 1), gone("b", 2), gone("c", 1)}, Time: at.Add(1e9)}, now)
	require.Error(t, now.Add(Tombstones{Histories: []string{"C"}}))
}
