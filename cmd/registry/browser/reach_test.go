//go:build unix && !race && nightly

package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func same(tb *tab) *tab { return tb }

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
}

// loads expects the steps to lead to a page with status 200.
func (tb *tab) loads(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	if status := tb.load(steps...); status != 200 {
		tb.t.Errorf("%s: status %d", tb.path(), status)
	}
}

// back goes back in the browser's history.
func (tb *tab) back() {
	tb.t.Helper()
	tb.do(chromedp.NavigateBack())
}

// unreached gives the focus to all that can be clicked, and says what does not take it at its turn or
// does not show it. Of radio buttons the chosen one is reached; arrows reach the others. The browser
// decides the order by itself unless an element claims a place in it.
const unreached = `(() => {
	const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden], [type=radio]:not(:checked)), select, summary")].filter(e => e.checkVisibility());
	const wrong = all.length < 8 ? ["only " + all.length + " things to reach: is this the page?"] : [];
	for (const e of all) {
		e.focus();
		const style = getComputedStyle(e), shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
		if (document.activeElement !== e || e.tabIndex !== 0 || !shown) wrong.push((shown ? "not reached: " : "no outline around: ") + e.outerHTML.slice(0, 200));
	}
	document.activeElement.blur();
	return wrong;
})()`

// byKeyboard: a keyboard reaches everything that can be clicked, and the focus is visible. Keys
// themselves are pressed in TestCheckByKeyboard: a busy browser drops some.
func byKeyboard(tb *tab, s sight) {
	for _, wrong := range eval[[]string](tb, unreached) {
		tb.t.Errorf("%s: %s", s.path, wrong)
	}
}

// tab presses Tab until the focus moves.
func (tb *tab) tab() {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](`window.before = document.activeElement`))
	tb.press(kb.Tab, `document.activeElement !== window.before`)
}

// press presses a key until an expression is true: a busy browser drops a key. The key's character is
// part of the event, as a browser has it; sent by itself it goes to what the key has given the focus.
func (tb *tab) press(key, expression string) {
	tb.t.Helper()
	for range 5 {
		for _, event := range kb.Encode([]rune(key)[0]) {
			switch event.Type {
			case kb.KeyDown:
				event.Text = map[string]string{kb.Enter: "\r"}[key]
			case kb.KeyChar:
				continue
			}
			call(tb, input.DispatchKeyEvent, *event)
		}
		if tb.within(5*time.Second, expression) {
			return
		}
	}
	tb.t.Errorf("%s: %q does not lead to %s", tb.path(), key, expression)
}

// TestCheckByKeyboard: typing and Enter check somebody, and the first Tab leads past the
// navigation.
func TestCheckByKeyboard(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := prepare(open(t, shared.site, phone(true)))
			tb.get("/status")
			tb.tab()
			tb.press(kb.Enter, `location.hash === "#tresc"`)
			if focus := eval[string](tb, `document.activeElement.localName`); focus != "main" || !strings.HasSuffix(tb.path(), "#tresc") {
				t.Errorf("past the navigation: focus on %s at %s", focus, tb.path())
			}
			tb.get("/")
			tb.do(chromedp.Focus(chromedp.CSS("main input[type=search]")))
			tb.loads(chromedp.KeyEvent("99000000000000000000"), chromedp.KeyEvent(kb.Enter))
			tb.wants("na liście oszustów")
			history := call(tb, page.GetNavigationHistory, struct{}{})
			tb.back()
			if tb.path() != "/" || history.CurrentIndex == 0 {
				t.Errorf("back led to %s", tb.path())
			}
		})
	}
}
