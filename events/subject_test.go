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
		"registry.scammers.e1":         {Kind: events.KindEntry, List: events.Scammers, ID: "e1"},
		"registry.servers." + long:     {Kind: events.KindEntry, List: events.Servers, ID: long},
		"registry.legit._-":            {Kind: events.KindEntry, List: events.Legit, ID: "_-"},
		"registry.views.scammers.e1":   {Kind: events.KindViews, List: events.Scammers, ID: "e1"},
		"registry.donations.d1":        {Kind: events.KindDonation, ID: "d1"},
		"registry.donations.scammers":  {Kind: events.KindDonation, ID: "scammers"},
		"registry.views.legit.servers": {Kind: events.KindViews, List: events.Legit, ID: "servers"},
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
		if s, err := events.ParseSubject(d.Subject().String()); err != nil || s != d.Subject() {
			t.Fatalf("subject of %+v: %v, %v", d, s, err)
		}
	})
}

// A donation's id, and what may be one, is masked wherever it stands.
func TestMaskSubject(t *testing.T) {
	for _, c := range []struct{ subject, payload, want string }{
		{"registry.donations.d1", "", "registry.donations.*"},
		{"registry.donations.d1.x", "", "registry.donations.*"},
		{"registry.donations.", "", "registry.donations.*"},
		{"registry.donations", "", "registry.*"},
		{"registry.donation.d1", "", "registry.*"},
		{"registry.d1", "", "registry.*"},
		{"registry.views.donations.d1", "", "registry.*"},
		{"registry.scammers.e1", "", "registry.scammers.e1"},
		{"registry.scammers.e1", "{}", "registry.scammers.e1"},
		{"registry.scammers.e1", `{"type":"registry.donation.updated"`, "registry.scammers.*"},
		{"registry.views.legit.e1", `"donationId"`, "registry.views.legit.*"},
		{"registry.views.legit.e1", "", "registry.views.legit.e1"},
		{"$JS.API.STREAM.INFO.REGISTRY", "", "$JS.API.STREAM.INFO.REGISTRY"},
		{"registry-rejected.E.1", "", "registry-rejected.E.1"},
	} {
		if got := events.MaskSubject(c.subject, []byte(c.payload)); got != c.want {
			t.Errorf("%s with %s: %s, want %s", c.subject, c.payload, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := eventstest.AnyEvent().Draw(t, "event").Data
		s := d.Subject()
		masked := s.Masked()
		if masked != events.MaskSubject(s.String(), nil) || (masked == s.String()) != (s.Kind != events.KindDonation) {
			t.Fatalf("%s masked is %s", s, masked)
		}
	})
}
