package rejected

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/events/publish"
	"example.org/registry/projector/lineage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.Leaks()...) }

// open returns the rejected events of a new broker, none of whose direct gets finds anything.
func open(t *testing.T) (jetstream.JetStream, *Events) {
	t.Helper()
	js := lagging{eventstest.Connect(t, eventstest.Broker(t))}
	eventstest.Stream(t, js)
	_, err := js.CreateStream(t.Context(), publish.RejectedStreamConfig(1))
	require.NoError(t, err)
	r, err := Open(t.Context(), js, events.DefaultStream)
	require.NoError(t, err)
	return js, r
}

// A copy is shown with the time at which its event was stored, not that of the copy, and at once: also
// while a replica does not have it yet.
func TestTime(t *testing.T) {
	t.Parallel()
	js, r := open(t)
	stored := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := Copy{Epoch: r.histories[0], Sequence: 7, Subject: "registry.servers.x", Reason: "not JSON", Time: stored, Truncated: true}
	_, err := js.PublishMsg(t.Context(), want.Message())
	require.NoError(t, err)
	listed, _, err := r.List(t.Context())
	if err != nil || len(listed) != 1 || !listed[0].Time.Equal(stored) {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	last, err := Last(t.Context(), js, 20)
	if err != nil || len(last) != 1 || !last[0].Time.Equal(stored) {
		t.Errorf("last: %+v, %v", last, err)
	}
	found, err := r.find(t.Context(), 7)
	if err != nil || found.Reason != want.Reason || !found.Time.Equal(stored) || !found.Truncated {
		t.Errorf("found: %+v, %v", found, err)
	}
}

// lagging answers direct gets as a replica does that has none of the copies yet.
type lagging struct{ jetstream.JetStream }

func (l lagging) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := l.JetStream.Stream(ctx, name)
	return laggingStream{s}, err
}

type laggingStream struct{ jetstream.Stream }

func (laggingStream) GetMsg(context.Context, uint64, ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	return nil, jetstream.ErrMsgNotFound
}

func (laggingStream) GetLastMsgForSubject(context.Context, string) (*jetstream.RawStreamMsg, error) {
	return nil, jetstream.ErrMsgNotFound
}

// A copy that does not say when its event was stored was made by an older projector; other messages
// are no copies.
func TestParse(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	if c, ok := parse(prefix("e")+"3", nats.Header{events.HeaderTime: {"yesterday"}}, nil, now); !ok || c.Epoch != "e" || c.Sequence != 3 || !c.Time.Equal(now) {
		t.Errorf("%+v, %v", c, ok)
	}
	for _, subject := range []string{"registry-rejected.e", "registry-rejected.e.x", "registry-rejected.e.1.2", "registry-rejected.e.-1", ""} {
		if c, ok := parse(subject, nil, nil, now); ok {
			t.Errorf("%q: %+v", subject, c)
		}
	}
}

