// Package browser holds tests only. They check the site as visitors see it: the built program, with
// the demonstration and with hostile entries, in Debian's Chromium.
//
// # Promises
//
// Each page keeps these promises at phone and desktop width, in light and dark, with JavaScript and without:
//
//   - No request goes to another host, the console stays empty, and nothing violates the content
//     security policy.
//   - Names and reasons stay text.
//   - The keyboard reaches everything, and nothing needs more than 320 px.
//   - axe-core finds no violation of WCAG 2.2 AA.
//
// # Why
//
// All tests share one browser and one demonstration, because starting a browser takes longer than loading
// a page. Each test has a profile of its own ([chromedp.WithNewBrowserContext]). TestPages is a table of
// pages: it loads each page once, and each check is a function that reads the loaded page. Builds with
// the race detector lack these tests, since it cannot observe the program, which is another process.
//
// # Running
//
// The tests need Chromium, and axe-core's axe.min.js at the path in REGISTRY_AXE. .ci/nightly
// fetches both. If one is missing, the tests are skipped or, with CI=true, fail.
//
//	REGISTRY_AXE=/tmp/axe.min.js go test -tags nightly ./cmd/registry/browser
package browser
