package httpapi

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// wrong is the name in the error of a query string; "" when it was accepted.
func wrong(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	f, ok := err.(*failure)
	if !ok {
		t.Fatalf("%T %v", err, err)
	}
	if f.code == errMissing.code {
		return "missing " + f.param
	}
	return f.param
}

func TestListParameters(t *testing.T) {
	ż := "%C5%BC" // two bytes, one code point
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	for raw, want := range map[string]string{
		// Bounds, in code points after trimming.
		"search=" + long(ż, 100):                     "",
		"search=" + long(ż, 101):                     "search",
		"search=+%20" + long("x", 100) + "%E2%80%83": "",
		"search=+" + long("x", 101):                  "search",
		"search=" + long("+", 300):                   "",
		"search=" + long("+", 301):                   "search",
		"id=" + long("x", 64):                        "",
		"id=" + long("x", 65):                        "id",
		"id=" + ż:                                    "id",
		"id=1" + "%E2%80%8B":                         "id",
		"skip=0":                                     "", "skip=20000": "", "skip=20001": "skip", "skip=-1": "skip",
		"limit=1": "", "limit=60": "", "limit=0": "limit", "limit=61": "limit",
		// Numbers are [0-9]{1,6}.
		"skip=000007": "", "skip=0000007": "skip", "skip=+7": "", "skip=%2B7": "skip", "skip=1e1": "skip",
		"skip=0x1": "skip", "skip=1.0": "skip", "skip=1_0": "skip", "skip=%D9%A3": "skip", "skip=9223372036854775808": "skip",
		"limit=abc": "limit", "limit=1+1": "limit", "limit=%EF%BC%91": "limit",
		// Values that a program has lost. A name may be such a word.
		"id=undefined": "id", "id=null": "id", "id=NaN": "id", "id=None": "id", "id=+nil%20": "id", "id=%5Bobject+Object%5D": "id",
		"search=null&id=nil": "id", "search=undefined": "", "search=NaN": "", "id=Null": "id", "id=nullx": "", "id=NULL": "id", "id=nil1": "",
		// Choices.
		"sort=newest": "", "sort=oldest": "", "sort=popular": "", "sort=popular_asc": "", "sort=az": "", "sort=za": "",
		"sort=AZ": "sort", "sort=random": "sort", "sort=+az+": "", "sort=az%00": "sort",
		"status=all": "", "status=verified": "", "status=risk": "", "status=Risk": "status", "status=true": "status",
		"proofs=all": "", "proofs=with": "", "proofs=private": "", "proofs=none": "proofs",
		// Empty is absent.
		"search=&id=&sort=&status=&proofs=&skip=&limit=": "", "limit": "", "skip=%20%09%0A%C2%A0": "", "sort=+": "",
		// Given twice, even if empty or equal.
		"id=1&id=1": "id", "sort=az&sort=az": "sort", "limit=&limit=": "limit", "skip=1&%73kip=2": "skip",
		// Unknown parameters and other case are ignored; what they hold, too.
		"": "", "foo=1&foo=2": "", "Search=1&SEARCH=2": "", "foo=%FF%00": "", "searc%68=x": "",
		"=": "", "=1": "", "&&": "", "&": "",
		// Not text.
		"search=%FF": "search", "search=%C0%AF": "search", "id=%ED%A0%80": "id", "search=a%00b": "search", "limit=%00": "limit",
		"search=\xff": "search", "search=%F4%90%80%80": "search",
		// Not a query string at all.
		"%zz": "query", "search=%": "query", "search=%1": "query", "a=b;c=d": "query", ";": "query", "foo=%zz": "query",
		"limit=0&%zz": "query", "search=a;b": "query", "search=a%3Bb": "",
		long("a", 4096): "", long("a", 4097): "query", "limit=" + long("0", 4096): "query",
		// Every parameter is checked, in the order of the table.
		"id=1&search=" + long("x", 101):             "search",
		"limit=0&skip=-1&proofs=x&status=x&sort=x":  "sort",
		"limit=0&skip=-1&proofs=x&status=x":         "status",
		"limit=0&skip=-1&proofs=x":                  "proofs",
		"limit=0&skip=-1":                           "skip",
		"limit=0&id=%00":                            "id",
		"sort=x&search=%00&id=" + long("x", 65):     "search",
		"sort=x&id=" + long("x", 65) + "&search=ok": "id",
	} {
		_, err := parseList(events.Scammers, raw)
		if got := wrong(t, err); got != want {
			t.Errorf("%.80q: %q, want %q", raw, got, want)
		}
	}
}

