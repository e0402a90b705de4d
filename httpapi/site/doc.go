// Package site makes the pages that people see: Polish HTML, rendered by html/template from data that the handlers of
// httpapi found in one view of the read model. It knows neither requests nor views: it gets rows and queries, and appends
// a page to a buffer.
//
//   - Data of events is text, except for the HTML of reasons, which readmodel's renderer has made.
//   - A page is a function of its query, of its content and of the site's Version, so its entity tag names these three.
//   - An answer about a name is about the name, an answer about an id is about the account. None calls a person clean.
//   - Nothing is loaded from other hosts, nothing is stored in the visitor's browser, and everything works without
//     JavaScript.
//   - The verdict, the person's identity, the advice and the appeal come before the reason: a visitor who reads this is in
//     a hurry and on a phone. Lists and answers show the beginning of a reason as text, and the entry's page all of it.
//
// Start with [Site.Append] in site.go, which also has the templates and the assets; then list.go and its template
// list.html. check.go, entry.go, search.go, status.go and failure.go have a page each. verdict.go has the words for a
// verdict, reason.go excerpts, polish.go numbers and dates, texts.go the operator's texts, appeals.go the addresses for
// appeals and reports, developers.go the pages for developers.
package site
