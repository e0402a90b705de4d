//go:build unix && !race && nightly

package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
)

// look is a screen and the colors that its reader prefers.
type look struct {
	width, height int64 // in CSS pixels
	dark, mobile  bool
}

// The looks of every page.
func phone(dark bool) look { return look{width: 390, height: 844, dark: dark, mobile: true} }
func desk(dark bool) look  { return look{width: 1280, height: 800, dark: dark} }

func (l look) String() string {
	name, scheme := "desk", "light"
	if l.mobile {
		name = "phone"
	}
	if l.dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%s-%d-%s", name, l.width, scheme)
}

// tab is one page in a profile of its own. Its methods fail the test, and so does everything that a
// page did and must not do, when the test ends.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string
	expected string // part of the console's line about an expected error page
}

// open makes a tab for the program's pages.
func open(t *testing.T, p *registrytest.Server, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(shared.browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	tb := &tab{t: t, origin: p.HTTP}
	require.NoError(t, chromedp.Listen(ctx, tb.watch))
	limited, done := context.WithTimeout(ctx, patience)
	t.Cleanup(done)
	tb.ctx = limited
	call(tb, audits.Enable, cdp.Empty{})
	// Keys reach the page although other tabs are open.
	call(tb, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	tb.resize(l)
	t.Cleanup(tb.finish)
	return tb
}

// call runs a command of the protocol.
func call[P, R any](tb *tab, command cdp.Command[P, R], params P) R {
	tb.t.Helper()
	result, err := chromedp.Call(tb.ctx, command, params)
	if err != nil {
		tb.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

func (tb *tab) resize(l look) {
	tb.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(tb, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.mobile})
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// withoutScripts turns JavaScript off for what is loaded from now on.
func (tb *tab) withoutScripts() *tab {
	tb.t.Helper()
	call(tb, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return tb
}

// watch records what a page must not do. The goroutine that reads from the browser calls it.
func (tb *tab) watch(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, tb.origin+"/") && !strings.HasPrefix(e.Request.URL, "data:image/svg+xml;") { // the browser's own, in a field for a date
			tb.problem("request to %s", e.Request.URL)
		}
	case *log.EventEntryAdded:
		tb.problem("log: %s %s", e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		tb.problem("console.%s", e.Type)
	case *runtime.EventExceptionThrown:
		tb.problem("exception: %s", e.ExceptionDetails.Text)
	case *audits.EventIssueAdded:
		if e.Issue.Details != nil && e.Issue.Details.ContentSecurityPolicyIssueDetails != nil {
			tb.problem("content security policy: %+v", *e.Issue.Details.ContentSecurityPolicyIssueDetails)
		}
	case *page.EventJavascriptDialogOpening:
		tb.problem("dialog: %s", e.Message)
	}
}

func (tb *tab) problem(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if tb.expected == "" || !strings.Contains(text, tb.expected) {
		tb.problems = append(tb.problems, text)
	}
}

// expect lets the console say this from now on, as it does about pages that are errors. Empty:
// nothing.
func (tb *tab) expect(text string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.expected = text
}

// finish reports what the page did that it must not do.
func (tb *tab) finish() {
	tb.t.Helper()
	if tb.ctx.Err() == nil {
		if cookies := call(tb, network.GetCookies, network.GetCookiesParams{}).Cookies; len(cookies) > 0 {
			tb.problem("cookie %s", cookies[0].Name)
		}
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, p := range tb.problems {
		tb.t.Error(p)
	}
}

// get opens a page and returns its status.
func (tb *tab) get(path string) int64 {
	tb.t.Helper()
	return tb.load(chromedp.Navigate(tb.origin + path))
}

// load runs steps that lead to another page and returns its status once it is loaded and shown:
// before the first frame the browser takes no keys and no clicks.
func (tb *tab) load(steps ...chromedp.Action[chromedp.Void]) int64 {
	tb.t.Helper()
	response, err := chromedp.RunResponse(tb.ctx, steps...)
	require.NoError(tb.t, err)
	tb.until(`performance.getEntriesByName("first-paint").length > 0`)
	return response.Status
}

func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	require.NoError(tb.t, chromedp.Do(tb.ctx, steps...))
}

// eval returns the value of an expression in the page.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	value, err := chromedp.Run(tb.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		tb.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// path returns the page's address without its origin.
func (tb *tab) path() string {
	tb.t.Helper()
	address, err := chromedp.Run(tb.ctx, chromedp.Location())
	require.NoError(tb.t, err)
	return strings.TrimPrefix(address, tb.origin)
}

// text returns what a reader sees of the page's main part, with single spaces.
func (tb *tab) text() string {
	tb.t.Helper()
	return strings.Join(strings.Fields(eval[string](tb, `document.querySelector("main").innerText`)), " ")
}

// wants fails the test unless the page says this.
func (tb *tab) wants(texts ...string) {
	tb.t.Helper()
	shown := tb.text()
	for _, text := range texts {
		if !strings.Contains(strings.ToLower(shown), strings.ToLower(text)) {
			tb.t.Errorf("%s does not say %q: %s", tb.path(), text, cut(shown, 600))
		}
	}
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// axeRules are the conformance levels and practices that every page must keep.
const axeRules = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`

// axeRun also counts the rules that passed, so that an engine that looked at nothing fails the
// test.
const axeRun = `axe.run(document, {runOnly: ` + axeRules + `, resultTypes: ["violations"]}).then(r => ({
	passes: r.passes.length,
	violations: r.violations.map(v => v.id + " (" + v.impact + "): " + v.help + ": " +
		v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "")).join(" | "))
}))`

// accessible fails the test for each rule that the page breaks.
func (tb *tab) accessible() {
	tb.t.Helper()
	if !eval[bool](tb, `"axe" in window`) {
		tb.do(chromedp.Evaluate[chromedp.Void](shared.axe))
	}
	result, err := chromedp.Run(tb.ctx, chromedp.Evaluate[struct {
		Passes     int
		Violations []string
	}](axeRun, chromedp.EvalAwaitPromise))
	require.NoError(tb.t, err)
	if result.Passes < 10 {
		tb.t.Errorf("%s: axe-core saw only %d rules kept: does it look at the page?", tb.path(), result.Passes)
	}
	for _, v := range result.Violations {
		tb.t.Errorf("%s: %s", tb.path(), strings.Join(strings.Fields(v), " "))
	}
}
