package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// secret is part of every donation's id here, and of all that a mistaken backend writes.
const secret = "kanarek"

// badDonations returns events that are rejected, by subject: of no event, with a bad value, with bad
// JSON, and on another's subject.
func badDonations() map[string]string {
	good := `{"specversion":"1.0","id":"e-ID","source":"/s","type":"registry.donation.updated","data":{"donationId":"ID","status":"pending","amount":"1",` +
		`"currency":"BTC","confirmations":0,"requiredConfirmations":1,"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z"}}`
	all := map[string]string{}
	add := func(subject, payload string) {
		id := fmt.Sprint(secret, len(all))
		all[strings.ReplaceAll(subject, "ID", id)] = strings.ReplaceAll(payload, "ID", id)
	}

	add("registry.donations.ID", "ID")
	for old, bad := range map[string]string{
		`"pending"`: `"ID"`, "registry.donation.updated": "registry.donation.ID", `"donationId":"ID"`: `"donationId":"ID","donationId":"ID"`,
		`"status"`: `"ID"`, `}}`: `}} ID`, `"ID"`: "\"ID\xff\"", `"data":{`: `"data":"ID","more":{`,
	} {
		add("registry.donations.ID", strings.Replace(good, old, bad, 1))
	}
	for _, subject := range []string{"registry.views.legit.ID", "registry.donations.ID.y", "registry.ID"} {
		add(subject, good)
	}
	return all
}

// TestDonationIDsStayOut: the id of a donation, and the text of a rejected event about one, is in no
// log, no metric and not in /projection, also after a rebuild and a restart. Operators find it in the
// copies (events/CONTRACT.md#rejection).
func TestDonationIDsStayOut(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "--snapshot-every=0")
	bad := badDonations()
	for subject, payload := range bad {
		eventstest.PublishRaw(t, p.stream(), subject, []byte(payload))
	}

	var shown []string // everything that must not have the secret
	look := func() {
		t.Helper()
		p.until("all are rejected", func() bool { return p.projection().Rejected == uint64(len(bad)) })
		for _, url := range []string{p.Admin + "/projection", p.Admin + "/metrics", p.Admin + "/readyz", p.HTTP + "/api/status",
			p.HTTP + "/api/donate/status?id=" + secret + "0"} {
			_, body, err := ask(url)
			require.NoError(t, err)
			shown = append(shown, string(body))
		}
	}
	look()
	p.run("rebuild")
	look()
	p.stop()
	p.start()
	look()

	list := p.run("rejected", "list", "--nats-url="+p.NATS)
	require.GreaterOrEqual(t, strings.Count(list, secret), len(bad), "the copies name the donations: %s", list)
	log := p.Log()
	require.GreaterOrEqual(t, strings.Count(log, "event rejected"), len(bad), "lines of the log")
	for _, text := range append(shown, strings.Split(log, "\n")...) {
		require.NotContains(t, text, secret)
	}
}
