package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// nastyText is what a rejected event may bring along.
const nastyText = `<script>alert(1)</script>"><img src=x onerror=alert(1)> {{.}} ` + "\u202egnp.exe\u200b\x00"

// The page shows what /projection does, in a document that is well-formed whatever is in it.
func TestPage(t *testing.T) {
	f := serve(t)
	sentence := "The broker cannot be reached."
	h := newAdmin(t, f, func(c *AdminConfig) {
		c.Projection = func() Projection {
			p := ProjectionOf(f.model.View())
			p.Stream, p.StreamEpoch, p.StreamCreated = "REGISTRY", "epoch-1", asOf()
			p.LastSequence, p.Lag, p.LagSeconds, p.Rejected = 1_234_567, 1_234_553, 61, 42
			p.Rebuilding = &Rebuilding{Done: 500, Total: 2000, PerSecond: 25_000.4, ETASeconds: 90}
			p.SubjectsWithoutValidEvent = []string{nastyText}
			p.LastError = &sentence
			return p
		}
		c.History = &History{}
		for i := range 3 {
			c.History.add(sample{asOf().Add(time.Duration(i) * time.Minute), uint64(i * 1000)})
		}
		c.Rejected = func(context.Context, int) ([]RejectedEvent, error) {
			return []RejectedEvent{{Sequence: 77, Time: asOf(), Subject: nastyText, Reason: nastyText}}, errors.New(nastyText)
		}
		c.Snapshots = func(context.Context) ([]SnapshotInfo, error) {
			return []SnapshotInfo{{Name: nastyText, Sequence: 12, Made: asOf(), Entries: 8, Bytes: 4096}}, nil
		}
	})
	status, body, header := admin(t, h, "GET", "/")
	if status != 200 || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", status, header)
	}
	for _, want := range []string{
		"something is wrong", sentence, "1 234 553", "1 234 567", "61 s", "epoch-1", f.model.View().Digest().String(),
		"25 000 a second", "90 s left", `<progress max="2000" value="500"`, "<td>77</td>", "2 000 at most", "4 096",
		`points="0.0,99.0 300.0,49.5 600.0,0.0"`, "[U&#43;202E]gnp.exe[U&#43;200B]", "2026-11-21 10:15:00",
		`<noscript><meta http-equiv="refresh"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	if n := strings.Count(body, "&lt;script&gt;alert(1)"); n != 5 {
		t.Errorf("nastyText text stands there %d times, want 5", n)
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
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "/") && a.Val != "data:," {
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
	_, body, _ := admin(t, newAdmin(t, serve(t)), "GET", "/")
	if !strings.Contains(body, "In order:") || strings.Contains(body, "Rebuild") || strings.Contains(body, "object store") {
		t.Error(body)
	}
}

// The headline says what matters most, and what to do about it.
func TestJudge(t *testing.T) {
	sentence := "because"
	for _, c := range []struct {
		state  State
		unfit  error
		p      Projection
		level  string
		says   string
		advice string
	}{
		{State{Ready: true}, nil, Projection{}, "good", "In order", ""},
		{State{Ready: true}, nil, Projection{Lag: 5, LagSeconds: 4}, "good", "In order", ""},
		{State{Ready: true}, nil, Projection{Lag: 5, LagSeconds: 6}, "warn", "waiting to be applied", ""},
		{State{Ready: true}, nil, Projection{SubjectsWithoutValidEvent: []string{"x"}}, "warn", "would lose the subjects", ""},
		{State{Ready: true}, nil, Projection{Rebuilding: &Rebuilding{}}, "warn", "Rebuilding", ""},
		{State{Ready: true}, nil, Projection{LastError: &sentence}, "bad", "something is wrong", ""},
		{State{}, notReady(""), Projection{LastError: &sentence}, "bad", "answered with 503", "wait"},
		{State{Ready: true, Frozen: true}, nil, Projection{LastError: &sentence}, "bad", "Frozen: the last good state", "rebuild --accept-stream"},
		{State{Ready: true, Frozen: true}, notReady(""), Projection{}, "bad", "Frozen, and lists", "rebuild --accept-stream"},
		{State{Ready: true, Stopping: true}, nil, Projection{}, "warn", "Stopping", ""},
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

// Nothing on the page comes from elsewhere or runs inline, nobody may frame it, and no cache keeps it.
func TestPageHeaders(t *testing.T) {
	h := newAdmin(t, serve(t))
	_, page, header := admin(t, h, "GET", "/")
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
		_, _, header := admin(t, h, "GET", target)
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
		if status, body, header := admin(t, h, "GET", ref[1]); status != 200 || len(body) < 100 || !strings.HasPrefix(header.Get("Content-Type"), "text/") {
			t.Errorf("%s: %d %v", ref[1], status, header)
		}
	}
}

// A browser shows the token as a password, which opens the page and nothing else.
func TestPagePassword(t *testing.T) {
	h := newAdmin(t, serve(t), func(c *AdminConfig) { c.Token = "s3cret" })
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+password))
	}
	for _, target := range []string{"/", "/assets/admin.css", "/assets/admin.js"} {
		for authorization, want := range map[string]int{"": 401, basic("s3cret"): 200, basic("wrong"): 401, basic(""): 401, "Bearer s3cret": 200, "Basic s3cret": 401} {
			status, _, header := admin(t, h, "GET", target, "Authorization", authorization)
			if challenges := fmt.Sprint(header["Www-Authenticate"]); status != want || want == 401 && !strings.Contains(challenges, "Basic realm=") {
				t.Errorf("%s %q: %d %s, want %d", target, authorization, status, challenges, want)
			}
		}
	}
	for _, target := range []string{"/projection", "/metrics", "/debug/pprof/", "/nope"} {
		status, _, header := admin(t, h, "GET", target, "Authorization", basic("s3cret"))
		if challenges := fmt.Sprint(header["Www-Authenticate"]); status != 401 || challenges != "[Bearer]" {
			t.Errorf("%s with a password: %d %s", target, status, challenges)
		}
	}
}

// The last quarter of an hour is remembered, and no more.
func TestHistory(t *testing.T) {
	var h History
	if h.chart() != nil {
		t.Error("a chart of nothing")
	}
	for i := range sampleCount + 7 {
		h.add(sample{asOf().Add(time.Duration(i) * sampleEvery), uint64(i)})
	}
	got := h.recent()
	if len(got) != sampleCount || got[0].lag != 7 || got[sampleCount-1].lag != sampleCount+6 {
		t.Errorf("%d samples, %d to %d", len(got), got[0].lag, got[len(got)-1].lag)
	}
	c := h.chart()
	if want := "Lag in events over the last 15 minutes: 456 now, 456 at most."; c.Text != want {
		t.Errorf("%q, want %q", c.Text, want)
	}
	if n := strings.Count(c.Points, ","); n != sampleCount {
		t.Errorf("%d points", n)
	}
}

// Whatever is asked, no new series appears: a hostile reader cannot grow the metrics.
func TestMetricsAreBounded(t *testing.T) {
	f := serve(t)
	count := func() (n int) {
		families, err := f.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			n += len(family.Metric)
		}
		return n
	}
	before := count()
	for i := range 50 {
		f.get(t, fmt.Sprintf("/api/%d", i))
		f.get(t, fmt.Sprintf("/api/scammers?x%d=1&search=n%d", i, i))
		f.get(t, fmt.Sprintf("/api/chat/avatar/%d", i))
		f.get(t, fmt.Sprintf("/proofs/p%d", i))
		f.ask(t, http.MethodDelete, fmt.Sprintf("/api/check?id=%d", i))
		f.ask(t, fmt.Sprintf("METHOD%d", i), "/api/check")
	}
	if after := count(); after != before {
		t.Errorf("%d series, %d before", after, before)
	}
}
