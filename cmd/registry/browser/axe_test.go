//go:build !race

package browser

import (
	"strings"

	"github.com/chromedp/chromedp"
)

// axeRules are the conformance levels and practices that every page keeps.
const axeRules = `["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`

// axeRun counts what was checked, so that an engine which looked at nothing does not pass.
const axeRun = `axe.run(document, {runOnly: ` + axeRules + `, resultTypes: ["violations"]}).then(r => ({
	passes: r.passes.length,
	violations: r.violations.map(v => v.id + " (" + v.impact + "): " + v.help + ": " +
		v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "")).join(" | "))
}))`

// accessible fails the test for each rule that the page breaks.
func (tb *tab) accessible() {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](shared.axe))
	result, err := chromedp.Run(tb.ctx, chromedp.Evaluate[struct {
		Passes     int
		Violations []string
	}](axeRun, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatal(err)
	}
	if result.Passes < 10 {
		tb.t.Errorf("%s: axe-core saw only %d rules kept: does it look at the page?", tb.path(), result.Passes)
	}
	for _, v := range result.Violations {
		tb.t.Errorf("%s: %s", tb.path(), strings.Join(strings.Fields(v), " "))
	}
}
