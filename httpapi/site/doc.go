// Package site makes the pages that people see: Polish HTML, rendered by html/template from data
// that the handlers of httpapi found in one view of the read model. It knows neither requests nor
// views: it gets rows and queries, and appends a page to a buffer.
//
// # Promises
//
//   - A page is one response of at most [MaxPage] bytes, but for what a check finds. If something does not fit, the
//     page links to it. The page of an entry may be larger: it shows the whole reason, whose HTML readmodel bounds
//     (reason.MaxHTML).
//   - Data of events is text, except for reasons, whose HTML is what readmodel's renderer allows.
//   - A page is a function of its query, of its content and of the site's Version; so its entity tag
//     is made of these. It contains no clock.
//   - An answer to a check says about a name only what is known of the name, and about an id what is
//     known of the account. It never calls a person clean.
//   - Nothing is loaded from other hosts, nothing is stored in the visitor's browser, and everything
//     works without JavaScript.
//
// The rules are in httpapi/CONTRACT.md#site.
//
// # Why
//
// The site uses templates instead of a single-page application: one response is the whole page, on
// a slow phone too, and it shows the API's response at the same sequence. Assets have a hash of
// their content in their names, so caches keep them forever.
//
// The verdict, the person's identity, the advice and the appeal come before the reason: a visitor
// who reads this is in a hurry and on a phone.
//
// Lists show the beginning of a reason as plain text in three lines. A page of 60 whole reasons of
// 20,000 bytes of Markdown would be megabytes, and a link in a hidden part would still get the
// focus. Answers with several entries do the same. The whole reason is on the entry's page, in one
// response, since a page that omitted part of it would hide an accusation.
//
// # The parts
//
// site.go has the templates, the frame and the assets; list.go, check.go, entrypage.go, status.go,
// about.go and failure.go are a page each (httpapi makes those for developers); verdict.go puts the
// result of a check into words, advice.go has the advice; entry.go renders one entry among others;
// share.go has the preview of links in chats; appeals.go has the address for
// appeals; reason.go shows a reason, or makes an excerpt of it; polish.go has Polish numbers
// and dates. Start with [Site.Append], then list.go and the template of the same name.
package site
