// Package site makes the pages that people see: Polish HTML, rendered by html/template from data that the handlers of
// httpapi found in one view of the read model. The package knows neither requests nor views: it gets rows and queries, and
// appends a page to a buffer.
//
//   - Data of events is shown as text, except for the HTML of reasons, which readmodel's renderer has made.
//   - A page's entity tag consists of its content's tag and the site's Version: apart from them, only the address decides how
//     the page looks.
//   - The answer to a name speaks of the name, and the answer to an id speaks of the account. No answer calls a person clean.
//   - Nothing is loaded from other hosts, nothing is stored in the visitor's browser, and everything works without
//     JavaScript.
//   - The verdict, the person's identity, the advice and the link to the appeal come before the reason, because a visitor is
//     in a hurry and on a phone. Lists and answers show the beginning of a reason as text, the entry's page the whole reason.
//
// Start with [Site.Append] in site.go, which also has the templates and the assets; then list.go and its template
// list.html. check.go, entry.go, search.go, status.go and failure.go have a page each. verdict.go has the words for a
// verdict, reason.go excerpts, polish.go numbers and dates, texts.go the operator's texts, appeals.go the addresses for
// appeals and reports, developers.go the pages for developers.
package site
