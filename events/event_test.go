package events_test

import (
	"strings"
	"testing"

	"example.org/registry/events"
)

// The texts of errors name every list and status.
func TestErrorsNameTheTables(t *testing.T) {
	_, err := events.Decode([]byte(strings.Replace(viewsJSON, `"servers"`, `"frauds"`, 1)))
	for _, l := range events.Lists() {
		if err == nil || !strings.Contains(err.Error(), string(l)) {
			t.Errorf("%v does not name %s", err, l)
		}
	}
	_, err = events.Decode([]byte(strings.Replace(donationJSON, `"pending"`, `"lost"`, 1)))
	for _, s := range events.DonationStatuses() {
		if err == nil || !strings.Contains(err.Error(), string(s)) {
			t.Errorf("%v does not name %s", err, s)
		}
	}
}
