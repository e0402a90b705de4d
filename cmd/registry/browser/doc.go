// Package browser looks at the site as its readers do: the built program, with the demonstration
// and with entries that mean harm, in Debian's Chromium. It holds tests only.
//
// It promises, of every page at phone and desk width, in light and dark, with JavaScript and without:
// nothing on it speaks to another host, nothing is written to the console, nothing offends the content
// security policy, names and reasons stay text, everything can be reached by keyboard, nothing
// is wider than 320 px ask for, and axe-core finds no violation of WCAG 2.2 AA.
//
// # Why
//
// One browser serves all tests, each in a profile of its own ([chromedp.WithNewBrowserContext]): to start one
// takes longer than to look at a page. The program is another process, built once, so nothing of it
// needs importing, and the race detector would find nothing here: with it these tests are left out.
//
// # Running
//
// The tests need Chromium, and axe-core's axe.min.js at the path in REGISTRY_AXE; .ci/run fetches both. Without
// them they are skipped, with CI=true they fail. REGISTRY_SCREENSHOTS names a directory for pictures of every page:
//
//	REGISTRY_AXE=/tmp/axe.min.js REGISTRY_SCREENSHOTS=/tmp/shots go test ./cmd/registry/browser
package browser
