package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// secret is part of every donation's id here, and of what else a hostile or mistaken backend
// writes.
const secret = "kanarek"

// hostileDonations are events that are rejected, subject and payload: with a bad value, with bad JSON, and
// on another's subject.
func hostileDonations() (all [][2]string) {
	good := `{"specversion":"1.0","id":"e-ID","source":"/s","type":"registry.donation.updated","data":{"donationId":"ID","status":"pending","amount":"1",` +
		`"currency":"BTC","confirmations":0,"requiredConfirmations":1,"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z"}}`
	add := func(subject, payload string) {
		id := fmt.Sprint(secret, len(all))
		all = append(all, [2]string{strings.ReplaceAll(subject, "ID", id), strings.ReplaceAll(payload, "ID", id)})
	}
	for _, change := range [][2]string{
		{`"pending"`, `"ID"`}, {`"confirmations":0`, `"confirmations":"ID"`}, {"registry.donation.updated", "registry.donation.ID"},
		{`"donationId":"ID"`, `"donationId":"ID","donationId":"ID"`}, {`"donationId":"ID"`, `"donationId":"ID ID"`}, {`"status"`, `"ID"`}, {`}}`, `}} ID`},
		{`"ID"`, "\"ID\xff\""}, {`"data":{`, `"data":"ID","more":{`},
	} {
		add("registry.donations.ID", strings.Replace(good, change[0], change[1], 1))
	}
	for range 15 {
		add("registry.donations.ID", "ID")
	}
	for _, subject := range []string{"registry.scammers.e1", "registry.views.legit.ID", "registry.donations.ID.y", "registry.ID"} {
		add(subject, good)
	}
	return all
}

// TestDonationIDsStayOut: whatever backends send, the id of a donation, and what a rejected event
// about one says, is in no log, no metric and not in /projection: neither when the event comes, nor
// after a restart or a rebuild, nor in the embedded broker's own lines. Operators find it in the
// copies (events/CONTRACT.md#rejection).
func TestDonationIDsStayOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(users, []byte(`authorization { users = [ {user: backend, password: pw},
		{user: limited, password: pw, permissions: {publish: ["$JS.API.>"], subscribe: "_INBOX.>"}} ] }`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "--embedded-nats-config="+users, "--snapshot-every=0")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js := eventstest.Dial(t, p.NATS, nats.UserInfo("backend", "pw"))
	hostile := hostileDonations()
	provokeBroker(t, p.NATS)
	for _, m := range hostile {
		eventstest.PublishRaw(t, js, m[0], []byte(m[1]))
	}
	last := eventstest.Publish(t, js, eventstest.Events(3, 1)...)
	reached := fmt.Sprintf(`"checkpoint":%d,`, last)
	await := func(text string) {
		t.Helper()
		p.until(text, func() bool {
			_, body, err := ask(p.Admin + "/projection")
			return err == nil && strings.Contains(string(body), text)
		})
	}
	var shown []string // everything that must not have the secret
	look := func() {
		t.Helper()
		for _, url := range []string{p.Admin + "/projection", p.Admin + "/metrics", p.Admin + "/readyz", p.HTTP + "/api/status",
			p.HTTP + "/api/donate/status?id=" + secret + "0"} {
			_, body, err := ask(url)
			require.NoError(t, err)
			shown = append(shown, string(body))
		}
	}
	await(reached)
	await(fmt.Sprintf(`"rejected":%d,`, len(hostile)))
	look()
	// The model is rebuilt; the server is started again.
	var output strings.Builder
	command := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := run(ctx, args, func(string) string { return "" }, strings.NewReader(""), &out, &output); err != nil {
			t.Error(args, err)
		}
		return out.String()
	}
	command("rebuild", "--admin-addr", p.AdminAddr())
	with := strings.Replace(p.NATS, "nats://", "nats://backend:pw@", 1)
	command("verify", "--admin-addr", p.AdminAddr(), "--nats-url", with)
	if list := command("rejected", "list", "--nats-url", with); strings.Count(list, secret) < len(hostile)-1 {
		t.Errorf("rejected list does not name the donations: %s", list)
	}
	look()
	p.stop()
	p.start()
	await(reached)
	look()

	shown = append(shown, strings.Split(p.Log(), "\n")...)
	shown = append(shown, strings.Split(output.String(), "\n")...)
	for _, text := range shown {
		if strings.Contains(text, secret) {
			t.Errorf("shows a donation: %.1000s", text)
		}
	}
	// The log has the first 20 lines of a message.
	all := strings.Join(shown, "\n")
	for text, least := range map[string]int{"event rejected": 20, "registry.donations.*": 20, "Publish Violation": 1} {
		if n := strings.Count(all, text); n < least {
			t.Errorf("%q is there %d times, want %d: the test shows nothing", text, n, least)
		}
	}
}

// provokeBroker does what the broker logs with a client's own words: what a user may not publish.
func provokeBroker(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url, nats.UserInfo("limited", "pw"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(t, err)
	defer nc.Close()
	for _, subject := range []string{"registry.donations." + secret, "registry.donation." + secret + ".x", "registry." + secret} {
		require.NoError(t, nc.Publish(subject, []byte(secret)))
		_, err := nc.SubscribeSync(subject)
		require.NoError(t, err)
	}
	require.NoError(t, nc.Flush())
}
