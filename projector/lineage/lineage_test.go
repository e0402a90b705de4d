package lineage_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func stream(js jetstream.JetStream) leader.Stream {
	return leader.Stream{JS: js, Name: events.DefaultStream}
}

// Every kind of difference between a stream and a checkpoint is found, and no other.
func TestCheck(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	made := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.DenyDelete = false })
	eventstest.Publish(t, js, eventstest.Events(10, 1)...)
	m, err := stream(js).Message(t.Context(), 5)
	require.NoError(t, err)
	require.NoError(t, made.DeleteMsg(t.Context(), 7))
	next, err := stream(js).Message(t.Context(), 6)
	require.NoError(t, err)
	good := readmodel.Checkpoint{StreamIdentity: lineage.Of(made.CachedInfo()), Sequence: 5, MessageID: m.ID, MessageTime: m.Time}
	for name, c := range map[string]struct {
		change func(at *readmodel.Checkpoint)
		wrong  bool
		kind   lineage.Kind
	}{
		"same":                           {func(*readmodel.Checkpoint) {}, false, 0},
		"nothing known":                  {func(at *readmodel.Checkpoint) { *at = readmodel.Checkpoint{} }, false, 0},
		"another epoch":                  {func(at *readmodel.Checkpoint) { at.StreamEpoch = "other" }, true, lineage.Different},
		"too short":                      {func(at *readmodel.Checkpoint) { at.Sequence = 11 }, true, lineage.Shorter},
		"another message":                {func(at *readmodel.Checkpoint) { at.MessageID = "other" }, true, lineage.Different},
		"another time":                   {func(at *readmodel.Checkpoint) { at.MessageTime = at.MessageTime.Add(1) }, true, lineage.Different},
		"restored into a cluster":        {func(at *readmodel.Checkpoint) { at.StreamCreated = time.Unix(1, 0) }, false, 0},
		"message gone":                   {func(at *readmodel.Checkpoint) { at.Sequence = 7 }, false, 0},
		"message gone, made again":       {func(at *readmodel.Checkpoint) { at.Sequence, at.StreamCreated = 7, time.Unix(1, 0) }, true, lineage.Different},
		"message gone, was wrong before": {func(at *readmodel.Checkpoint) { at.Sequence, at.Unconfirmed = 7, true }, true, lineage.Unproven},
		"message gone, rewound":          {func(at *readmodel.Checkpoint) { at.Sequence, at.NewestTime = 7, m.Time }, true, lineage.Different},
		"message gone, rewound and seen so before": {func(at *readmodel.Checkpoint) { at.Sequence, at.NewestTime, at.Unconfirmed = 7, m.Time, true },
			true, lineage.Different},
		"message gone, no message newer":         {func(at *readmodel.Checkpoint) { at.Sequence, at.NewestTime = 7, time.Now() }, false, 0},
		"message gone, newer ones are behind it": {func(at *readmodel.Checkpoint) { at.Sequence, at.NewestTime = 7, next.Time }, false, 0},
		"message gone, stored by a slow clock": {func(at *readmodel.Checkpoint) {
			at.Sequence, at.MessageTime, at.NewestTime = 7, m.Time.Add(-time.Hour), next.Time
		}, false, 0},
		"message gone, of an older program": {func(at *readmodel.Checkpoint) { at.Sequence, at.MessageTime = 7, m.Time }, false, 0},
		"message gone, rewound, of an older program": {func(at *readmodel.Checkpoint) {
			at.Sequence, at.MessageTime = 7, m.Time.Add(-time.Minute)
		}, true, lineage.Different},
		"message gone, nothing known of it": {func(at *readmodel.Checkpoint) { at.Sequence, at.MessageTime = 7, time.Time{} }, false, 0},
	} {
		at := good
		c.change(&at)
		err := lineage.Check(t.Context(), stream(js), at)
		var identity *lineage.Error
		if c.wrong != errors.As(err, &identity) || !c.wrong && err != nil || c.wrong && identity.Kind != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	var identity *lineage.Error
	if err := lineage.Check(t.Context(), leader.Stream{JS: js, Name: "NONE"}, good); !errors.As(err, &identity) {
		t.Errorf("missing: %v", err)
	}
}

// A stream is ours wherever a checkpoint of it was taken, whatever has been pushed out and purged
// since.
func TestCheckOurs(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	rapid.Check(t, func(t *rapid.T) {
		made, err := js.CreateStream(context.Background(), jetstream.StreamConfig{Name: events.DefaultStream, Subjects: []string{"s.*"},
			Storage: jetstream.MemoryStorage, MaxMsgsPerSubject: rapid.Int64Range(1, 3).Draw(t, "kept")})
		require.NoError(t, err)
		defer func() { _ = js.DeleteStream(context.Background(), events.DefaultStream) }()
		var taken []readmodel.Checkpoint
		at := readmodel.Checkpoint{StreamIdentity: lineage.Of(made.CachedInfo())}
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			subject := rapid.SampledFrom([]string{"s.a", "s.b", "s.c"}).Draw(t, "subject")
			if rapid.IntRange(0, 9).Draw(t, "purge") == 0 {
				require.NoError(t, made.Purge(context.Background(), jetstream.WithPurgeSubject(subject)))
			}
			ack, err := js.Publish(context.Background(), subject, nil)
			require.NoError(t, err)
			m, err := stream(js).Message(context.Background(), ack.Sequence)
			require.NoError(t, err)
			at.Sequence, at.MessageTime, at.NewestTime = m.Sequence, m.Time, m.Time
			taken = append(taken, at)
		}
		for _, at := range taken {
			if err := lineage.Check(context.Background(), stream(js), at); err != nil {
				t.Fatalf("%+v: %v", at, err)
			}
		}
	})
}