func TestListParametersMean(t *testing.T) {
	none := readmodel.ListQuery{List: events.Servers, Limit: 30}
	for raw, change := range map[string]func(*readmodel.ListQuery){
		"":                      func(*readmodel.ListQuery) {},
		"search=+a%20+b%09":     func(q *readmodel.ListQuery) { q.Search = "a  b" },
		"search=%C4%B0&id=7":    func(q *readmodel.ListQuery) { q.Search, q.ID = "İ", "7" },
		"sort=za&status=risk":   func(q *readmodel.ListQuery) { q.Sort, q.Status = readmodel.ZA, readmodel.StatusRisk },
		"proofs=private&sort=":  func(q *readmodel.ListQuery) { q.Proofs = readmodel.ProofsPrivate },
		"skip=00030&limit=+60+": func(q *readmodel.ListQuery) { q.Skip, q.Limit = 30, 60 },
		"sort=oldest":           func(q *readmodel.ListQuery) { q.Sort = readmodel.Oldest },
		"sort=popular":          func(q *readmodel.ListQuery) { q.Sort = readmodel.Popular },
		"sort=popular_asc":      func(q *readmodel.ListQuery) { q.Sort = readmodel.PopularAsc },
		"sort=az&proofs=with":   func(q *readmodel.ListQuery) { q.Sort, q.Proofs = readmodel.AZ, readmodel.ProofsWith },
		"status=verified":       func(q *readmodel.ListQuery) { q.Status = readmodel.StatusVerified },
		"id=%3C@123%3E":         func(q *readmodel.ListQuery) { q.ID = "123" },
	} {
		want := none
		change(&want)
		if got, err := parseList(events.Servers, raw); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", raw, got, err, want)
		}
	}
}

func TestCheckParameters(t *testing.T) {
	digits := strings.Repeat("1", 64)
	id := func(s string) readmodel.CheckQuery { return readmodel.CheckQuery{ID: s} }
	name := func(s string) readmodel.CheckQuery { return readmodel.CheckQuery{Search: s} }
	for raw, want := range map[string]readmodel.CheckQuery{
		"search=adam": name("adam"), "search=+adam+": name("adam"), "id=7": id("7"), "id=7&search=adam": id("7"),
		"id=&search=adam": name("adam"), "search=" + strings.Repeat("x", 100): name(strings.Repeat("x", 100)),
		"id=" + strings.Repeat("x", 64): id(strings.Repeat("x", 64)),
		// Pasted, in either parameter.
		"search=<@123>": id("123"), "search=<@!123>": id("123"), "id=<@123>": id("123"), "id=+<@!123>+": id("123"),
		"search=<@" + digits + ">":                          id(digits),
		"search=https://discord.com/users/123":              id("123"),
		"search=HTTPS://Canary.Discord.com/users/123/":      id("123"),
		"search=discordapp.com/users/123":                   id("123"),
		"id=http://www.discord.com/users/123":               id("123"),
		"id=9&search=https://discord.com/users/123":         id("9"),
		"search=https://ptb.discordapp.com/users/" + digits: id(digits),
		"search=https://discord.com/users/123?x=1":          id("123"),
		"id=https://discord.com/users/123/%23x":             id("123"),
		"search=https://discord.com:443/users/123":          id("123"),
		"id=<@!007>": id("007"),
		// Nearly a lost value.
		"search=Null": name("Null"), "search=NaN": name("NaN"), "search=nil": name("nil"), "search=none": name("none"), "search=[object+object]": name("[object object]"),
		// Nearly.
		"search=<@!!123>": name("<@!!123>"), "search=<@+123>": name("<@ 123>"), "search=<@123>x": name("<@123>x"),
		"search=<@>": name("<@>"), "search=<@!>": name("<@!>"), "search=<@%26123>": name("<@&123>"), "search=<@12a>": name("<@12a>"),
		"search=<@123": name("<@123"), "search=@123": name("@123"), "search=x<@123>": name("x<@123>"),
	} {
		if got, err := parseCheck(raw); err != nil || got != want {
			t.Errorf("%.90q: %+v %v, want %+v", raw, got, err, want)
		}
	}
	for _, address := range []string{"https:/users/123", "ftp://discord.com/users/123", "https://discord.com/Users/123", "https://discord.com/users/123 x",
		"https://discord.com/users/12a", "https://discord.com/xusers/123", "https://discord.com/app/users/123", "https://discord.com//users/123",
		"https://discord.com/users/123//", "https://discord.com/users/", "https://discord.com/users?x=/users/123", "https://discord.com#/users/123",
		"https://me@discord.com/users/123", "https://me:pw@discord.com/users/123", "https://notdiscord.com/users/123",
		"https://discord.com.evil.example/users/123", "https://evil.example/discord.com/users/123", "https:///users/123", "/users/123", "users/123",
		"https://discord.com/users/٣", "https://discord.com/?a=/users/1", "https://dıscord.com/users/1"} {
		asked := url.QueryEscape(address)
		if got, err := parseCheck("search=" + asked); err != nil || got != name(address) {
			t.Errorf("search=%s: %+v %v", address, got, err)
		}
		if got, err := parseCheck("id=" + asked); err == nil {
			t.Errorf("id=%s: %+v", address, got)
		}
	}
	for raw, want := range map[string]string{
		"": "missing search", "id=&search=%20": "missing search", "id": "missing search", "name=adam": "missing search",
		"search=" + strings.Repeat("x", 101): "search", "id=" + strings.Repeat("x", 65): "id",
		"search=https://discord.com/users/1" + digits: "search", "search=<@0>": "search",
		"search=<@1" + digits + ">": "search", "id=<@1" + digits + ">": "id",
		"id=7&search=" + strings.Repeat("x", 101): "search", "id=1&id=2": "id", "search=a&search=": "search",
		"search=%FF": "search", "id=%00": "id", "search=%FF&id=%FF": "id", "search=%FF&id=" + digits + "1": "id",
		"id=undefined": "id", "id=null": "id", "id=NaN": "id", "id=None": "id", "id=nil": "id", "id=%5Bobject%20Object%5D": "id",
		"id=a.b": "id", "id=1%E2%80%8B": "id", "id=%D9%A3": "id", "id=@1": "id", "id=<@0>": "id", "id=<@%261>": "id", "id=Brak": "id", "id=-1": "id", "id=a,b": "id",
		"search=undefined": "search", "search=+null+": "search",
		"search=%5Bobject%20Object%5D": "search", "id=7&search=undefined": "search", "id=null&search=adam": "id",
		"%zz":                                "query",
		"search=adam;x":                      "query",
		"search=" + strings.Repeat("+", 301): "search",
	} {
		_, err := parseCheck(raw)
		if got := wrong(t, err); got != want {
			t.Errorf("%.80q: %q, want %q", raw, got, want)
		}
	}
}

