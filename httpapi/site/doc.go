// Package site writes the pages that people look at: Polish HTML, made by html/template from what
// the handlers of httpapi found in one view of the read model. It knows neither requests nor views:
// it is given rows and queries, and appends a page to a buffer.
//
// # Promises
//
//   - A page is one response of at most [MaxPage] bytes, whatever the reasons in it are. What does not
//     fit is never lost: it is on the page that is linked in its place.
//   - What comes from an event is text, but for reasons, whose HTML passes an allow-list here a second
//     time (the renderer of readmodel is the first).
//   - A page is a function of its question, of the content it shows and of the site's Version, so it
//     can carry an entity tag made of these. There is no clock in it.
//   - Nothing is loaded from elsewhere, nothing is stored at the reader's, and everything works
//     without JavaScript.
//
// # Why
//
// Templates and not a single-page application: one response is the whole page, on a slow phone too,
// and what a reader sees is what the API answered at the same sequence. The assets carry a hash of
// their content in their names and so are cached for ever.
//
// Start with [Site.Append], then list.go or check.go, then the template of the same name.
package site
