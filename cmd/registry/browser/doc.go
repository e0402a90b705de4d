// Package browser holds tests only. They check the site as visitors see it: the built program, with
// the demonstration and with hostile entries, in Debian's Chromium.
//
// # Promises
//
// Of every page, at phone and desk width, in light and dark, with JavaScript and without:
//
//   - No request goes to another host, the console stays empty, and nothing violates the content
//     security policy.
//   - Names and reasons stay text.
//   - The keyboard reaches everything, and nothing needs more than 320 px.
//   - axe-core finds no violation of WCAG 2.2 AA.
//
// # Why
//
// One browser and one demonstration serve all tests, each test in a profile of its own
// ([chromedp.WithNewBrowserContext]), because starting a browser takes longer than loading a page.
// TestPages is a table of pages. It loads each page once, and each check is a function that reads
// the loaded page. The race detector cannot observe the program, which is another process, so it
// skips these tests.
//
// # Running
//
// The tests need Chromium, and axe-core's axe.min.js at the path in REGISTRY_AXE. .ci/nightly
// fetches both. Without them the tests are skipped; with CI=true they then fail.
//
//	REGISTRY_AXE=/tmp/axe.min.js go test -tags nightly ./cmd/registry/browser
package browser
