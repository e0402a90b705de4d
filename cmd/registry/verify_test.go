package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
)

// Verify names exactly the record that is wrong in the server's memory, and says that it is.
func TestVerifyFindsFlipped(t *testing.T) {
	t.Parallel()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	eventstest.Stream(t, js)
	entries := eventstest.Entries(300, 15)
	var evs []events.Event
	for i, e := range entries {
		evs = append(evs, events.Event{ID: fmt.Sprint("v-", i), Source: "/t", Type: events.TypeListed, Data: e})
	}
	last := eventstest.Publish(t, js, evs...)
	served := startReplay(js, events.DefaultStream)
	defer served.stop()
	_, err := served.model.Await(t.Context(), last)
	require.NoError(t, err)
	knows := recovery.States{}
	flip := func(sequence, last uint64, d events.Data) {
		knows.Add(readmodel.State{Data: d})
		served.projector.Inspect(func(m *readmodel.Model) {
			m.Apply([]readmodel.Record{readmodel.NewRenderer().Render(sequence, d)}, last)
		})
	}
	operators, err := admin.New(admin.Config{
		Health:   &httpapi.Health{Reader: served.model, Readiness: func() httpapi.Readiness { return httpapi.Readiness{Ready: true} }},
		Gatherer: prometheus.NewRegistry(),
		Records: func(context.Context, uint64) (all admin.Records, err error) {
			p := served.projector.Progress()
			all.Stream, all.Epoch = p.Stream, p.StreamEpoch
			served.projector.Inspect(func(m *readmodel.Model) { all.Inventory = m.Inventory() })
			return all, nil
		},
		Archives:   exporter{states: knows},
		Projection: func() admin.Projection { return admin.ProjectionOf(served.model.View()) },
	})
	require.NoError(t, err)
	srv := httptest.NewServer(operators)
	defer srv.Close()
	verify := func() (string, error) {
		var out strings.Builder
		err := run(t.Context(), []string{"verify", "--admin-addr=" + strings.TrimPrefix(srv.URL, "http://"), "--nats-url=" + b.ClientURL()},
			func(string) string { return "" }, strings.NewReader(""), &out, io.Discard)
		return out.String(), err
	}
	if out, err := verify(); err != nil {
		t.Fatalf("while all is well: %v %s", err, out)
	}
	wrong := entries[17] // in memory alone: its export is as the stream has it
	wrong.Verified, wrong.Revision = !wrong.Verified, 2
	served.projector.Inspect(func(m *readmodel.Model) {
		m.Apply([]readmodel.Record{readmodel.NewRenderer().Render(last, wrong)}, last)
	})
	newer := entries[3]
	newer.Revision, newer.Name = 2, "Nowsza"
	flip(last, last, newer)
	out, err := verify()
	for _, want := range []string{wrong.Subject().String() + ": differs", newer.Subject().String() + ": the server's state is the newer one"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v %s, want %q", err, out, want)
		}
	}
	// A tombstone that the stream lacks, after a purge or a loss, is named, too.
	gone := delisting(entries[5].List, entries[5].EntryID, 1000)
	flip(0, last, gone.Data)
	out, err = verify()
	if err == nil || !strings.Contains(out, entries[5].Subject().String()+": "+unpublished) {
		t.Errorf("with a tombstone of its own: %v %s", err, out)
	}
}

// exporter exports states.
type exporter struct {
	admin.Archives
	states recovery.States
}

func (e exporter) Export(_ context.Context, w io.Writer, begin func()) error {
	begin()
	for _, s := range e.states {
		line, err := events.Encode(events.StateEvent(s.Data))
		if err != nil {
			return err
		}
		_, _ = w.Write(append(line, '\n'))
	}
	return nil
}
