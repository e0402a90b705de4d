// Package site writes the pages that people look at: Polish HTML, made by html/template from what
// the handlers of httpapi found in one view of the read model. It knows neither requests nor views:
// it gets rows and queries, and appends a page to a buffer.
//
// # Promises
//
//   - A page is one response of at most [MaxPage] bytes. What does not fit is not lost: the page
//     links to it. The page of an entry may be larger: it shows the whole reason, whose HTML
//     readmodel bounds (MaxReasonHTML). So is /api: visitors decide nothing by it.
//   - What comes from an event is text, except for reasons. Their HTML passes an allow-list here
//     for a second time; the first is the renderer of readmodel.
//   - A page is a function of its query, of the content it shows, of the site's Version and, where
//     it has a chart, of the month that it is; so its entity tag is made of these. It contains no
//     clock.
//   - An answer to a check says of a name what it found of the name, and of an id what it found of
//     the account. It never calls somebody clean.
//   - Nothing is loaded from elsewhere, nothing is stored in the reader's browser, and everything
//     works without JavaScript.
//
// The rules are in httpapi/CONTRACT.md#site.
//
// # Why
//
// Templates rather than a single-page application: one response is the whole page, on a slow phone
// too, and it shows what the API answered at the same sequence. Assets have a hash of their content
// in their names, so caches keep them forever.
//
// The verdict, whose it is, what to do and where to appeal come before the reason: a visitor who
// reads this is in a hurry and on a phone. With the form and the facts first, the verdict began at
// half the screen.
//
// Lists show the beginning of a reason as plain text in three lines: a page of 60 whole reasons of
// 20,000 bytes of Markdown would be megabytes, and a link that is cut out of sight would still get
// the focus. So do answers that show several entries. The whole is on the entry's page, in one
// response, since a page that left some of it out would hide what somebody is accused of.
//
// # The parts
//
// site.go has the templates, the frame and the assets; list.go, check.go, entrypage.go, status.go,
// about.go and failure.go are a page each (httpapi makes those for developers); verdict.go says what a check found, advice.go what to do
// about it, differ.go by which letters two names differ; entry.go renders one entry among others;
// chart.go draws the reports a month; share.go says what chats show of a link, and the warning to
// copy; appeals.go knows where to appeal; reason.go makes a reason
// harmless, or an excerpt of it; polish.go has Polish numbers and dates. Start with [Site.Append], then list.go and the template of the same name.
package site
