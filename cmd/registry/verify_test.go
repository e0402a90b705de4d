package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/admin"
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
	defer served.following.Stop()
	if _, err := served.model.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	operators, err := admin.New(admin.Config{
		Health:   &httpapi.Health{Reader: served.model, Readiness: func() httpapi.Readiness { return httpapi.Readiness{Ready: true} }},
		Gatherer: prometheus.NewRegistry(),
		Records: func(context.Context, uint64) (all admin.Records, err error) {
			p := served.projector.Progress()
			all.Stream, all.StreamEpoch = p.Stream, p.StreamEpoch
			served.projector.Inspect(func(m *readmodel.Model) { all.Inventory = m.Inventory() })
			return all, nil
		},
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
	wrong := entries[17]
	wrong.Verified, wrong.Revision = !wrong.Verified, 2
	served.projector.Inspect(func(m *readmodel.Model) {
		m.Apply([]readmodel.Record{readmodel.NewRenderer().Render(last, wrong)}, last)
	})
	out, err := verify()
	if err == nil || !strings.Contains(err.Error(), "1 of 300 records differ") || !strings.Contains(out, wrong.Subject().String()+": differs") {
		t.Errorf("with a flipped entry: %v %s", err, out)
	}
	// A tombstone that the server lacks would let somebody be accused again; one that the stream
	// has lost is no harm.
	last = eventstest.Publish(t, js, delisting(entries[3].List, entries[3].EntryID, 1000))
	if _, err := served.model.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := served.projector.Flush(t.Context()); err != nil { // until then the projector reads the model's digest
		t.Fatal(err)
	}
	served.projector.Inspect(func(m *readmodel.Model) {
		m.Apply([]readmodel.Record{readmodel.NewRenderer().Render(7, delisting(entries[3].List, entries[3].EntryID, 1001).Data)}, last)
	})
	out, err = verify()
	if err == nil || !strings.Contains(out, "tombstone of "+entries[3].Subject().String()+": differs") {
		t.Errorf("with another tombstone: %v %s", err, out)
	}
	served.projector.Inspect(func(m *readmodel.Model) {
		m.Apply([]readmodel.Record{readmodel.NewRenderer().Render(last, delisting(entries[3].List, entries[3].EntryID, 1002).Data)}, last)
	})
	stream, err := js.Stream(t.Context(), events.DefaultStream)
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(entries[3].Subject().String()))
	}
	require.NoError(t, err)
	if out, err := verify(); err == nil || strings.Contains(out, entries[3].EntryID) { // the flipped entry alone
		t.Errorf("after a purge of a tombstone: %v %s", err, out)
	}
}
