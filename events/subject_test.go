package events_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestParseSubject(t *testing.T) {
	long := strings.Repeat("a", 64)
	for s, want := range map[string]events.Subject{
		"registry.scammers.e1":         {Kind: events.EntrySubject, List: events.Scammers, ID: "e1"},
		"registry.servers." + long:     {Kind: events.EntrySubject, List: events.Servers, ID: long},
		"registry.legit._-":            {Kind: events.EntrySubject, List: events.Legit, ID: "_-"},
		"registry.views.scammers.e1":   {Kind: events.ViewsSubject, List: events.Scammers, ID: "e1"},
		"registry.donations.d1":        {Kind: events.DonationSubject, ID: "d1"},
		"registry.donations.scammers":  {Kind: events.DonationSubject, ID: "scammers"},
		"registry.views.legit.servers": {Kind: events.ViewsSubject, List: events.Legit, ID: "servers"},
	} {
		if got, err := events.ParseSubject(s); err != nil || got != want || got.String() != s {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "registry", "registry.", "registry.scammers", "registry.scammers.", "registry.scammers.e1.x", "registry.scammers." + long + "a",
		"registry.Scammers.e1", "registry.frauds.e1", "registry.scammers.ż", "registry..e1", "registry.views.e1", "registry.views.scammers",
		"registry.views.scammers.", "registry.views.scammers.e1.x", "registry.views.donations.e1", "registry.donations", "registry.donations.",
		"registry.donations.a.b", "registry-rejected.x.1", "xregistry.scammers.e1", "registry.scammers.*", "registry.scammers.>",
		"registry." + strings.Repeat("\x00\xff\n😀", 500),
	} {
		got, err := events.ParseSubject(s)
		if err == nil || !strings.HasPrefix(err.Error(), "subject: unknown subject ") {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		checkError(t, err)
	}
	if got := (events.Subject{}).String(); got != "" {
		t.Errorf("the zero Subject is %q", got)
	}
}

func TestEveryEventsSubjectIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := eventstest.AnyEvent().Draw(t, "event").Data
		if s, err := events.ParseSubject(d.Subject()); err != nil || s.String() != d.Subject() {
			t.Fatal(s, err)
		}
	})
}

// The subject and the data must agree (API contract, events).
func TestDecodeMessage(t *testing.T) {
	long := strings.Repeat("x", 64)
	longViews := strings.Replace(strings.Replace(viewsJSON, `"e1"`, `"`+long+`"`, 1), "servers", "scammers", 1)
	for _, c := range []struct{ subject, payload, problem string }{
		{"registry.scammers.e_1-A", entryJSON, ""},
		{"registry.legit.e1", delistedJSON, ""},
		{"registry.views.servers.e1", viewsJSON, ""},
		{"registry.donations.d1", donationJSON, ""},
		{"registry.donations.d1", removedJSON, ""},
		{"registry.scammers.e_1-B", entryJSON, "subject: subject says registry.scammers.e_1-B, data says registry.scammers.e_1-A"},
		{"registry.servers.e_1-A", entryJSON, "subject: subject says registry.servers.e_1-A, data says registry.scammers.e_1-A"},
		{"registry.views.scammers.e_1-A", entryJSON, "subject: subject says registry.views.scammers.e_1-A, data says"},
		{"registry.servers.e1", viewsJSON, "subject: subject says registry.servers.e1, data says registry.views.servers.e1"},
		{"registry.donations.d2", removedJSON, "subject: subject says registry.donations.d2, data says registry.donations.d1"},
		{"registry.views.scammers." + strings.Repeat("y", 64), longViews, "subject: subject says registry.views.scammers.yyy"},
		{"registry.entries.e1", entryJSON, `subject: unknown subject "registry.entries.e1"`},
		{"registry.entries.e1", `{`, `subject: unknown subject "registry.entries.e1"`},
		{"registry.legit.e1", `{`, "event: not JSON"},
	} {
		_, err := events.DecodeMessage(c.subject, []byte(c.payload))
		if (c.problem == "") != (err == nil) || (err != nil && !strings.HasPrefix(err.Error(), c.problem)) {
			t.Errorf("%s: got %v, want %s", c.subject, err, c.problem)
		}
		checkError(t, err)
	}
}
