//go:build unix

package registrytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// publicEntry is the part of an entry that Same compares.
type publicEntry struct {
	EntryID string `json:"_id"`
	Name    string `json:"name"`
	ChatID  string `json:"id"`
}

// Same compares what the server at base shows with the reference model: every list in two orders,
// and a check of each entry in pool. Nothing may be published meanwhile.
func Same(ctx context.Context, base string, twin *eventstest.Twin, pool []events.Entry) error {
	c := &comparison{base: base, twin: twin, client: newClient(true)}
	defer c.client.CloseIdleConnections()

	var errs []error
	for _, list := range events.Lists() {
		for _, sort := range []string{"popular", "newest"} {
			errs = append(errs, c.compareList(ctx, list, sort))
		}
	}
	for _, e := range pool {
		errs = append(errs, c.compareCheck(ctx, e))
	}
	return errors.Join(errs...)
}

// comparison compares a server with the reference model.
type comparison struct {
	base   string
	twin   *eventstest.Twin
	client *http.Client
}

func (c *comparison) compareList(ctx context.Context, list events.List, sort string) error {
	want := c.twin.List(list, sort == "popular")
	var got []publicEntry
	for more := true; more; {
		var page struct {
			Data    []publicEntry
			Total   int
			HasMore bool
		}
		if err := readDocument(ctx, c.client, fmt.Sprintf("%s/api/%s?sort=%s&limit=60&skip=%d", c.base, list, sort, len(got)), &page); err != nil {
			return err
		}
		if page.Total != len(want) {
			return fmt.Errorf("%s has a total of %d, want %d", list, page.Total, len(want))
		}
		got = append(got, page.Data...)
		more = page.HasMore
	}

	// Both must have the same entries in the same order.
	for i, e := range want {
		if i >= len(got) || got[i] != (publicEntry{e.EntryID, e.Name, e.ChatID}) {
			return fmt.Errorf("%s in order %s differs from the reference model at %d: %+v", list, sort, i, e)
		}
	}
	return nil
}

func (c *comparison) compareCheck(ctx context.Context, e events.Entry) error {
	var doc struct {
		Results []struct {
			Kind    string
			Entries []publicEntry
		}
	}
	if err := readDocument(ctx, c.client, c.base+"/api/check?id="+url.QueryEscape(e.ChatID), &doc); err != nil {
		return err
	}

	// The entry, with its current name, is among the results if its list shows it.
	current, shown := c.twin.Shown(e)
	isEntry := func(got publicEntry) bool { return got.EntryID == e.EntryID && got.Name == current.Name }
	found := false
	for _, group := range doc.Results {
		if group.Kind == string(e.List) && slices.ContainsFunc(group.Entries, isEntry) {
			found = true
		}
	}
	if found != shown && e.List != events.Legit { // a check leaves out legit if another list has the id
		return fmt.Errorf("check of %s: found %v, want %v", e.ChatID, found, shown)
	}
	return nil
}
