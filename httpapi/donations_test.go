package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

func donation(id string, change func(*events.Donation)) events.Donation {
	d := events.Donation{
		Revision:   1,
		DonationID: id, Status: events.DonationPending, Amount: "0.00000001", Currency: "BTC", RequiredConfirmations: 3,
		CreatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(&d)
	}
	return d
}

// Every stage of a payment, and numbers and times at their bounds (httpapi/CONTRACT.md#donations).
func TestDonations(t *testing.T) {
	f := serve(t)
	stages := []events.DonationStatus{events.DonationPending, events.DonationConfirming, events.DonationConfirmed, events.DonationFailed, events.DonationExpired}
	for i, stage := range stages {
		id := fmt.Sprintf("d_%d-%s", i, strings.Repeat("x", 60))
		f.apply(donation(id, func(d *events.Donation) {
			d.Status, d.Confirmations, d.RequiredConfirmations = stage, 1<<53-1, 1<<53-1
			d.Amount = "999999999999999999.123456789012345678"
			d.UpdatedAt = time.Date(2200, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", 3600))
		}))
		a := f.get(t, "/api/donate/status?id="+id)
		want := fmt.Sprintf(`{"id":%q,"status":%q,"amount":"999999999999999999.123456789012345678","currency":"BTC","confirmations":9007199254740991,`+
			`"requiredConfirmations":9007199254740991,"createdAt":"2026-11-01T00:00:00.000Z","updatedAt":"2200-12-31T22:59:59.999Z"}`, id, stage)
		if a.status != http.StatusOK || a.body != want {
			t.Errorf("%d %s\nwant %s", a.status, a.body, want)
		}
	}
}

// A donation follows its events: changed, removed, and back again.
func TestDonationFollowsItsEvents(t *testing.T) {
	f := serve(t)
	status := func() string {
		var d donationBody
		a := f.get(t, "/api/donate/status?id=d-9")
		if a.status == http.StatusNotFound {
			return a.body
		}
		require.NoError(t, json.Unmarshal([]byte(a.body), &d))
		return d.Status
	}
	for _, step := range []struct {
		event events.Data
		want  string
	}{
		{donation("d-8", nil), `{"error":"Nie znaleziono."}`},
		{donation("d-9", nil), "pending"},
		{donation("d-9", func(d *events.Donation) { d.Status = events.DonationConfirmed }), "confirmed"},
		{events.DonationRemoval{Revision: 1, DonationID: "d-9"}, `{"error":"Nie znaleziono."}`},
		{events.DonationRemoval{Revision: 1, DonationID: "d-9"}, `{"error":"Nie znaleziono."}`},
		{donation("d-9", nil), "pending"},
	} {
		f.apply(step.event)
		if got := status(); got != step.want {
			t.Errorf("after %+v: %s, want %s", step.event, got, step.want)
		}
	}
}

// Ids at and beyond their bounds, and not quite that id; ids are in no log and no metric.
func TestDonationIDs(t *testing.T) {
	f := serve(t)
	for id, want := range map[string]int{
		"d-1": 200, " d-1\t": 200, "D-1": 404, "d-1x": 404, "d": 404, "d-1 x": 404, "ż": 404, "../d-1": 404, "d-1\u200b": 404,
		strings.Repeat("x", 64): 404, strings.Repeat("ż", 64): 404,
		strings.Repeat("x", 65): 400, strings.Repeat("ż", 65): 400, "a\x00": 400, "\xff": 400,
	} {
		if a := f.get(t, "/api/donate/status?id="+url.QueryEscape(id)); a.status != want {
			t.Errorf("%q: %d %s", id, a.status, a.body)
		}
	}
	for _, query := range []string{"", "?", "?id", "?id=", "?id=%20", "?ID=d-1"} {
		f.wantError(t, http.StatusBadRequest, "Brak wymaganego parametru: id.", http.MethodGet, "/api/donate/status"+query)
	}
	f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: id.", http.MethodGet, "/api/donate/status?id=d-1&id=d-1")
	f.set(func(s *Readiness) { s.Ready = false })
	f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/donate/status?id=d-1")
	families, err := f.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if strings.Contains(family.String(), "d-1") {
			t.Errorf("a metric shows the id: %s", family)
		}
	}
	if log := f.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
