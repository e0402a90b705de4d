package events_test

import (
	"errors"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// What only a Go program can get wrong: JSON has no such strings, or another type.
func TestValidateWhatOnlyGoCanGetWrong(t *testing.T) {
	entry := eventstest.Entries(1, 1)[0]
	for field, change := range map[string]func(*events.Event, *events.Entry){
		"id":              func(e *events.Event, _ *events.Entry) { e.ID = "a\xff" },
		"source":          func(e *events.Event, _ *events.Entry) { e.Source = "\xff" },
		"time":            func(e *events.Event, _ *events.Entry) { e.Time = time.Unix(-1, 0) },
		"data.chatId":     func(_ *events.Event, d *events.Entry) { d.ChatID = "\xff" },
		"data.name":       func(_ *events.Event, d *events.Entry) { d.Name = "a\x00b" },
		"data.reason":     func(_ *events.Event, d *events.Entry) { d.Reason = "\x00" },
		"data.reportId":   func(_ *events.Event, d *events.Entry) { d.ReportID = "ab\xed\xa0\x80" },
		"data.reportedAt": func(_ *events.Event, d *events.Entry) { d.ReportedAt = time.Time{} },
		"data.list":       func(_ *events.Event, d *events.Entry) { d.List = "" },
		"data.proofs.id":  func(_ *events.Event, d *events.Entry) { d.Proofs = events.Proofs{ID: "p", Private: true} },
	} {
		t.Run(field, func(t *testing.T) {
			e, d := eventstest.Listed(entry, 1), entry
			change(&e, &d)
			e.Data = d
			wrongField(t, e, field)
		})
	}
	views := events.Views{Revision: 1, List: events.Legit, EntryID: "e"}
	for typ, data := range map[events.Type]events.Data{
		events.TypeListed:       views,
		events.TypeDelisted:     entry,
		events.TypeViewsCounted: nil,
	} {
		wrongField(t, events.Event{ID: "1", Source: "s", Type: typ, Data: data}, "data")
	}
	for _, n := range []int64{-1, 1 << 53} {
		views.Views = n
		wrongField(t, events.Event{ID: "1", Source: "s", Type: events.TypeViewsCounted, Data: views}, "data.views")
	}
}

func wrongField(t *testing.T, e events.Event, field string) {
	t.Helper()
	var typed *events.Error
	if err := events.Validate(e); !errors.As(err, &typed) || typed.Field != field {
		t.Errorf("want %s, got %v", field, err)
	}
	if b, err := events.Encode(e); err == nil || b != nil {
		t.Errorf("%s: encoded nevertheless: %s", field, b)
	}
}
