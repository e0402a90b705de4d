//go:build unix && !race

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// agree checks that replicas are at the stream's end with one digest, that their answers are byte
// for byte the same in every coding, and that "registry verify" finds no difference.
func agree(t *testing.T, c *nodes, sequence uint64, replicas ...*replica) {
	t.Helper()
	for _, r := range replicas {
		until(t, "a replica is at the end", func() bool { return r.well(t, sequence) && r.projection(t).Lag == 0 })
	}
	first := replicas[0].projection(t)
	for _, r := range replicas[1:] {
		if p := r.projection(t); p.Digest != first.Digest || p.Checkpoint != first.Checkpoint || p.StreamEpoch != first.StreamEpoch {
			t.Errorf("replicas differ: %+v and %+v", first, p)
		}
		for _, path := range append([]string{"/api/scammers?limit=60&sort=popular", "/api/check?id=" + eventstest.Entries(1, 6)[0].ChatID}, paths...) {
			for _, coding := range codings() {
				sameAnswer(t, replicas[0], r, path, coding)
			}
		}
	}
	for _, r := range replicas {
		if _, err := r.command(t.Context(), c.urls(), "verify"); err != nil {
			t.Error(err)
		}
	}
}

func sameAnswer(t *testing.T, one, other *replica, path, coding string) {
	t.Helper()
	header := http.Header{"Accept-Encoding": {coding}}
	a, b := get(t, one.HTTP+path, header), get(t, other.HTTP+path, header)
	if a.status != 200 || b.status != 200 || !bytes.Equal(a.body, b.body) {
		t.Errorf("%s %s: %d with %d bytes and %d with %d bytes", path, coding, a.status, len(a.body), b.status, len(b.body))
	}
	for _, name := range []string{"Etag", "Registry-Sequence", "Content-Encoding", "Cache-Control", "Vary", "Content-Type"} {
		if a.header.Get(name) != b.header.Get(name) {
			t.Errorf("%s %s: %s is %q and %q", path, coding, name, a.header.Get(name), b.header.Get(name))
		}
	}
	header["If-None-Match"] = []string{a.header.Get("Etag")}
	if again := get(t, other.HTTP+path, header); again.status != http.StatusNotModified {
		t.Errorf("%s %s: %d for the other replica's tag %s", path, coding, again.status, a.header.Get("Etag"))
	}
}

// publicEntry is what the comparison looks at.
type publicEntry struct {
	EntryID string `json:"_id"`
	Name    string `json:"name"`
	ChatID  string `json:"id"`
}

// shown checks that a replica shows exactly what has been acknowledged: every list in two orders,
// and some checks and donations. Nobody may publish meanwhile.
func (b *backend) shown(ctx context.Context, r *replica, rng *rand.Rand) error {
	client := newClient(true)
	defer client.CloseIdleConnections()
	for _, list := range events.Lists() {
		for _, sort := range []string{"popular", "newest"} {
			if err := b.sameList(ctx, client, r, list, sort); err != nil {
				return err
			}
		}
	}
	for range 40 {
		if err := b.sameCheck(ctx, client, r, b.content.entries[rng.IntN(len(b.content.entries))]); err != nil {
			return err
		}
		all := append(b.content.donations, b.content.removed...)
		if err := b.sameDonation(ctx, client, r, all[rng.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

func (b *backend) sameList(ctx context.Context, client *http.Client, r *replica, list events.List, sort string) error {
	want := b.twin.List(list, sort == "popular")
	var got []publicEntry
	for more := true; more; {
		var page struct {
			Data    []publicEntry
			Total   int
			HasMore bool
		}
		if err := document(ctx, client, fmt.Sprintf("%s/api/%s?sort=%s&limit=60&skip=%d", r.HTTP, list, sort, len(got)), &page); err != nil {
			return err
		}
		if got, more = append(got, page.Data...), page.HasMore; page.Total != len(want) {
			b.report.fail("the %s replica: %s has a total of %d, acknowledged are %d", r.name, list, page.Total, len(want))
			return nil
		}
	}
	for i, e := range want {
		if i >= len(got) || got[i] != (publicEntry{e.EntryID, e.Name, e.ChatID}) {
			b.report.fail("the %s replica: %s in order %s is not as acknowledged at %d: %+v", r.name, list, sort, i, e)
			return nil
		}
	}
	return nil
}

func (b *backend) sameCheck(ctx context.Context, client *http.Client, r *replica, e events.Entry) error {
	var doc struct {
		Results []struct {
			Kind    string
			Entries []publicEntry
		}
	}
	if err := document(ctx, client, r.HTTP+"/api/check?id="+e.ChatID, &doc); err != nil {
		return err
	}
	now, shown := b.twin.Shown(e)
	found := false
	for _, group := range doc.Results {
		for _, got := range group.Entries {
			found = found || group.Kind == string(e.List) && got.EntryID == e.EntryID && got.Name == now.Name
		}
	}
	if found != shown && e.List != events.Legit { // a trusted person may be left out for a namesake
		b.report.fail("the %s replica: a check of %s finds %v, acknowledged is %v", r.name, e.ChatID, found, shown)
	}
	return nil
}

func (b *backend) sameDonation(ctx context.Context, client *http.Client, r *replica, id string) error {
	a, err := askBy(ctx, client, r.HTTP+"/api/donate/status?id="+id, nil)
	if err != nil {
		return err
	}
	want, there := b.twin.Donations[id]
	var got struct {
		Amount        string
		Confirmations int64
	}
	if !there && a.status == http.StatusNotFound {
		return nil
	}
	if err := json.Unmarshal(a.body, &got); err != nil || !there || got.Amount != want.Amount || got.Confirmations != want.Confirmations {
		b.report.fail("the %s replica: donation %s is %d %s, acknowledged is %+v", r.name, id, a.status, a.body, want)
	}
	return nil
}

// document asks for a JSON document.
func document(ctx context.Context, client *http.Client, url string, into any) error {
	a, err := askBy(ctx, client, url, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("%s: %d %.200s", url, a.status, a.body)
	}
	return json.Unmarshal(a.body, into)
}
