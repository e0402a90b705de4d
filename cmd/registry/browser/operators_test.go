//go:build unix && !race && nightly

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestOperatorsPage looks at the operators' page, with and without scripts: at every size and in
// both schemes axe-core finds nothing, and nothing is wider than the screen but what scrolls in its
// place.
func TestOperatorsPage(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*tab) *tab{"scripts": same, "without-scripts": (*tab).withoutScripts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb := open(t, shared.site, desk(false))
			tb.origin = shared.site.Admin
			tb = prepare(tb)
			if status := tb.get("/"); status != 200 {
				t.Fatalf("status %d", status)
			}
			if name == "scripts" { // which fetch the page again; without them it would be loaded again while it is looked at
				tb.until(`document.querySelector("#chart-lag polyline") !== null`)
			} else {
				tb.do(chromedp.Stop())
			}
			tb.wants("lists and checks are answered", "Checkpoint")
			for _, l := range []look{desk(false), desk(true), phone(false), phone(true), {width: 320, height: 640, mobile: true}} {
				tb.resize(l)
				tb.fits(l.width)
				if name == "scripts" { // axe-core is one
					tb.accessible()
				}
				tb.picture("operators-" + name + "-" + l.String())
			}
		})
	}
}
