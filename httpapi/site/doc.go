// Package site makes the pages that people see: Polish HTML, rendered by html/template from data that the handlers of
// httpapi found in one view of the read model. It knows neither requests nor views: it gets rows and queries, and appends
// a page to a buffer. Start with [Site.Append], then list.go and the template of the same name.
//
//   - Data of events is text, except for reasons, whose HTML is what readmodel's renderer allows.
//   - A page is a function of its query, of its content and of the site's Version, so its entity tag is made of these.
//   - An answer to a check says about a name only what is known of the name, and about an id what is known of the account.
//     It never calls a person clean.
//   - Nothing is loaded from other hosts, nothing is stored in the visitor's browser, and everything works without
//     JavaScript.
//   - The verdict, the person's identity, the advice and the appeal come before the reason: a visitor who reads this is in
//     a hurry and on a phone. Lists and answers show the beginning of a reason as text, and the entry's page all of it.
//
// site.go has the templates, the frame and the assets; list.go, check.go, search.go, status.go and failure.go a page each;
// entry.go an entry among others and alone; verdict.go the words for a verdict; texts.go the operator's texts; appeals.go
// the addresses for appeals and reports; reason.go excerpts; polish.go Polish numbers and dates; developers.go the pages
// for developers.
package site
