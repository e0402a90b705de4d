package projector

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// ask sends a request to the service and returns the reply as it is.
func ask(t *testing.T, nc *nats.Conn, payload []byte, header nats.Header) string {
	t.Helper()
	m, err := nc.RequestMsg(&nats.Msg{Subject: events.ValidateSubject, Data: payload, Header: header}, patience)
	require.NoError(t, err)
	return string(m.Data)
}

// The service says of each event what the projector makes of it, with its reason, and publishes
// nothing (events/CONTRACT.md#asking-first).
func TestValidation(t *testing.T) {
	s := newSystem(t)
	s.start()
	known := func(k events.Subject) (revision int64) {
		s.p.Inspect(func(m *readmodel.Model) { revision = m.Known(k) })
		return revision
	}
	for range 2 { // as two servers: one answers
		stop, err := ServeValidation(s.nc, known, slog.New(slog.NewTextHandler(s.log, nil)))
		require.NoError(t, err)
		t.Cleanup(stop)
	}
	s.until("the broker knows of the services", func() bool { return s.nc.Flush() == nil })
	subject, payload := good(t)
	e, _ := events.Decode(payload)
	nc := s.js.Conn()
	valid := `{"valid":true,"subject":"` + subject + `","messageId":"` + e.ID + `"}`
	for name, given := range map[string]nats.Header{"alone": nil, "with its subject": {events.HeaderSubject: {subject}}} {
		if got := ask(t, nc, payload, given); got != valid {
			t.Errorf("%s: got %s, want %s", name, got, valid)
		}
	}

	type rejected struct {
		subject string
		payload []byte
		header  nats.Header
	}
	binary := nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-type": {"registry.entry.listed"}, "ce-source": {"x"}, "Content-Type": {"application/json"}}
	data := events.AppendData(nil, e.Data)
	for _, r := range []rejected{
		{subject, []byte("{"), nil},
		{subject, nil, nil},
		{subject, []byte(strings.Replace(string(payload), `"reportedAt":"`, `"reportedAt":"2025-11-21 10:15:00+01`, 1)), nil},
		{"registry.servers.nobody", payload, nil},
		{"registry.unknown.a.b", payload, nil},
		{subject, data, binary},
	} {
		header := nats.Header{}
		maps.Copy(header, r.header)
		seq, err := s.js.PublishMsg(t.Context(), &nats.Msg{Subject: r.subject, Data: r.payload, Header: header})
		require.NoError(t, err)
		s.reach(seq.Sequence)
		reason := s.copyOf(s.p.Progress().StreamEpoch, seq.Sequence).Header.Get(events.HeaderReason)
		header = r.header
		if header == nil {
			header = nats.Header{}
		}
		header[events.HeaderSubject] = []string{r.subject}
		var got validation
		if err := json.Unmarshal([]byte(ask(t, nc, r.payload, header)), &got); err != nil || got != (validation{Reason: reason}) || reason == "" {
			t.Errorf("%s: the service says %+v, the projector %q (%v)", r.subject, got, reason, err)
		}
	}
	if got := ask(t, nc, data, binary); !strings.Contains(got, "send structured mode") {
		t.Errorf("binary mode: %s", got)
	}
	if got := ask(t, nc, payload, nats.Header{events.HeaderSubject: {""}}); !strings.HasPrefix(got, `{"valid":false,"reason":"subject: unknown subject`) {
		t.Errorf("a subject that was lost: %s", got)
	}

	// What is known of each kind of subject, and a revision beyond tomorrow.
	entry := e.Data.(events.Entry)
	gone := events.Delisting{List: entry.List, EntryID: "gone", Revision: 5}
	counted := events.Views{List: entry.List, EntryID: "gone", Revision: 6, Views: 2}
	entry.Revision = 7
	paid := events.DonationRemoval{DonationID: "d", Revision: 8}
	for _, d := range []events.Data{gone, counted, entry, paid} {
		s.reach(eventstest.Publish(t, s.js, events.StateEvent(d)))
		for _, ahead := range []time.Duration{-time.Hour, 23 * time.Hour, 25 * time.Hour} {
			next := events.StateEvent(events.Revised(d, time.Now().Add(ahead).UnixMilli()))
			payload, err := events.Encode(next)
			require.NoError(t, err)
			var got validation
			require.NoError(t, json.Unmarshal([]byte(ask(t, nc, payload, nil)), &got))
			if ahead > 24*time.Hour {
				require.False(t, got.Valid)
				require.Contains(t, got.Reason, "more than a day ahead")
				continue
			}
			require.True(t, got.Valid)
			require.Equal(t, events.Revision(d), got.Known)
		}
	}
	ahead := events.StateEvent(events.Revised(counted, time.Now().Add(48*time.Hour).UnixMilli()))
	s.reach(eventstest.Publish(t, s.js, ahead))
	again, err := events.Encode(ahead)
	require.NoError(t, err)
	require.Contains(t, ask(t, nc, again, nil), `"valid":true`)

	before := s.info().State.LastSeq
	ask(t, nc, payload, nil)
	if after := s.info().State.LastSeq; after != before {
		t.Errorf("a request changed the stream: %d, then %d", before, after)
	}

	// nats micro ls
	var info micro.Info
	m, err := nc.Request("$SRV.INFO."+events.ValidateSubject, nil, patience)
	require.NoError(t, err)
	if err := json.Unmarshal(m.Data, &info); err != nil || len(info.Endpoints) != 1 || info.Endpoints[0].Subject != events.ValidateSubject {
		t.Errorf("the service describes itself as %s: %v", m.Data, err)
	}
}

// The service is there before the broker is, and again after it was away.
func TestValidationOutlivesTheBroker(t *testing.T) {
	s := newSystem(t)
	s.open()
	s.p = nil
	defer s.store.Close()
	defer s.nc.Close()
	s.away()
	stop, err := ServeValidation(s.nc, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer stop()
	s.back()
	_, payload := good(t)
	answered := func() bool {
		_, err := s.js.Conn().Request(events.ValidateSubject, payload, patience)
		return err == nil // else: no responders yet
	}
	s.until("the service answers", answered)
	s.restartBroker(nil)
	s.until("the service answers again", answered)
}

// A user of the broker who may not serve costs the service alone, and one line of the log.
func TestValidationRefused(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users.conf")
	if err := os.WriteFile(users, []byte(`authorization { users: [{ user: old, password: secret
		permissions { publish: ">", subscribe: "_INBOX.>" } }] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := eventstest.Broker(t, func(c *broker.Config) { c.ConfigFile = users })
	nc, err := nats.Connect(b.ClientURL(), nats.UserInfo("old", "secret"))
	require.NoError(t, err)
	defer nc.Close()
	var log eventstest.Log
	stop, err := ServeValidation(nc, nil, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	defer stop()
	s := &system{t: t}
	s.until("the refusal is logged", func() bool { return log.Count("does not answer on registry-validate") > 0 })
	require.NoError(t, nc.ForceReconnect())
	s.until("the user is connected again", func() bool { return nc.Stats().Reconnects == 1 && nc.Flush() == nil })
	if log.Count("\n") != 1 {
		t.Error(log.String())
	}
}
