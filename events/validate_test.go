package events_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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
		e, d := eventstest.Listed(entry, 1), entry
		change(&e, &d)
		e.Data = d
		wrongField(t, e, field)
	}
	views := events.Views{List: events.Legit, EntryID: "e"}
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

// A time in another zone is the same event, and is written in UTC.
func TestEncodeWritesUTC(t *testing.T) {
	e := eventstest.Listed(eventstest.Entries(1, 1)[0], 1)
	d := e.Data.(events.Entry)
	utc := time.Date(2026, 11, 20, 23, 30, 0, 120e6, time.UTC)
	d.ReportedAt = utc.In(time.FixedZone("", 3600))
	e.Data = d
	b, err := events.Encode(e)
	if err != nil || !strings.Contains(string(b), `"reportedAt":"2026-11-20T23:30:00.12Z"`) {
		t.Fatal(string(b), err)
	}
	back, err := events.Decode(b)
	if err != nil || back.Data.(events.Entry).ReportedAt != utc {
		t.Error(back, err)
	}
}

// The store reads its own data with the same checks (promise 4).
func TestDecodeData(t *testing.T) {
	entry := eventstest.Entries(1, 1)[0]
	good := string(events.CanonicalData(entry))
	for _, c := range []struct {
		typ           events.Type
		data, problem string
	}{
		{events.TypeListed, good, ""},
		{events.TypeVerified, good, ""},
		{"registry.entry", good, `type: unknown type "registry.entry"`},
		{events.TypeListed, "", "event: not JSON: ends too early"},
		{events.TypeListed, "null", "data: must be an object"},
		{events.TypeListed, good + "x", "event: not JSON"},
		{events.TypeListed, strings.Replace(good, `"e0`, `"e.0`, 1), "data.entryId: must be"},
		{events.TypeListed, strings.Replace(good, `{`, `{"x":"\u0000",`, 1), "data: contains NUL"},
		{events.TypeListed, strings.Replace(good, `{`, `{"list":"legit",`, 1), "event: an object has the same member twice"},
		{events.TypeViewsCounted, good, "data.views: missing"},
	} {
		d, err := events.DecodeData(c.typ, []byte(c.data))
		if (c.problem == "") != (err == nil) || (err != nil && !strings.HasPrefix(err.Error(), c.problem)) {
			t.Errorf("%s %s: got %v, want %s", c.typ, clip(c.data), err, c.problem)
		}
		if err == nil && d != events.Data(entry) {
			t.Errorf("got %v", d)
		}
		checkError(t, err)
	}
}

// Different values have different canonical texts, or the digest would not tell them apart.
func TestCanonicalDataTellsValuesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := eventstest.AnyEvent().Draw(t, "a").Data, eventstest.AnyEvent().Draw(t, "b").Data
		if (a == b) != (string(events.CanonicalData(a)) == string(events.CanonicalData(b))) {
			t.Fatal(a, b)
		}
	})
}

func TestNewEventIDIsAnID(t *testing.T) {
	a, b := events.NewEventID(), events.NewEventID()
	if a == b {
		t.Error("the same id twice:", a)
	}
	e := eventstest.Events(1, 1)[0]
	e.ID = a
	if err := events.Validate(e); err != nil {
		t.Error(err)
	}
}
