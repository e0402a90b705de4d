package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

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

// Questions are a question for each verdict, which the first page offers to people who do not know
// what to type.
var Questions = []site.Question{
	{Text: "oszust (ID)", Asked: "99000071323770252450"},
	{Text: "lista ryzyka (ID)", Asked: "99000019024962878831"},
	{Text: "osoba zaufana (ID)", Asked: "99018129845052181029"},
	{Text: "nazwa osoby zaufanej", Asked: "Ostatni Joystick"},
	{Text: "nazwa podobna do oszusta", Asked: "Pł0mienny_Młynarz64"},
	{Text: "numer telefonu", Asked: "600 700 800"},
	{Text: "ktoś, kogo nie ma", Asked: "zupelnie.nikt"},
}
