//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"example.org/registry/events"
)

// agree checks that both replicas stand at one place with one digest, and that a replay of the stream has it, too.
func (s *stage) agree(ctx context.Context) error {
	var all [2]projection
	for i, r := range []*replica{s.living, s.unlucky} {
		p, err := r.settled(ctx, s.backend.last.Load())
		if err != nil {
			return err
		}
		all[i] = p
	}
	if all[0].Digest != all[1].Digest || all[0].Checkpoint != all[1].Checkpoint {
		s.report.fail("the replicas differ: %s at %d and %s at %d", all[0].Digest, all[0].Checkpoint, all[1].Digest, all[1].Checkpoint)
	}
	for i, r := range []*replica{s.living, s.unlucky} {
		out, err := s.command(ctx, r, "verify")
		if err != nil {
			s.report.fail("%v", err)
		} else if !strings.Contains(out, "digest "+all[i].Digest) {
			s.report.fail("verify of the %s replica compared another digest than %s: %s", r.name, all[i].Digest, out)
		}
	}
	return nil
}

// publicEntry is what the comparison looks at.
type publicEntry struct {
	EntryID string `json:"_id"`
	Name    string `json:"name"`
	ChatID  string `json:"id"`
}

// asAcknowledged compares what a replica shows with what has been acknowledged: every list in two orders, and some
// checks and donations.
func (s *stage) asAcknowledged(ctx context.Context, r *replica) error {
	client := newClient(true)
	defer client.CloseIdleConnections()
	for _, list := range events.Lists() {
		for _, sort := range []string{"popular", "newest"} {
			if err := s.sameList(ctx, client, r, list, sort); err != nil {
				return err
			}
		}
	}
	for range 40 {
		if err := s.sameCheck(ctx, client, r, s.backend.content.entries[s.compareRNG.IntN(len(s.backend.content.entries))]); err != nil {
			return err
		}
		all := append(s.backend.content.donations, s.backend.content.removed...)
		if err := s.sameDonation(ctx, client, r, all[s.compareRNG.IntN(len(all))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) sameList(ctx context.Context, client *http.Client, r *replica, list events.List, sort string) error {
	want := s.backend.twin.List(list, sort == "popular")
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
			s.report.fail("the %s replica: %s has a total of %d, acknowledged are %d", r.name, list, page.Total, len(want))
			return nil
		}
	}
	for i, e := range want {
		if i >= len(got) || got[i] != (publicEntry{e.EntryID, e.Name, e.ChatID}) {
			s.report.fail("the %s replica: %s in order %s is not as acknowledged at %d: %+v", r.name, list, sort, i, e)
			return nil
		}
	}
	return nil
}

func (s *stage) sameCheck(ctx context.Context, client *http.Client, r *replica, e events.Entry) error {
	var doc struct {
		Results []struct {
			Kind    string
			Entries []publicEntry
		}
	}
	if err := document(ctx, client, r.HTTP+"/api/check?id="+e.ChatID, &doc); err != nil {
		return err
	}
	now, shown := s.backend.twin.Shown(e)
	found := false
	for _, group := range doc.Results {
		for _, got := range group.Entries {
			found = found || group.Kind == string(e.List) && got.EntryID == e.EntryID && got.Name == now.Name
		}
	}
	if found != shown && e.List != events.Legit { // a trusted person may be left out for a namesake
		s.report.fail("the %s replica: a check of %s finds %v, acknowledged is %v", r.name, e.ChatID, found, shown)
	}
	return nil
}

func (s *stage) sameDonation(ctx context.Context, client *http.Client, r *replica, id string) error {
	a, err := askBy(ctx, client, r.HTTP+"/api/donate/status?id="+id, nil)
	if err != nil {
		return err
	}
	want, there := s.backend.twin.Donations[id]
	var got struct {
		Amount        string
		Confirmations int64
	}
	if !there && a.status == http.StatusNotFound {
		return nil
	}
	if err := json.Unmarshal(a.body, &got); err != nil || !there || got.Amount != want.Amount || got.Confirmations != want.Confirmations {
		s.report.fail("the %s replica: donation %s is %d %s, acknowledged is %+v", r.name, id, a.status, a.body, want)
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
