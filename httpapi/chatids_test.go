package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// TestEveryChatIDIsFound asks for each chat id that an event may have: every form of request that
// takes an id finds the entry (events/CONTRACT.md#chat-ids).
func TestEveryChatIDIsFound(t *testing.T) {
	pieces := rapid.SampledFrom([]string{" ", "\u00a0", "\u0085", "\ufeff", "\u200b", "\n", "<@", "<@!", ">", "http://", "https://a", "/users/", "users", "/", "1", "990000000000070022",
		"undefined", "null", "NaN", "[object Object]", ",", "&", ";", "%", "%20", "+", "#", "?", "=", `"`, "<", "\\", "ż", "ﷺ", "😀", "\u202e", "\x7f", "\x01"})
	entry := eventstest.Entries(1, 1)[0]
	entry.List, entry.Verified = events.Scammers, true
	f, accepted := serve(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		entry.ChatID = rapid.OneOf(
			rapid.Map(rapid.SliceOfN(pieces, 1, 6), func(s []string) string { return strings.Join(s, "") }),
			eventstest.Text(1, events.MaxChatID),
		).Draw(rt, "chatId")
		if events.Validate(eventstest.Listed(entry, 1)) != nil {
			return
		}
		accepted++
		f.apply(entry)
		asked := url.QueryEscape(entry.ChatID)
		targets := []string{"/api/check?id=" + asked, "/api/scammers?id=" + asked}
		if !strings.Contains(entry.ChatID, ",") {
			targets = append(targets, "/api/check/batch?ids="+asked)
		}
		for _, target := range targets {
			if got := f.get(t, target); got.status != 200 || !strings.Contains(got.body, `"_id":"`+entry.EntryID+`"`) {
				rt.Fatalf("%q: %s: %d %s", entry.ChatID, target, got.status, got.body)
			}
		}
	})
	if accepted < 20 {
		t.Error("only", accepted, "chat ids were accepted")
	}
}