// Of the copies made last, the highest sequences come first; a purged one leaves a gap.
func TestLast(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	if copies, err := Last(t.Context(), js, 3); err != nil || len(copies) > 0 {
		t.Errorf("without a stream of copies: %+v, %v", copies, err)
	}
	stream, err := js.CreateStream(t.Context(), publish.RejectedStreamConfig(1))
	require.NoError(t, err)
	if copies, err := Last(t.Context(), js, 3); err != nil || len(copies) > 0 {
		t.Errorf("without copies: %+v, %v", copies, err)
	}
	for _, seq := range []uint64{1, 2, 3, 5, 4, 6} {
		_, err := js.PublishMsg(t.Context(), Copy{Epoch: "e", Sequence: seq}.Message())
		require.NoError(t, err)
	}
	_, err = purge(t.Context(), stream, prefix("e")+"6")
	require.NoError(t, err)
	copies, err := Last(t.Context(), js, 3)
	if err != nil || len(copies) != 3 || copies[0].Sequence != 5 || copies[1].Sequence != 4 || copies[2].Sequence != 3 {
		t.Errorf("%+v, %v", copies, err)
	}
	if copies, err = Last(t.Context(), js, 20); err != nil || len(copies) != 5 {
		t.Errorf("%+v, %v", copies, err)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		subject, pattern string
		want             bool
	}{
		{"registry.scammers.x", "registry.scammers.x", true}, {"registry.scammers.x", "registry.scammers.*", true},
		{"registry.scammers.x", "registry.>", true}, {"registry.scammers.x", "registry.*.x", true}, {"registry.views.legit.x", "registry.>", true},
		{"registry.scammers.x", "registry.scammers.>", true}, {"registry.scammers.*", "registry.scammers.*", true},
		{"registry.views.legit.x", "registry.*.x", false}, {"registry.views.legit.x", "registry.views.*", false},
		{"registry.scammers", "registry.scammers.>", false}, {"registry.scammers", "registry.scammers.*", false},
		{"registry.scammers.xy", "registry.scammers.x", false}, {"registry.scammers.x", "registry.scammers.xy", false},
		{"registry.scammers.x", "registry.scammers", false}, {"", "registry.>", false},
	} {
		if got := matches(c.subject, c.pattern); got != c.want {
			t.Errorf("%q, %q: %v", c.subject, c.pattern, got)
		}
	}
	for pattern, good := range map[string]bool{
		"registry.scammers.x": true, "registry.*.x": true, "registry.>": true, "registry-rejected.>": true,
		"registry.scammers.66*": false, "registry.>.x": false, "registry..x": false, "registry.": false, "registry.a b": false, "": false, "registry.a>": false,
	} {
		if err := CheckPattern(pattern); (err == nil) != good {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestToken(t *testing.T) {
	for epoch, want := range map[string]string{
		"1763712900123456789": "1763712900123456789", "a.b c>*": "a_b_c__", "Ab-_9": "Ab-_9",
	} {
		if got := token(epoch); got != want {
			t.Errorf("token(%q) = %q", epoch, got)
		}
	}
	if epoch := events.NewEpoch(); token(epoch) != epoch {
		t.Errorf("token changes %q", epoch)
	}
}

// An event is published again where its revision wins against every state of its subject, whatever
// stands last there; one that cannot be read, only where it is the last.
func TestRetry(t *testing.T) {
	t.Parallel()
	js, r := open(t)
	e := eventstest.Entries(1, 1)[0]
	subject := e.Subject().String()
	reject := func(payload []byte) uint64 {
		seq := eventstest.PublishRaw(t, js, subject, payload)
		_, err := js.PublishMsg(t.Context(), Copy{Epoch: r.histories[0], Sequence: seq, Subject: subject, Reason: "x", Payload: payload}.Message())
		require.NoError(t, err)
		return seq
	}
	state := func(revision int) []byte {
		payload, err := events.Encode(eventstest.Listed(e, revision))
		require.NoError(t, err)
		return payload
	}
	seven := reject(state(7))
	eventstest.Publish(t, js, eventstest.Listed(e, 6))
	broken := reject([]byte("{}"))
	_, err := r.Retry(t.Context(), seven)
	require.NoError(t, err)
	_, err = r.Retry(t.Context(), broken)
	require.ErrorContains(t, err, "something newer")
	six := reject(state(6))
	_, err = r.Retry(t.Context(), six)
	require.ErrorContains(t, err, "revision 6 of it does not win against revision 7")
	_, err = r.Retry(t.Context(), reject([]byte("{}")))
	require.NoError(t, err)
}

// Events of all histories of the stream are listed and published again; where a history has a
// sequence again that an earlier one had, the newer event is meant.
func TestHistories(t *testing.T) {
	t.Parallel()
	js, r := open(t)
	first := r.histories[0]
	_, err := lineage.Begin(t.Context(), leader.Stream{JS: js, Name: events.DefaultStream}, events.History{Name: "second", Follows: []string{first}, Kind: events.HistoryNew, Revision: 1}, 0)
	require.NoError(t, err)
	for _, c := range []Copy{{Epoch: first, Sequence: 5}, {Epoch: first, Sequence: 6}, {Epoch: "second", Sequence: 6}, {Epoch: "strange", Sequence: 7}} {
		c.Subject, c.Reason = "registry.servers.x", c.Epoch
		_, err := js.PublishMsg(t.Context(), c.Message())
		require.NoError(t, err)
	}
	r, err = Open(t.Context(), js, events.DefaultStream)
	require.NoError(t, err)
	copies, others, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{first, "second"}, []string{copies[0].Reason, copies[1].Reason})
	require.Equal(t, []string{first, "strange"}, []string{others[0].Reason, others[1].Reason})
	for _, c := range copies {
		found, err := r.find(t.Context(), c.Sequence)
		require.NoError(t, err)
		require.Equal(t, c.Epoch, found.Epoch)
	}
	_, err = r.find(t.Context(), 7)
	require.ErrorContains(t, err, "no rejected event of this stream")
}
