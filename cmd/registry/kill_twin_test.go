package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// naive is the naive model of a stream.
func naive(stream []stored) *eventstest.Twin {
	w := eventstest.NewTwin()
	for _, m := range stream {
		w.Apply(m.event.Data)
	}
	return w
}

// publicEntry is what the comparison looks at.
type publicEntry struct {
	EntryID string `json:"_id"`
	Name    string `json:"name"`
	ChatID  string `json:"id"`
}

// answersAreRight compares every list in two orders, and a check of everybody.
func (k *killer) answersAreRight(line logLine, w *eventstest.Twin) {
	k.t.Helper()
	for _, list := range events.Lists() {
		for _, sort := range []string{"popular", "newest"} {
			k.sameList(line, sort, list, w.List(list, sort == "popular"))
		}
	}
	for _, e := range k.pool {
		var doc struct {
			Results []struct {
				Kind    string
				Entries []publicEntry
			}
		}
		k.get("http://"+line.HTTP+"/api/check?id="+url.QueryEscape(e.ChatID), &doc)
		current, shown := w.Shown(e)
		found := false
		for _, group := range doc.Results {
			for _, got := range group.Entries {
				found = found || group.Kind == string(e.List) && got.EntryID == e.EntryID && got.Name == current.Name
			}
		}
		if found != shown && e.List != events.Legit { // a trusted person may be left out for a namesake
			k.t.Errorf("check of %s: found %v, want %v", e.ChatID, found, shown)
		}
	}
}

func (k *killer) sameList(line logLine, sort string, list events.List, want []events.Entry) {
	k.t.Helper()
	var got []publicEntry
	for more := true; more; {
		var page struct {
			Data    []publicEntry
			Total   int
			HasMore bool
		}
		k.get(fmt.Sprintf("http://%s/api/%s?sort=%s&limit=60&skip=%d", line.HTTP, list, sort, len(got)), &page)
		got, more = append(got, page.Data...), page.HasMore
		if page.Total != len(want) {
			k.t.Errorf("%s has a total of %d, want %d", list, page.Total, len(want))
			return
		}
	}
	for i, e := range want {
		if i >= len(got) || got[i] != (publicEntry{e.EntryID, e.Name, e.ChatID}) {
			k.t.Errorf("%s in order %s differs from the naive model at %d: %+v", list, sort, i, e)
			return
		}
	}
}

// get asks for a JSON document.
func (k *killer) get(address string, into any) {
	k.t.Helper()
	status, body, err := ask(address)
	if err != nil || status != http.StatusOK {
		k.t.Fatalf("%s: %d %s %v", address, status, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		k.t.Fatalf("%s: %v", address, err)
	}
}