// A stream that has nothing left proves nothing.
func TestCheckPurged(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	made := eventstest.Stream(t, js)
	eventstest.Publish(t, js, eventstest.Events(10, 1)...)
	require.NoError(t, made.Purge(t.Context()))
	at := readmodel.Checkpoint{StreamIdentity: lineage.Of(made.CachedInfo()), Sequence: 7, NewestTime: made.CachedInfo().Created}
	if err := lineage.Check(t.Context(), stream(js), at); err != nil {
		t.Error(err)
	}
}

// A broker that does not know the question by time answers with the first message of the stream.
func TestFirstAfterOfAnOlderBroker(t *testing.T) {
	t.Parallel()
	js, _ := staleReplica(t) // whose message is of second 40
	if m, err := stream(js).FirstAfter(t.Context(), time.Unix(40, 0)); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := stream(js).FirstAfter(t.Context(), time.Unix(39, 0)); err != nil || m.Sequence != 40 {
		t.Errorf("%+v, %v", m, err)
	}
}

// A replica that lags has no message at the checkpoint, and would let a stream pass for ours whose
// leader has another one there. So nobody asks a replica, though the stream allows direct access.
func TestCheckAsksTheLeader(t *testing.T) {
	t.Parallel()
	js, direct := staleReplica(t)
	at := readmodel.Checkpoint{Sequence: 40, MessageID: "ours", MessageTime: time.Unix(40, 0)}
	var identity *lineage.Error
	if err := lineage.Check(t.Context(), stream(js), at); !errors.As(err, &identity) {
		t.Errorf("another message at the checkpoint: %v", err)
	}
	at.MessageID = "the leader's"
	if err := lineage.Check(t.Context(), stream(js), at); err != nil {
		t.Error(err)
	}
	if m, err := stream(js).NextMessage(t.Context(), 1, ">"); err != nil || m.Sequence != 40 {
		t.Errorf("the next message: %+v, %v", m, err)
	}
	if n := direct.Load(); n > 0 {
		t.Errorf("%d requests for direct access", n)
	}
	// This is what the client library would do.
	s, err := js.Stream(t.Context(), events.DefaultStream)
	if err == nil {
		_, err = s.GetMsg(t.Context(), 40)
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) || direct.Load() != 1 {
		t.Errorf("the library asks the leader now: is this package needed? %v", err)
	}
}

// staleReplica connects to what answers as a cluster does in which a replica of the stream lags:
// the leader has one message, and the one that answers direct access, which direct counts, has none.
func staleReplica(t *testing.T) (js jetstream.JetStream, direct *atomic.Int32) {
	t.Helper()
	s := eventstest.Server(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	answer := func(subject string, with func(*nats.Msg) *nats.Msg) {
		t.Helper()
		if _, err := nc.Subscribe("$JS.API."+subject, func(m *nats.Msg) { _ = m.RespondMsg(with(m)) }); err != nil {
			t.Fatal(err)
		}
	}
	info, err := json.Marshal(jetstream.StreamInfo{
		Config:  jetstream.StreamConfig{Name: events.DefaultStream, AllowDirect: true},
		Cluster: &jetstream.ClusterInfo{Name: "nodes", Leader: "node1"},
		State:   jetstream.StreamState{FirstSeq: 40, LastSeq: 40, Msgs: 1},
	})
	require.NoError(t, err)
	answer("STREAM.INFO.>", func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: info} })
	message, err := json.Marshal(map[string]any{"message": map[string]any{"subject": "registry.servers.x", "seq": 40, "time": time.Unix(40, 0),
		"hdrs": []byte("NATS/1.0\r\n" + jetstream.MsgIDHeader + ": the leader's\r\n\r\n")}})
	require.NoError(t, err)
	answer("STREAM.MSG.GET.>", func(*nats.Msg) *nats.Msg { return &nats.Msg{Data: message} })
	direct = new(atomic.Int32)
	answer("DIRECT.GET.>", func(*nats.Msg) *nats.Msg {
		direct.Add(1)
		return &nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}}
	})
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	return js, direct
}

// An answer without a leader counts for nothing.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	if _, err := stream(eventstest.LonelyNode(t, "")).Info(t.Context()); !errors.Is(err, leader.ErrLeaderless) {
		t.Error(err)
	}
}
