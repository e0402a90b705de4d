package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// TestOneFormOfChatIDs compares events and API on texts near chat ids: each accepts what the other
// accepts, except references, and every id that an event may have is found by every form of request
// that takes one (events/CONTRACT.md#chat-ids).
func TestOneFormOfChatIDs(t *testing.T) {
	pieces := rapid.SampledFrom([]string{" ", "\u00a0", "\ufeff", "\u200b", "\n", "<@", ">", "/users/", "discord.com", "1", "990000000000070022", "a", "_", "-", "ż", "１", "٣", "\u202e",
		"undefined", "Null", "NaN", "[object Object]", "0", ",", "&", ";", "%20", "+", "#", `"`})
	entry := eventstest.Entries(1, 1)[0]
	entry.List, entry.Verified = events.Scammers, true
	f, accepted, refused := serve(t), 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(
			rapid.Map(rapid.SliceOfN(pieces, 1, 4), func(s []string) string { return strings.Join(s, "") }),
			eventstest.ChatID(),
		).Draw(rt, "chatId")
		entry.ChatID = text
		valid := events.Validate(eventstest.Listed(entry, 1)) == nil
		if _, refers := events.ReferredChatID(text); refers || strings.TrimSpace(text) != text {
			if valid {
				rt.Fatalf("%q was accepted", text)
			}
			return
		}
		asked := url.QueryEscape(text)
		targets := []string{"/api/check?id=" + asked, "/api/scammers?id=" + asked, "/api/check/batch?ids=" + asked}
		if strings.Contains(text, ",") { // separates ids there
			targets = targets[:2]
		}
		if valid {
			accepted++
			f.apply(entry)
		} else {
			refused++
		}
		for _, target := range targets {
			got := f.get(t, target)
			if valid && (got.status != 200 || !strings.Contains(got.body, `"_id":"`+entry.EntryID+`"`)) || !valid && got.status != 400 {
				rt.Fatalf("%q: %s: %d %s", text, target, got.status, got.body)
			}
		}
	})
	if accepted == 0 || refused == 0 {
		t.Error(accepted, "chat ids were accepted,", refused, "refused")
	}
}
