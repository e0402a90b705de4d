package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/site"
	"example.org/registry/httpapi/uptime"
)

// About is a sample of an operator's page about the registry, as for --about-file.
//
//go:embed about.md
var About string

// WriteHistory writes a history of the status page for the 89 days before now's, with an outage of
// two services, unless the file exists.
func WriteHistory(path string, now time.Time) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	recorder := uptime.NewRecorder(uptime.Config{Path: path})
	today := now.UTC().Truncate(24 * time.Hour)
	for at := today.AddDate(0, 0, 1-uptime.Days); at.Before(today); at = at.Add(15 * time.Minute) {
		ago := today.Sub(at)
		failed := func(days, hours int) bool { // an outage days days ago, for hours hours
			begin := time.Duration(days) * 24 * time.Hour
			return ago <= begin && ago > begin-time.Duration(hours)*time.Hour
		}
		recorder.Record(at, []uptime.Check{
			{ID: "database", OK: true, Latency: time.Millisecond},
			{ID: "guard", OK: !failed(41, 5), Latency: 24 * time.Millisecond},
			{ID: "chat", OK: !failed(17, 1) && !failed(66, 1), Latency: 90 * time.Millisecond},
			{ID: "coin", OK: true, Latency: 310 * time.Millisecond},
		})
	}
	ended, end := context.WithCancel(context.Background())
	end()
	recorder.Run(ended, nil) // saves
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("demonstration: history of the status: %w", err)
	}
	return nil
}

// Questions returns a question for each verdict, which the first page offers to people who do not
// know what to type.
func Questions(day time.Time) ([]site.Question, error) {
	all, err := Events(day)
	if err != nil {
		return nil, err
	}
	last, ids, names := map[string]events.Entry{}, map[string]int{}, map[string]int{}
	for _, e := range all {
		switch d := e.Data.(type) {
		case events.Entry:
			last[d.EntryID] = d
		case events.Delisting:
			delete(last, d.EntryID)
		}
	}
	for _, e := range last {
		ids[e.ChatID]++
		names[strings.ToLower(e.Name)]++
	}
	// first returns the first entry that is the only one of its id and its name.
	first := func(list events.List, verified bool, letters string) (found events.Entry) {
		for _, e := range last {
			fits := e.List == list && e.Verified == verified && ids[e.ChatID] == 1 && names[strings.ToLower(e.Name)] == 1 && strings.Contains(e.Name, letters)
			if fits && (found.EntryID == "" || e.EntryID < found.EntryID) {
				found = e
			}
		}
		return found
	}
	accused, risk, trusted := first(events.Scammers, true, "o"), first(events.Scammers, false, ""), first(events.Legit, true, " ")
	return []site.Question{
		{Text: "oszust (ID)", Asked: accused.ChatID},
		{Text: "lista ryzyka (ID)", Asked: risk.ChatID},
		{Text: "osoba zaufana (ID)", Asked: trusted.ChatID},
		{Text: "nazwa osoby zaufanej", Asked: trusted.Name},
		{Text: "nazwa podobna do oszusta", Asked: strings.Replace(accused.Name, "o", "0", 1)},
		{Text: "numer telefonu", Asked: "600 700 800"},
		{Text: "ktoś, kogo nie ma", Asked: "zupelnie.nikt"},
	}, nil
}
