package events_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

const (
	entryJSON = `{"specversion":"1.0","id":"ev-1","source":"urn:panel","type":"registry.entry.listed",` +
		`"time":"2026-11-21T10:15:00Z","datacontenttype":"application/json",` +
		`"data":{"list":"scammers","entryId":"e_1-A","chatId":"123","name":"Żółw","reason":"**x**","verified":false,"revision":1,` +
		`"proofs":{"id":"p1","private":false},"reportId":"R-1","reportedAt":"2026-11-20T09:00:00.5+01:00"}}`
	delistedJSON = `{"specversion":"1.0","id":"ev-2","source":"urn:panel","type":"registry.entry.delisted",` +
		`"time":"2021-01-04T06:00:00Z","data":{"revision":1,"list":"legit","entryId":"e1"}}`
	viewsJSON = `{"specversion":"1.0","id":"ev-3","source":"urn:panel","type":"registry.views.counted",` +
		`"data":{"revision":1,"list":"servers","entryId":"e1","views":17}}`
	donationJSON = `{"specversion":"1.0","id":"ev-4","source":"urn:panel","type":"registry.donation.updated",` +
		`"data":{"donationId":"d1","revision":1,"status":"pending","amount":"10.50","currency":"PLN","confirmations":0,` +
		`"requiredConfirmations":6,"createdAt":"2026-11-20T09:00:00Z","updatedAt":"2026-11-20T09:00:01Z"}}`
	removedJSON = `{"specversion":"1.0","id":"ev-5","source":"urn:panel","type":"registry.donation.removed",` +
		`"time":"2021-01-04T06:00:00Z","data":{"revision":1,"donationId":"d1"}}`
)

