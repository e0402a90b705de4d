package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"example.org/registry/httpapi"
	"example.org/registry/httpapi/internal/apitest"
)

// nastyText is a text as hostile as a rejected event may have.
const nastyText = `<script>alert(1)</script>"><img src=x onerror=alert(1)> {{.}} ` + "\u202egnp.exe\u200b\x00"

// The page shows what /projection does, in a document that is well-formed whatever is in it.
func TestPage(t *testing.T) {
	f := serve(t)
	sentence := "The broker cannot be reached."
	h := newAdmin(t, f, func(c *Config) {
		c.Projection = func() Projection {
			p := ProjectionOf(f.model.View())
			p.Stream, p.StreamEpoch, p.StreamCreated = "REGISTRY", "epoch-1", apitest.AsOf()
			p.LastSequence, p.Lag, p.LagSeconds, p.Rejected = 1_234_567, 1_234_553, 61, 42
			p.Rebuilding = &Rebuilding{Done: 500, Total: 2000, PerSecond: 25_000.4, ETASeconds: 90}
			p.Unpublished = new(17)
			p.LastError = &sentence
			return p
		}
		c.Site = "https://registry.example.org/"
		c.History = &History{}
		for i := range 3 {
			c.History.add(sample{apitest.AsOf().Add(time.Duration(i) * time.Minute), uint64(i * 1000), uint64(i*i) * 30})
		}
		c.Rejected = func(context.Context, int) ([]RejectedEvent, error) {
			return []RejectedEvent{{Sequence: 77, Time: apitest.AsOf(), Subject: nastyText, Reason: nastyText}}, errors.New(nastyText)
		}
		c.Snapshots = func(context.Context) ([]SnapshotInfo, error) {
			return []SnapshotInfo{{Name: nastyText, Sequence: 12, Made: apitest.AsOf(), Entries: 8, Bytes: 4096}}, nil
		}
	})
	status, body, header := ask(t, h, "GET", "/")
	if status != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", status, header)
	}
	for _, want := range []string{
		"something is wrong", sentence, "1 234 553", "1 234 567", "61 s", "<dd>17</dd>", "epoch-1", f.model.View().Digest().String(),
		"25 000 a second", "90 s left", `<progress max="2000" value="500"`, `<td data-name="Sequence">77</td>`, "2 000 at most", "4 096",
		`points="0.0,99.0 300.0,49.5 600.0,0.0"`, "<span>2 000</span><span>1 000</span><span>0</span>", "<span>10:15</span><span>10:17 UTC</span>",
		`<rect x="302.0" y="9.9" width="298.0" height="89.1"/>`, `<rect x="2.0" y="69.3" width="298.0" height="29.7"/>`, "90 in the last one, 90 at most, 120 in all",
		`<a href="https://registry.example.org/">Public site</a>`, "[U&#43;202E]gnp.exe[U&#43;200B]", "2026-11-21 10:15:00",
		`<noscript><meta http-equiv="refresh"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if n := strings.Count(body, "&lt;script&gt;alert(1)"); n != 4 {
		t.Errorf("nastyText text stands there %d times, want 4", n)
	}
	noForeignElements(t, body)
}

// noForeignElements allows what the template itself has.
func noForeignElements(t *testing.T, body string) {
	t.Helper()
	for z := html.NewTokenizer(strings.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			for _, a := range token.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("<%s %s>", token.Data, a.Key)
				}
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "/") && a.Val != "data:," && a.Val != "https://registry.example.org/" {
					t.Errorf("<%s %s=%q>", token.Data, a.Key, a.Val)
				}
			}
			if token.Data == "img" || token.Data == "style" || token.Data == "script" && len(token.Attr) != 2 {
				t.Errorf("<%s>", token.Data)
			}
		}
	}
}

// A registry at rest, with nothing configured beyond what is required, has a page, too.
func TestPageBare(t *testing.T) {
	_, body, _ := ask(t, newAdmin(t, serve(t)), "GET", "/")
	if !strings.Contains(body, "In order:") || strings.Contains(body, "Rebuild") || strings.Contains(body, "object store") {
		t.Error(body)
	}
}

// The headline says what matters most, and what to do about it.
func TestJudge(t *testing.T) {
	sentence := "because"
	for _, c := range []struct {
		state  httpapi.Readiness
		unfit  error
		p      Projection
		level  string
		says   string
		advice string
	}{
		{httpapi.Readiness{Ready: true}, nil, Projection{}, "good", "In order", ""},
		{httpapi.Readiness{Ready: true}, nil, Projection{Lag: 5, LagSeconds: 4}, "good", "In order", ""},
		{httpapi.Readiness{Ready: true}, nil, Projection{Lag: 5, LagSeconds: 6}, "warn", "waiting to be applied", ""},
		{httpapi.Readiness{Ready: true}, nil, Projection{Rebuilding: &Rebuilding{}}, "warn", "Rebuilding", ""},
		{httpapi.Readiness{Ready: true}, nil, Projection{LastError: &sentence}, "bad", "something is wrong", ""},
		{httpapi.Readiness{}, errors.New("not ready"), Projection{LastError: &sentence}, "bad", "answered with 503", "wait"},
		{httpapi.Readiness{Ready: true, Frozen: true}, nil, Projection{LastError: &sentence}, "bad", "Frozen: the last good state", "registry recover"},
		{httpapi.Readiness{Ready: true, Frozen: true}, errors.New("not ready"), Projection{}, "bad", "Frozen, and lists", "registry recover"},
		{httpapi.Readiness{Ready: true, Stopping: true}, nil, Projection{}, "warn", "Stopping", ""},
	} {
		got := judge(c.state, c.unfit, c.p)
		if got.Level != c.level || !strings.Contains(got.Sentence, c.says) || !strings.Contains(got.Advice, c.advice) || c.advice == "" && got.Advice != "" {
			t.Errorf("%+v %v: %+v", c.state, c.unfit, got)
		}
		if (c.p.LastError != nil) != (len(got.Details) == 1 && got.Details[0] == sentence) {
			t.Errorf("%+v: details %q", c.state, got.Details)
		}
	}
}

// Nothing on the page comes from elsewhere or runs inline, nobody may frame it, and no cache keeps
// it.
func TestPageHeaders(t *testing.T) {
	h := newAdmin(t, serve(t))
	_, page, header := ask(t, h, "GET", "/")
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error(policy)
	}
	for _, target := range []string{"/", "/assets/admin.css", "/assets/admin.js", "/projection", "/metrics", "/livez", "/nope"} {
		_, _, header := ask(t, h, "GET", target)
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s: %q", target, name, header.Get(name))
			}
		}
		if !strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", target, header)
		}
	}
	for _, ref := range regexp.MustCompile(`(?:src|href)="(/assets/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		if status, body, header := ask(t, h, "GET", ref[1]); status != 200 || len(body) < 100 || !strings.HasPrefix(header.Get("Content-Type"), "text/") {
			t.Errorf("%s: %d %v", ref[1], status, header)
		}
	}
}

