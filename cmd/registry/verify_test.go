package main

import (
	"context"
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
	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// exporter is the running server's part: it exports a store.
type exporter struct {
	admin.Snapshots
	store *snapshots.Store
}

func (e exporter) Export(ctx context.Context, w io.Writer, begin func()) error {
	_, err := snapshots.Write(ctx, e.store, w, func(snapshots.Header) { begin() })
	return err
}

// Verify names exactly the states that differ, and says which side has the newer one.
func TestVerify(t *testing.T) {
	t.Parallel()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	eventstest.Stream(t, js)
	eventstest.Publish(t, js, eventstest.Events(300, 15)...)
	store, err := projector.Replay(t.Context(), js, events.DefaultStream, t.TempDir(), nil)
	require.NoError(t, err)
	defer store.Close()
	model := readmodel.New()
	operators := admin.New(admin.Config{
		Health:     &httpapi.Health{Reader: model, Readiness: func() httpapi.Readiness { return httpapi.Readiness{Ready: true} }},
		Gatherer:   prometheus.NewRegistry(),
		Snapshots:  exporter{store: store},
		Projection: func() admin.Projection { return admin.ProjectionOf(model.View()) },
	})
	srv := httptest.NewServer(operators)
	defer srv.Close()
	verify := func() (string, error) {
		var out strings.Builder
		err := run(t.Context(), []string{"verify", "--admin-addr=" + strings.TrimPrefix(srv.URL, "http://"), "--nats-url=" + b.ClientURL()},
			func(string) string { return "" }, strings.NewReader(""), &out, io.Discard)
		return out.String(), err
	}

	out, err := verify()
	require.NoError(t, err, out)
	require.Regexp(t, `^300 states compared at sequence 300: no difference; digest [0-9a-f]{32}\n$`, out)

	// The server gets a newer state, an older one, and one that the stream lacks.
	entries := eventstest.Entries(300, 15)
	newer, older := entries[3], entries[17]
	newer.Revision, newer.Name = 2, "Nowsza"
	older.Name = "Inna"
	if events.Compare(older, entries[17]) > 0 {
		older.Name = "Inny"
	}
	require.Negative(t, events.Compare(older, entries[17]))
	own := events.Views{List: events.Legit, EntryID: "nobody", Views: 1, Revision: 1}
	changed := map[string]difference{newer.Subject().String(): unpublished, older.Subject().String(): staleServer, own.Subject().String(): unpublished}
	change(t, store, newer, older, own)
	out, err = verify()
	require.ErrorContains(t, err, "3 of 301 states differ at sequence 300: rebuild the read model (registry rebuild)")
	require.Equal(t, 3, strings.Count(out, "\n"), out)
	for subject, what := range changed {
		require.Contains(t, out, subject+": "+string(what)+"\n")
	}
}

// change saves other states than the stream's.
func change(t *testing.T, store *snapshots.Store, states ...events.Data) {
	t.Helper()
	c := snapshots.Commit{States: map[events.Subject]snapshots.State{}, Meta: store.Meta()}
	for _, d := range states {
		line, err := snapshots.EncodeState(d)
		require.NoError(t, err)
		c.States[d.Subject()] = snapshots.State{Sequence: 1, Line: line}
	}
	require.NoError(t, store.Save(c))

	var digest readmodel.Digest
	err := store.Each(func(snapshots.Meta, int) error { return nil }, func(state snapshots.State) error {
		e, err := events.Decode(state.Line)
		digest.Add(readmodel.StateDigest(e.Data))
		return err
	})
	require.NoError(t, err)
	c.Meta.Digest = digest.String()
	require.NoError(t, store.Save(snapshots.Commit{Meta: c.Meta}))
}