func TestDecode(t *testing.T) {
	for payload, want := range map[string]events.Event{
		entryJSON: {ID: "ev-1", Type: events.TypeListed, Time: time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC), Data: events.Entry{
			Revision: 1,
			List:     events.Scammers, EntryID: "e_1-A", ChatID: "123", Name: "Żółw", Reason: "**x**",
			Proofs: events.Proofs{ID: "p1"}, ReportID: "R-1", ReportedAt: time.Date(2026, 11, 20, 8, 0, 0, 5e8, time.UTC),
		}},
		delistedJSON: {ID: "ev-2", Type: events.TypeDelisted, Time: eventstest.Start(), Data: events.Delisting{Revision: 1, List: events.Legit, EntryID: "e1"}},
		viewsJSON:    {ID: "ev-3", Type: events.TypeViewsCounted, Data: events.Views{Revision: 1, List: events.Servers, EntryID: "e1", Views: 17}},
		donationJSON: {ID: "ev-4", Type: events.TypeDonationUpdated, Data: events.Donation{
			Revision:   1,
			DonationID: "d1", Status: events.DonationPending, Amount: "10.50", Currency: "PLN", RequiredConfirmations: 6,
			CreatedAt: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2026, 11, 20, 9, 0, 1, 0, time.UTC),
		}},
		removedJSON: {ID: "ev-5", Type: events.TypeDonationRemoved, Time: eventstest.Start(), Data: events.DonationRemoval{Revision: 1, DonationID: "d1"}},
	} {
		t.Run(string(want.Type), func(t *testing.T) {
			want.Source = "urn:panel"
			got, err := events.Decode([]byte(payload))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// edit is one change to a valid event.
type edit struct {
	from     string // the valid event
	old, new string // what is replaced in it
	problem  string // the error's text, or part of it; empty when the event stays valid
}

// Every way an event can be wrong (events/CONTRACT.md), each bound on both sides, and the
// liberties that are allowed.
func TestDecodeStrictness(t *testing.T) {
	for _, group := range [][]edit{syntaxEdits(), envelopeEdits(), entryEdits(), otherEdits(), chatIDEdits()} {
		for _, e := range group {
			payload := strings.Replace(e.from, e.old, e.new, 1)
			if payload == e.from {
				t.Errorf("%q is not in %s", e.old, e.from)
			}
			_, err := events.Decode([]byte(payload))
			switch {
			case e.problem == "" && err != nil:
				t.Errorf("%s => %s: %v", clip(e.old), clip(e.new), err)
			case e.problem != "" && (err == nil || !strings.Contains(err.Error(), e.problem)):
				t.Errorf("%s => %s: got %v, want %s", clip(e.old), clip(e.new), err, e.problem)
			}
			checkError(t, err)
		}
	}
}

func clip(s string) string { return s[:min(len(s), 80)] }

// checkError holds an error to its promise: one line that fits a header.
func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var typed *events.Error
	if !errors.As(err, &typed) || typed.Field == "" || typed.Problem == "" {
		t.Errorf("%v is no *Error", err)
	}
	text := err.Error()
	if len(text) > 200 || strings.ContainsFunc(text, unicode.IsControl) || strings.ToValidUTF8(text, "") != text {
		t.Errorf("not one line of at most 200 bytes: %q", text)
	}
	// Foreign text is quoted, or a subject; Plain has the same field and no such thing.
	if plain := typed.Plain(); !strings.HasPrefix(plain, typed.Field+": ") || strings.Contains(plain, `"`) || strings.Contains(plain, " says ") || len(plain) > len(text) {
		t.Errorf("%q in plain words is %q", text, plain)
	}
}

func syntaxEdits() []edit {
	return []edit{
		{entryJSON, `{"specversion"`, ` {"specversion"`, ""},
		{entryJSON, `"data":`, "\"data\" \t\r\n: ", ""},
		{entryJSON, `}}`, "}}\n", ""},
		{entryJSON, `}}`, "}}{}", "event: not JSON"},
		{entryJSON, `}}`, "}} x", "event: not JSON"},
		{entryJSON, `}}`, "}", "event: not JSON: ends too early"},
		{entryJSON, `}}`, "},}", "event: not JSON"},
		{entryJSON, entryJSON, "null", "specversion: missing"},
		{entryJSON, entryJSON, "[]", "event: must be an object"},
		{entryJSON, entryJSON, `"x"`, "event: must be an object"},
		{entryJSON, entryJSON, "17", "event: must be an object"},
		{entryJSON, entryJSON, "", "event: not JSON: ends too early"},
		{entryJSON, entryJSON, " ", "event: not JSON: ends too early"},
		{entryJSON, `{"specversion"`, "\ufeff" + `{"specversion"`, "event: not JSON"},
		{entryJSON, `"name"`, `'name'`, "event: not JSON"},
		{entryJSON, `false`, `False`, "event: not JSON"},
		{entryJSON, `"Żółw"`, `"\x41"`, "event: not JSON"},
		{entryJSON, `"Żółw"`, "\"a\nb\"", "event: not JSON"},
		{entryJSON, `"Żółw"`, "\"a\x00b\"", "event: not JSON"},
		{entryJSON, `"Żółw"`, "\"a\xffb\"", "event: invalid UTF-8"},
		{entryJSON, `"Żółw"`, "\"a\xed\xa0\x80b\"", "event: invalid UTF-8"},
		{entryJSON, `"Żółw"`, `"\ud800"`, "event: not JSON"},
		{entryJSON, `"Żółw"`, `"\ud83d\ude00"`, ""},
		{entryJSON, `"Żółw"`, `"\u00f3"`, ""},
		{entryJSON, `"Żółw"`, `"\u0000"`, "event: contains NUL"},
		{entryJSON, `"Żółw"`, `"\\u0000"`, ""},
		{entryJSON, `"Żółw"`, `"\\\u0000"`, "event: contains NUL"},
		{entryJSON, `"Żółw"`, `"\\\\u0000\\u0000"`, ""},
		{entryJSON, `"Żółw"`, `"\\u0000\u0000"`, "event: contains NUL"},
		{entryJSON, `{"specversion"`, `{"x":"\u0000","specversion"`, "event: contains NUL"},
		{entryJSON, `{"specversion"`, `{"\u0000":1,"specversion"`, "event: contains NUL"},
		{entryJSON, `{"specversion"`, `{"x":{"a":[{"\u0000":1}]},"specversion"`, "event: contains NUL"},
		{entryJSON, `{"specversion"`, "{\"x\":\"\xff\",\"specversion\"", "event: invalid UTF-8"},
		{entryJSON, `{"specversion"`, `{"id":"ev-1","specversion"`, "event: an object has the same member twice"},
		{entryJSON, `"list"`, `"list":"scammers","list"`, "event: an object has the same member twice"},
		{entryJSON, `"list"`, `"l\u0069st":"scammers","list"`, "event: an object has the same member twice"},
		{entryJSON, `"private"`, `"private":true,"private"`, "event: an object has the same member twice"},
		{entryJSON, `"list"`, `"x":{"a":1,"a":2},"list"`, "event: an object has the same member twice"},
		{entryJSON, `"list"`, `"l\u0069st"`, ""},
		{entryJSON, `"list"`, `"List"`, "data.list: missing"},
		{entryJSON, `"id":"ev-1"`, `"ID":"ev-1"`, "id: missing"},
		{entryJSON, `"id":"ev-1"`, `"id":"ev-1","ID":7,"Data":null`, ""},
		{entryJSON, `"list"`, `"x":{"y":[1,{"z":null}]},"list"`, ""},
		{entryJSON, `"private"`, `"x":-1e400,"private"`, ""},
		{delistedJSON, `{"specversion"`, `{"x":"` + strings.Repeat("x", events.MaxPayload-len(delistedJSON)-7) + `","specversion"`, ""},
		{delistedJSON, `{"specversion"`, `{"x":"` + strings.Repeat("x", events.MaxPayload-len(delistedJSON)-6) + `","specversion"`, "event: longer than 262144 bytes"},
	}
}

func envelopeEdits() []edit {
	return []edit{
		{entryJSON, `"specversion":"1.0",`, ``, "specversion: missing"},
		{entryJSON, `"1.0"`, `"1.1"`, "specversion: must be 1.0"},
		{entryJSON, `"1.0"`, `1.0`, "specversion: must be a string"},
		{entryJSON, `"id":"ev-1",`, ``, "id: missing"},
		{entryJSON, `"ev-1"`, `""`, "id: missing or empty"},
		{entryJSON, `"ev-1"`, `null`, "id: missing"},
		{entryJSON, `"ev-1"`, `17`, "id: must be a string"},
		{entryJSON, `"ev-1"`, `"` + strings.Repeat("ż", 256) + `"`, ""},
		{entryJSON, `"ev-1"`, `"` + strings.Repeat("ż", 257) + `"`, "id: longer than 256 characters"},
		{entryJSON, `"ev-1"`, `"a\r\nb"`, "id: contains a control character"},
		{entryJSON, `"ev-1"`, `"a\u0085b"`, "id: contains a control character"},
		{entryJSON, `"ev-1"`, `" a"`, "id: begins or ends with a space"},
		{entryJSON, `"ev-1"`, `"a "`, "id: begins or ends with a space"},
		{entryJSON, `"ev-1"`, `"a b"`, ""},
		{entryJSON, `"source":"urn:panel",`, ``, "source: missing"},
		{entryJSON, `"urn:panel"`, `""`, "source: missing or empty"},
		{entryJSON, `"urn:panel"`, `[]`, "source: must be a string"},
		{entryJSON, `"urn:panel"`, `"` + strings.Repeat("x", 2048) + `"`, ""},
		{entryJSON, `"urn:panel"`, `"` + strings.Repeat("x", 2049) + `"`, "source: longer than 2048 characters"},
		{entryJSON, `"type":"registry.entry.listed",`, ``, "type: missing"},
		{entryJSON, `"registry.entry.listed"`, `"registry.entry.unlisted"`, `type: unknown type "registry.entry.unlisted"`},
		{entryJSON, `"registry.entry.listed"`, `"` + strings.Repeat(`\u0007`, 100) + `"`, `type: unknown type "`},
		{entryJSON, `"registry.entry.listed"`, `"` + strings.Repeat(`ż`, 100) + `"`, `type: unknown type "`},
		{entryJSON, `"registry.entry.listed"`, `""`, `type: unknown type ""`},
		{entryJSON, `"registry.entry.listed"`, `null`, `type: missing`},
		{entryJSON, `"registry.entry.listed"`, `"Registry.entry.listed"`, `type: unknown type`},
		{entryJSON, `"registry.entry.listed"`, `"registry.entry.amended"`, ""},
		{entryJSON, `"registry.entry.listed"`, `"registry.entry.verified"`, "data.verified: must be true in registry.entry.verified"},
		{strings.Replace(entryJSON, "listed", "verified", 1), `"verified":false`, `"verified":true`, ""},
		{entryJSON, `"registry.entry.listed"`, `"registry.views.counted"`, "data.views: missing"},
		{entryJSON, `"registry.entry.listed"`, `"registry.entry.delisted"`, ""},
		{entryJSON, `"2026-11-21T10:15:00Z"`, `null`, ""},
		{entryJSON, `"time":"2026-11-21T10:15:00Z",`, ``, ""},
		{entryJSON, `"2026-11-21T10:15:00Z"`, `"yesterday"`, "time: not an RFC 3339 time"},
		{entryJSON, `"2026-11-21T10:15:00Z"`, `""`, "time: not an RFC 3339 time"},
		{entryJSON, `"2026-11-21T10:15:00Z"`, `1`, "time: must be a string"},
		{entryJSON, `"2026-11-21T10:15:00Z"`, `"1969-12-31T23:59:59Z"`, "time: year outside 1970 to 2200"},
		{entryJSON, `"application/json"`, `null`, ""},
		{entryJSON, `"application/json"`, `"Application/JSON; charset=utf-8"`, ""},
		{entryJSON, `"application/json"`, `"application/vnd.registry+json"`, ""},
		{entryJSON, `"application/json"`, `"text/plain"`, "datacontenttype: must be JSON"},
		{entryJSON, `"application/json"`, `""`, "datacontenttype: must be JSON"},
		{entryJSON, `"application/json"`, `"json"`, "datacontenttype: must be JSON"},
		{entryJSON, `"application/json"`, `true`, "datacontenttype: must be a string"},
		{entryJSON, `"data":{`, `"subject":17,"data":{`, ""},
		{entryJSON, `"data":{`, `"data_base64":"e30=","Data":{`, "data: missing"},
		{removedJSON, `{"revision":1,"donationId":"d1"}`, `null`, "data.donationId: missing"},
		{removedJSON, `{"revision":1,"donationId":"d1"}`, `"d1"`, "data: must be an object"},
		{removedJSON, `{"revision":1,"donationId":"d1"}`, `[{}]`, "data: must be an object"},
		{removedJSON, removedJSON, `{"data":null,"type":"registry.donation.removed","specversion":"1.0","id":"1","source":"s"}`, "data.donationId: missing"},
		{removedJSON, removedJSON, `{"data":{"donationId":"d1","revision":1},"type":"registry.donation.removed","time":"2021-01-04T06:00:00Z","specversion":"1.0","id":"1","source":"s"}`, ""},
		{delistedJSON, `"time":"2021-01-04T06:00:00Z",`, ``, ""},
		{removedJSON, `"2021-01-04T06:00:00Z"`, `null`, ""},
		{viewsJSON, `"revision":1,`, ``, "data.revision: missing"},
		{viewsJSON, `"revision":1`, `"revision":0`, "data.revision: must be a whole number from 1 to 7289654399999"},
		{viewsJSON, `"revision":1`, `"revision":-1`, "data.revision: must be"},
		{viewsJSON, `"revision":1`, `"revision":1.0`, "data.revision: must be"},
		{viewsJSON, `"revision":1`, `"revision":"1"`, "data.revision: must be a number"},
		{viewsJSON, `"revision":1`, `"revision":7289654399999`, ""},
		{viewsJSON, `"revision":1`, `"revision":7289654400000`, "data.revision: must be"},
		{removedJSON, removedJSON, `{"data":{"donationId":"d1"},"specversion":"1.0","id":"1","source":"s"}`, "type: missing"},
	}
}

func entryEdits() []edit {
	text := func(member, valid string, limit int) []edit {
		old := `"` + member + `":"` + valid + `"`
		with := func(s string) string { return `"` + member + `":"` + s + `"` }
		return []edit{
			{entryJSON, old, `"x":0`, "data." + member + ": missing"},
			{entryJSON, old, `"` + member + `":null`, "data." + member + ": missing"},
			{entryJSON, old, `"` + member + `":1`, "data." + member + ": must be a string"},
			{entryJSON, old, with(""), "data." + member + ": empty"},
			{entryJSON, old, with(strings.Repeat("😀", limit)), ""},
			{entryJSON, old, with(strings.Repeat("x", limit+1)), "data." + member + ": longer than"},
		}
	}
	reason := func(s string) string { return `"reason":"` + s + `"` }
	edits := append(text("name", "Żółw", 200), text("reportId", "R-1", 64)...)
	edits = append(edits, keyEdits(entryJSON, "chatId", "123")...)
	edits = append(edits, keyEdits(entryJSON, "entryId", "e_1-A")...)
	edits = append(edits, listEdits(entryJSON, "scammers")...)
	edits = append(edits, timeEdits(entryJSON, "reportedAt", "2026-11-20T09:00:00.5+01:00")...)
	return append(edits, []edit{
		{entryJSON, reason("**x**"), reason(""), ""},
		{entryJSON, reason("**x**"), reason(strings.Repeat("ż", 10_000)), ""},
		{entryJSON, reason("**x**"), reason(strings.Repeat("ż", 10_000) + "x"), "data.reason: longer than 20000 bytes"},
		{entryJSON, reason("**x**"), reason(strings.Repeat(`\n`, 20_000)), ""},
		{entryJSON, reason("**x**"), `"reason":null`, "data.reason: missing"},
		{entryJSON, reason("**x**"), `"y":0`, "data.reason: missing"},
		{entryJSON, `"verified":false`, `"verified":true`, ""},
		{entryJSON, `"verified":false`, `"verified":null`, "data.verified: missing"},
		{entryJSON, `"verified":false`, `"verified":"false"`, "data.verified: must be true or false"},
		{entryJSON, `"verified":false`, `"verified":0`, "data.verified: must be true or false"},
		{entryJSON, `"verified":false,`, ``, "data.verified: missing"},
		{entryJSON, `"proofs":{"id":"p1","private":false},`, ``, "data.proofs: missing"},
		{entryJSON, `{"id":"p1","private":false}`, `null`, "data.proofs: missing"},
		{entryJSON, `{"id":"p1","private":false}`, `{}`, "data.proofs.id: missing"},
		{entryJSON, `"id":"p1",`, ``, "data.proofs.id: missing"},
		{entryJSON, `"id":"p1","private":false`, `"id":"p1"`, "data.proofs.private: missing"},
		{entryJSON, `"id":"p1"`, `"id":null`, ""},
		{entryJSON, `"id":"p1","private":false`, `"id":null,"private":true`, ""},
		{entryJSON, `"id":"p1","private":false`, `"private":true,"id":"p1"`, "data.proofs.id: must be null when the proofs are private"},
		{entryJSON, `"id":"p1"`, `"id":""`, "data.proofs.id: must be 1 to 64 of"},
		{entryJSON, `"id":"p1","private":false`, `"private":true,"id":""`, "data.proofs.id: must be 1 to 64 of"},
		{entryJSON, `"id":"p1"`, `"id":7`, "data.proofs.id: must be a string"},
		{entryJSON, `"id":"p1"`, `"id":"` + strings.Repeat("p", 64) + `"`, ""},
		{entryJSON, `"id":"p1"`, `"id":"` + strings.Repeat("p", 65) + `"`, "data.proofs.id: must be 1 to 64 of"},
		{entryJSON, `"private":false`, `"private":1`, "data.proofs.private: must be true or false"},
	}...)
}

// chatIDEdits are texts that are nobody's chat id or name, and their neighbors.
func chatIDEdits() []edit {
	const form, lost, blank = "data.chatId: must be 1 to 64 of", "data.chatId: a value that a program has lost", "data.name: white space alone"
	var edits []edit
	for _, c := range []struct{ problem, old, texts string }{
		{form, `"chatId":"123"`, " 123|123 |123\u00a0|\ufeff123|123\u200b|12\u00ad3|123\n|１２３|٣|1 23|1,2|+123|9.1E+17|'123|123;|[object Object]|<nil>|" +
			"#N/A|<@123>|<@!123>|<@&123>|@123|https://discord.com/users/123|discord.com/users/123"},
		{lost, `"chatId":"123"`, "undefined|UNDEFINED|null|Null|NULL|NaN|nan|None|nil|true|False|Infinity|unknown|Brak|-1|0"},
		{"", `"chatId":"123"`, "unknown-e_1-A|nullx|nil1|00|-0|1|-|_|nobody"},
		{blank, `"name":"Żółw"`, " |\t|\n \u0085|\u2003\u3000"},
		{"", `"name":"Żółw"`, "\u200b|\u2800|\u3164| x|undefined|null"},
	} {
		for text := range strings.SplitSeq(c.texts, "|") {
			b, _ := json.Marshal(text) // a string cannot fail
			member, _, _ := strings.Cut(c.old, ":")
			edits = append(edits, edit{entryJSON, c.old, member + ":" + string(b), c.problem})
		}
	}
	return edits
}

func otherEdits() []edit {
	var edits []edit
	edits = append(edits, keyEdits(delistedJSON, "entryId", "e1")...)
	edits = append(edits, listEdits(delistedJSON, "legit")...)
	edits = append(edits, keyEdits(viewsJSON, "entryId", "e1")...)
	edits = append(edits, listEdits(viewsJSON, "servers")...)
	edits = append(edits, integerEdits(viewsJSON, "views", "17")...)
	edits = append(edits, keyEdits(donationJSON, "donationId", "d1")...)
	edits = append(edits, keyEdits(removedJSON, "donationId", "d1")...)
	edits = append(edits, integerEdits(donationJSON, "confirmations", "0")...)
	edits = append(edits, integerEdits(donationJSON, "requiredConfirmations", "6")...)
	edits = append(edits, timeEdits(donationJSON, "createdAt", "2026-11-20T09:00:00Z")...)
	edits = append(edits, timeEdits(donationJSON, "updatedAt", "2026-11-20T09:00:01Z")...)
	for _, status := range []string{"pending", "confirming", "confirmed", "failed", "expired"} {
		edits = append(edits, edit{donationJSON, `"pending",`, `"` + status + `" ,`, ""})
	}
	for _, status := range []string{`"done"`, `""`, `"Pending"`} {
		edits = append(edits, edit{donationJSON, `"pending"`, status, "data.status: must be pending"})
	}
	nines := strings.Repeat("9", 18)
	for _, amount := range []string{"0", "00", nines, "0.0", nines + "." + nines} {
		edits = append(edits, edit{donationJSON, `"10.50"`, `"` + amount + `"`, ""})
	}
	for _, amount := range []string{"", ".", "1.", ".5", "-1", "+1", "1,5", "1e3", "1.2.3", " 1", "1 ", "٣", "9" + nines, "0.9" + nines} {
		edits = append(edits, edit{donationJSON, `"10.50"`, `"` + amount + `"`, "data.amount: must be digits"})
	}
	for _, currency := range []string{"BT", "USDT2", "ABCDEFGHIJ"} {
		edits = append(edits, edit{donationJSON, `"PLN"`, `"` + currency + `"`, ""})
	}
	for _, currency := range []string{"", "P", "pln", "PL N", "ZŁ", "ABCDEFGHIJK"} {
		edits = append(edits, edit{donationJSON, `"PLN"`, `"` + currency + `"`, "data.currency: must be 2 to 10"})
	}
	return append(edits,
		edit{donationJSON, `"status":"pending",`, ``, "data.status: missing"},
		edit{donationJSON, `"amount":"10.50",`, ``, "data.amount: missing"},
		edit{donationJSON, `"10.50"`, `10.50`, "data.amount: must be a string"},
		edit{donationJSON, `"currency":"PLN",`, ``, "data.currency: missing"},
	)
}

func keyEdits(from, member, valid string) []edit {
	old := `"` + member + `":"` + valid + `"`
	edits := []edit{
		{from, old, `"x":0`, "data." + member + ": missing"},
		{from, old, `"` + member + `":null`, "data." + member + ": missing"},
		{from, old, `"` + member + `":"` + strings.Repeat("a", 64) + `"`, ""},
		{from, old, `"` + member + `":"aZ09_-"`, ""},
	}
	for _, bad := range []string{"", strings.Repeat("a", 65), "a.b", "a b", "a*", ">", "ż", "a/", "@", "[", "`", "{", ":"} {
		edits = append(edits, edit{from, old, `"` + member + `":"` + bad + `"`, "data." + member + ": must be 1 to 64 of"})
	}
	return edits
}

func listEdits(from, valid string) []edit {
	old := `"list":"` + valid + `"`
	return []edit{
		{from, old, `"list":"` + valid + `" `, ""},
		{from, old, `"list":"Scammers"`, "data.list: must be scammers, servers or legit"},
		{from, old, `"list":"views"`, "data.list: must be scammers, servers or legit"},
		{from, old, `"list":""`, "data.list: must be scammers, servers or legit"},
		{from, old, `"list":null`, "data.list: missing"},
	}
}

func integerEdits(from, member, valid string) []edit {
	old := `"` + member + `":` + valid
	edits := []edit{
		{from, old, `"x":0`, "data." + member + ": missing"},
		{from, old, `"` + member + `":"7"`, "data." + member + ": must be a number"},
		{from, old, `"` + member + `":null`, "data." + member + ": missing"},
		{from, old, `"` + member + `":0 `, ""},
		{from, old, `"` + member + `":9007199254740991`, ""},
	}
	for _, bad := range []string{"9007199254740992", "-1", "1.0", "1e3", "9223372036854775808", "1" + strings.Repeat("0", 400)} {
		edits = append(edits, edit{from, old, `"` + member + `":` + bad, "data." + member + ": must be a"})
	}
	return append(edits, edit{from, old, `"` + member + `":01`, "event: not JSON"}, edit{from, old, `"` + member + `":+1`, "event: not JSON"})
}

func timeEdits(from, member, valid string) []edit {
	old := `"` + member + `":"` + valid + `"`
	edits := []edit{
		{from, old, `"x":0`, "data." + member + ": missing"},
		{from, old, `"` + member + `":1700000000`, "data." + member + ": must be a string"},
		{from, old, `"` + member + `":null`, "data." + member + ": missing"},
	}
	for _, good := range []string{
		"1970-01-01T00:00:00Z", "2200-12-31T23:59:59.999999999Z", "2026-02-28t10:15:00z", "2024-02-29T00:00:00-00:00",
		"1969-12-31T23:00:00-01:00", "2201-01-01T00:30:00+01:00", "2026-11-21T10:15:00.1234567890123456789Z",
	} {
		edits = append(edits, edit{from, old, `"` + member + `":"` + good + `" `, ""})
	}
	for _, bad := range []string{
		"", "2026", "2026-11-21", "2026-11-21 10:15:00Z", "2026-11-21T10:15Z", "2026-11-21T10:15:00", "2026-11-21T1:15:00Z",
		"2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T10:15:60Z", "2026-11-21T10:15:00,5Z",
		"2026-11-21T10:15:00.Z", "2026-11-21T10:15:00+24:00", "2026-11-21T10:15:00+0100", "2026-11-21T10:15:00Zx", "x026-11-21T10:15:00Z",
	} {
		edits = append(edits, edit{from, old, `"` + member + `":"` + bad + `"`, "data." + member + ": not an RFC 3339 time"})
	}
	for _, bad := range []string{"1969-12-31T23:59:59Z", "2201-01-01T00:00:00Z", "1970-01-01T00:30:00+01:00", "2200-12-31T23:30:00-01:00", "0000-01-01T00:00:00Z"} {
		edits = append(edits, edit{from, old, `"` + member + `":"` + bad + `"`, "data." + member + ": year outside 1970 to 2200"})
	}
	long := "2026-11-21T10:15:00." + strings.Repeat("0", 43) + "Z"
	return append(edits,
		edit{from, old, `"` + member + `":"` + long + `"`, ""},
		edit{from, old, `"` + member + `":"` + strings.Replace(long, "Z", "0Z", 1) + `"`, "data." + member + ": longer than 64 bytes"})
}

// The subject and the data must agree (events/CONTRACT.md#subjects).
func TestDecodeMessage(t *testing.T) {
	long := strings.Repeat("x", 64)
	longViews := strings.Replace(strings.Replace(viewsJSON, `"e1"`, `"`+long+`"`, 1), "servers", "scammers", 1)
	for _, c := range []struct{ subject, payload, problem string }{
		{"registry.scammers.e_1-A", entryJSON, ""},
		{"registry.legit.e1", delistedJSON, ""},
		{"registry.views.servers.e1", viewsJSON, ""},
		{"registry.donations.d1", donationJSON, ""},
		{"registry.donations.d1", removedJSON, ""},
		{"registry.scammers.e_1-B", entryJSON, "subject: subject says registry.scammers.e_1-B, data says registry.scammers.e_1-A"},
		{"registry.servers.e_1-A", entryJSON, "subject: subject says registry.servers.e_1-A, data says registry.scammers.e_1-A"},
		{"registry.views.scammers.e_1-A", entryJSON, "subject: subject says registry.views.scammers.e_1-A, data says"},
		{"registry.servers.e1", viewsJSON, "subject: subject says registry.servers.e1, data says registry.views.servers.e1"},
		{"registry.donations.d2", removedJSON, "subject: subject says registry.donations.d2, data says registry.donations.d1"},
		{"registry.views.scammers." + strings.Repeat("y", 64), longViews, "subject: subject says registry.views.scammers.yyy"},
		{"registry.entries.e1", entryJSON, `subject: unknown subject "registry.entries.e1"`},
		{"registry.entries.e1", `{`, `subject: unknown subject "registry.entries.e1"`},
		{"registry.legit.e1", `{`, "event: not JSON"},
	} {
		_, err := events.DecodeMessage(c.subject, []byte(c.payload))
		if (c.problem == "") != (err == nil) || (err != nil && !strings.HasPrefix(err.Error(), c.problem)) {
			t.Errorf("%s: got %v, want %s", c.subject, err, c.problem)
		}
		checkError(t, err)
	}
}

// A refused time is shown in the reason where nothing but a time can be meant, and never in the log.
func TestRefusedTimeIsShown(t *testing.T) {
	const form = "not an RFC 3339 time such as 2026-11-21T10:15:00Z"
	for written, problem := range map[string]string{
		"2025-11-21 10:15:00+01":       form + `: "2025-11-21 10:15:00+01"`, // PostgreSQL
		"11/21/2025, 10:15:00":         form + `: "11/21/2025, 10:15:00"`,   // JavaScript
		"2026-11-21T10:15:60Z":         form + `: "2026-11-21T10:15:60Z"`,
		"1969-12-31T23:59:59Z":         `year outside 1970 to 2200: "1969-12-31T23:59:59Z"`,
		"":                             form,
		"yesterday":                    form,
		"2026-11-21T10:15:00 CET":      form,
		"jan@example.org":              form,
		"2026-11-21T10:15:00\\u007f":   form,
		strings.Repeat("1", 40):        form + `: "` + strings.Repeat("1", 40) + `"`,
		strings.Repeat("1", 41):        form,
		"2026-11-21T10:15:00\\u00660Z": form,
	} {
		_, err := events.Decode([]byte(strings.Replace(entryJSON, "2026-11-20T09:00:00.5+01:00", written, 1)))
		if want := "data.reportedAt: " + problem; err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", written, err, want)
		}
		checkError(t, err)
	}
}

func TestIsBinaryMode(t *testing.T) {
	for name, c := range map[string]struct {
		header map[string][]string
		want   bool
	}{
		"none":       {nil, false},
		"structured": {map[string][]string{"Content-Type": {"application/cloudevents+json"}, "Nats-Msg-Id": {"1"}}, false},
		"binary":     {map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "Content-Type": {"application/json"}}, true},
		"no content": {map[string][]string{"CE-SpecVersion": {"1.0"}}, true},
		"both":       {map[string][]string{"ce-specversion": {"1.0"}, "Content-Type": {"Application/CloudEvents+JSON"}}, false},
		"another":    {map[string][]string{"ce-id": {"1"}}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, events.IsBinaryMode(c.header)) })
	}
	checkError(t, events.ErrBinaryMode)
}

