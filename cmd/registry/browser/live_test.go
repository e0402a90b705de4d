//go:build unix && !race && nightly

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// until waits until an expression is true in the page. It asks again each time: a poll inside the
// page ends with an error if the page is only being loaded.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	if !tb.within(24*time.Hour, expression) { // as long as the tab lasts
		tb.t.Fatalf("%s is not true: %v", expression, tb.ctx.Err())
	}
}

// within waits so long for an expression to be true, or to the end of the tab, and reports whether
// it is.
func (tb *tab) within(limit time.Duration, expression string) bool {
	again, end := time.NewTicker(50*time.Millisecond), time.After(limit)
	defer again.Stop()
	for {
		if is, err := chromedp.Run(tb.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); is && err == nil {
			return true
		}
		select {
		case <-again.C:
		case <-end:
			return false
		case <-tb.ctx.Done():
			return false
		}
	}
}

// TestLoadingAsksAgain: while the server is loading the page says so, and asks again by itself,
// with and without scripts, until it is told not to.
func TestLoadingAsksAgain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := prepare(open(t, shared.loading, phone(false)))
			tb.expect("Failed to load resource")
			tb.get("/scammers")
			tb.wants("wczytywanie")
			if status := tb.load(); status != 503 || tb.path() != "/scammers" {
				t.Errorf("asked again: %d at %s", status, tb.path())
			}
			tb.get(eval[string](tb, `document.querySelector("[href*=odswiezanie]").getAttribute("href")`))
			if text := tb.text(); strings.Contains(text, "odświeży się") || !strings.Contains(text, "Spróbuj ponownie") {
				t.Errorf("not stopped: %s", text)
			}
		})
	}
}