// A browser shows the token as a password, which opens the page and nothing else.
func TestPagePassword(t *testing.T) {
	h := newAdmin(t, serve(t), func(c *Config) { c.Token = "s3cret" })
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+password))
	}
	for _, target := range []string{"/", "/assets/site.css", "/assets/admin.css", "/assets/admin.js"} {
		for authorization, want := range map[string]int{"": 401, basic("s3cret"): 200, basic("wrong"): 401, basic(""): 401, "Bearer s3cret": 200, "Basic s3cret": 401} {
			status, _, header := ask(t, h, "GET", target, "Authorization", authorization)
			if challenges := fmt.Sprint(header["Www-Authenticate"]); status != want || want == 401 && !strings.Contains(challenges, "Basic realm=") {
				t.Errorf("%s %q: %d %s, want %d", target, authorization, status, challenges, want)
			}
		}
	}
	for _, target := range []string{"/projection", "/metrics", "/debug/pprof/", "/nope"} {
		status, _, header := ask(t, h, "GET", target, "Authorization", basic("s3cret"))
		if challenges := fmt.Sprint(header["Www-Authenticate"]); status != 401 || challenges != "[Bearer]" {
			t.Errorf("%s with a password: %d %s", target, status, challenges)
		}
	}
}

// The last quarter of an hour is remembered, and no more.
func TestHistory(t *testing.T) {
	var h History
	if h.charts() != nil {
		t.Error("a chart of nothing")
	}
	for i := range sampleCount + 7 {
		h.add(sample{apitest.AsOf().Add(time.Duration(i) * sampleEvery), uint64(i), uint64(2 * i)})
	}
	got := h.recent()
	if len(got) != sampleCount || got[0].lag != 7 || got[sampleCount-1].lag != sampleCount+6 {
		t.Errorf("%d samples, %d to %d", len(got), got[0].lag, got[len(got)-1].lag)
	}
	c, events := h.charts()[0], h.charts()[1]
	if want := "Lag in events over the last 15 minutes: 456 now, 456 at most."; c.Text != want {
		t.Errorf("%q, want %q", c.Text, want)
	}
	if n := strings.Count(c.Points, ","); n != sampleCount {
		t.Errorf("%d points", n)
	}
	if want := "Events dealt with in each of the last 14 minutes: 60 in the last one, 60 at most, 840 in all."; events.Text != want || len(events.Bars) != 14 || events.Most != "100" {
		t.Errorf("%q, %d bars up to %s, want %q", events.Text, len(events.Bars), events.Most, want)
	}
}

// The checkpoint of another stream may be lower. Before the first minute is over there is nothing
// to count.
func TestEventsOfAnotherStream(t *testing.T) {
	var h History
	for i, checkpoint := range []uint64{9000, 9000, 5, 7} {
		h.add(sample{apitest.AsOf().Add(time.Duration(i) * 30 * time.Second), 0, checkpoint})
		if i == 1 && !strings.Contains(h.charts()[1].Text, "not over yet") {
			t.Error(h.charts()[1].Text)
		}
	}
	if c := h.charts()[1]; len(c.Bars) != 1 || c.Text != "Events dealt with in the last minute: 0." {
		t.Errorf("%+v", c)
	}
}

func TestRoundUp(t *testing.T) {
	for n, want := range map[uint64]uint64{0: 1, 1: 1, 2: 2, 3: 5, 6: 10, 11: 20, 21: 50, 51: 100, 2000: 2000, 2001: 5000, 1<<64 - 1: 1<<64 - 1} {
		if got := roundUp(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
