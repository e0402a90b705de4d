package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
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

func TestNewEventIDIsAnID(t *testing.T) {
	a, b := events.NewEventID(), events.NewEventID()
	if a == b {
		t.Error("the same id twice:", a)
	}
	e := eventstest.Events(1, 1)[0]
	e.ID = a
	require.NoError(t, events.Validate(e))
}
