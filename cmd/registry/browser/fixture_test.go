//go:build !race

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Texts of people who would like to run something in the readers' browsers, or to look like somebody else.
// Each payload would, if it ran, set the title or window.harmed, which guard looks at.
const (
	harmfulName   = `<script>window.harmed=1</script><img src=x onerror="window.harmed=1">`
	harmfulReason = "<script>window.harmed=1</script>\n\n<img src=x onerror=window.harmed=1>\n\n" +
		"[klik](javascript:window.harmed=1) [dane](data:text/html,<script>window.harmed=1</script>) " +
		"![obraz](https://evil.example/x.png) <style>body{display:none}</style> " +
		"`</code></pre><script>window.harmed=1</script>` {{.}} ${window.harmed=1} " +
		"<iframe src=//evil.example></iframe> <a href=//evil.example onclick=window.harmed=1>x</a> [zwykły](https://example.org/dowody)"
	reversedName  = "\u202Egnp.exe\u202C \u2066odwrócony\u2069"
	invisibleName = "Mo\u200Bde\u200Drator\u2060 \u00ADOficjalny"
	longName      = "Najdłuższa"
	similarName   = "Administrаtor Wsparcia" // with a Cyrillic а
)

// harmful are entries that are newer than all of the demonstration, so on top of the lists.
func harmful() []events.Entry {
	const longWord = "ŁańcuchBezSpacji"
	newest := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)
	entries := []events.Entry{
		{Name: harmfulName, Reason: harmfulReason, Verified: true, Proofs: events.Proofs{ID: "p-1"}},
		{Name: reversedName, Reason: "Nazwa z odwróconym kierunkiem pisma: " + reversedName, Verified: false},
		{Name: invisibleName, Reason: "Nazwa z niewidocznymi znakami.", Verified: true, Proofs: events.Proofs{Private: true}},
		{Name: longName + strings.Repeat(longWord, 11), Reason: strings.Repeat(longWord, 1000), Verified: false, ChatID: strings.Repeat("9", 64)},
		{Name: similarName, Reason: "Podszywał się pod obsługę.", Verified: true},
		{Name: "Pusty Powód", Reason: "", Verified: false},
		{Name: harmfulName, Reason: harmfulReason, Verified: false, List: events.Servers},
		{Name: "Zaufana \"Osoba\" <b>", Reason: "Pośrednik od lat.", Verified: true, List: events.Legit},
	}
	for i := range entries {
		e := &entries[i]
		e.EntryID, e.ReportID = fmt.Sprintf("browser-%d", i), fmt.Sprintf("R-<b>%d", i)
		e.ReportedAt = newest.Add(-time.Duration(i) * time.Minute)
		if e.List == "" {
			e.List = events.Scammers
		}
		if e.ChatID == "" {
			e.ChatID = fmt.Sprintf("9900000000000000%04d", i)
		}
	}
	return entries
}

// publishFixture publishes the harmful entries and returns once the pages show them.
func publishFixture(p *program) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nc, err := nats.Connect(p.nats)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	publisher, last := events.NewPublisher(js, events.PublisherConfig{}), uint64(0)
	for _, entry := range harmful() {
		ack, err := publisher.Publish(ctx, events.Event{ID: events.NewEventID(), Source: "/browser", Type: events.TypeListed, Time: time.Now(), Data: entry})
		if err != nil {
			return err
		}
		last = ack.Sequence
	}
	return p.await(ctx, last)
}

// await returns once answers are at least as new as the sequence.
func (p *program) await(ctx context.Context, sequence uint64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/api/check?id=1", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Registry-Min-Sequence", fmt.Sprint(sequence))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("check after publishing: %s", resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(&struct{}{})
}