// Whatever comes in, decoding ends without a panic in an event that survives its own
// encoding, or in an error that fits a header: one bad event costs one event.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{entryJSON, delistedJSON, viewsJSON, donationJSON, removedJSON} {
		f.Add("registry.scammers.e_1-A", []byte(s))
	}
	f.Fuzz(func(t *testing.T, subject string, payload []byte) {
		e, err := events.DecodeMessage(subject, payload)
		checkError(t, err)
		if err != nil {
			if e != (events.Event{}) {
				t.Errorf("an error and an event: %v", e)
			}
			return
		}
		if !utf8.Valid(payload) || !json.Valid(payload) || len(payload) > events.MaxPayload {
			t.Error("took what is no JSON of at most 256 KiB")
		}
		again, err := events.Encode(e)
		if err != nil {
			t.Fatalf("decoded and cannot be encoded: %v", err)
		}
		if back, err := events.DecodeMessage(subject, again); err != nil || back != e {
			t.Errorf("decoded %v, encoded and decoded %v, %v", e, back, err)
		}
	})
}

// What only begins like another JSON value is not JSON; a value that is none of an object is.
func TestNotJSON(t *testing.T) {
	for payload, want := range map[string]string{
		"not json": "event: not JSON that", "true story": "event: must be an object", "[1": "event: must be an object", "nul": "event: not JSON",
		"[1]": "event: must be an object", strings.Replace(entryJSON, `"data":{`, `"data":none,"x":{`, 1): "event: not JSON that",
	} {
		if _, err := events.Decode([]byte(payload)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20s: %v, want %s", payload, err, want)
		}
	}
}
