//go:build unix && !race && nightly

package browser

import (
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