func TestOtherParameters(t *testing.T) {
	long := strings.Repeat("x", 65)
	for raw, want := range map[string]string{
		"id=d-1": "", "id=+d+": "", "id=" + long[1:]: "", "id=" + long: "id", "": "missing id", "id=+": "missing id",
		"id=1&id=1": "id", "id=%FF": "id", "id=%00": "id", "%zz": "query", "ID=1": "missing id",
	} {
		_, err := parseDonation(raw)
		if got := wrong(t, err); got != want {
			t.Errorf("donation %.80q: %q, want %q", raw, got, want)
		}
	}
	for _, c := range []struct{ user, raw, want string }{
		{"1", "", ""}, {"Az09_-", "size=16", ""}, {long[1:], "size=512", ""}, {"1", "size=32", ""}, {"1", "size=64", ""},
		{"1", "size=128", ""}, {"1", "size=256", ""}, {"1", "size=+", ""}, {"1", "other=%FF", ""},
		{long, "", "chatUserId"}, {"ą", "", "chatUserId"}, {"a b", "", "chatUserId"}, {"a.b", "%zz", "chatUserId"},
		{"1", "size=0", "size"}, {"1", "size=15", "size"}, {"1", "size=17", "size"}, {"1", "size=48", "size"},
		{"1", "size=513", "size"}, {"1", "size=1024", "size"}, {"1", "size=8", "size"}, {"1", "size=x", "size"}, {"1", "size=64&size=64", "size"},
		{"1", "%zz", "query"},
	} {
		_, err := parseAvatar(c.user, c.raw)
		if got := wrong(t, err); got != c.want {
			t.Errorf("avatar %.80q %q: %q, want %q", c.user, c.raw, got, c.want)
		}
	}
	if size, err := parseAvatar("1", ""); size != 128 || err != nil {
		t.Errorf("default size %d %v", size, err)
	}
}

// FuzzQuery feeds any bytes to the parsers: none panics, and what they accept is within bounds.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "search=a&id=b&sort=az&status=risk&proofs=with&skip=1&limit=2", "search=%FF", "%zz", "a;b", "id=1&id=2",
		"search=<@!123>", "id=https://chat.example/users/123", "limit=٣", "skip=20001", "search=%00", "search=++",
		"od=2026-11-01&do=2026-12-02", "od=2026-11-01", "do=1970-01-02", "od=2026-02-30",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if q, err := parseList(events.Legit, raw); err == nil {
			bounded(t, q.Search, bounds.MaxSearch)
			bounded(t, q.ID, bounds.MaxID)
			if q.Skip < 0 || q.Skip > bounds.MaxSkip || q.Limit < 1 || q.Limit > bounds.MaxLimit {
				t.Fatalf("%q: %+v", raw, q)
			}
		}
		if q, err := parseCheck(raw); err == nil {
			bounded(t, q.Search, bounds.MaxSearch)
			bounded(t, q.ID, bounds.MaxID)
			if (q.ID == "") == (q.Search == "") {
				t.Fatalf("%q: %+v", raw, q)
			}
		}
		if id, err := parseDonation(raw); err == nil && id == "" {
			t.Fatalf("%q: no id and no error", raw)
		}
	})
}

func bounded(t *testing.T, s string, limit int) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || utf8.RuneCountInString(s) > limit ||
		strings.TrimFunc(s, unicode.IsSpace) != s {
		t.Fatalf("accepted %q", s)
	}
}
