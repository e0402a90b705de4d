package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
