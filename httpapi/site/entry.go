package site

import (
	"html/template"
	"net/url"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
	"example.org/registry/readmodel/reason"
)

// entry is an entry for the templates.
type entry struct {
	readmodel.PublicEntry
	grade
	Name     string // as pages show it; the name in PublicEntry may have invisible characters
	List     events.List
	Reported time.Time
}

func newEntry(r *readmodel.Row) *entry {
	return &entry{PublicEntry: r.Public(), grade: grades[gravityOf(r)], Name: shownName(r.Name()), List: r.List(), Reported: r.Reported()}
}

func newEntries(rows []*readmodel.Row) (all []*entry) {
	for _, r := range rows {
		all = append(all, newEntry(r))
	}
	return all
}

// shownName returns a name as pages show it.
func shownName(name string) string {
	if !reason.IsVisible(name) {
		return "(nazwa bez widocznych znaków)"
	}
	return reason.Plain(name)
}

// grade has the style and the words of an entry by its list and verification: an unverified report must not look like a
// verified one.
type grade struct {
	Class    string // of the style
	Status   string // in a few words
	standing string // in the title of a page
	Meaning  string // in a sentence
	onList   string // the list, after "na"
	fromList string // the list, or the registry, after "z"
	call     string // the warning that begins an answer; empty for trusted
	part     string // the style of a finding; a trusted entry has the style of a mere name, since only the banner vouches

	DateLabel   string // of the entry's date
	NumberLabel string // of the report's number
}

// The gravity of an entry is the index of its grade in grades: the graver the entry, the lower the index.
const (
	confirmed = iota
	unconfirmed
	trusted
	ungraded // no entry
)

var grades = [...]grade{
	confirmed: {
		Class: "scam", Status: "Potwierdzone", standing: "zgłoszenie potwierdzone",
		Meaning: "Moderacja potwierdziła to zgłoszenie.",
		onList:  "liście oszustów", fromList: "listy oszustów", call: "Uwaga! ", part: "scam",
		DateLabel: "Zgłoszono", NumberLabel: "Nr zgłoszenia",
	},
	unconfirmed: {
		Class: "risk", Status: "Niesprawdzone", standing: "zgłoszenie niesprawdzone",
		Meaning: "Jest zgłoszenie, ale moderacja jeszcze go nie sprawdziła.",
		onList:  "liście ryzyka", fromList: "listy ryzyka", call: "Ostrożnie! ", part: "risk",
		DateLabel: "Zgłoszono", NumberLabel: "Nr zgłoszenia",
	},
	trusted: {
		Class: "legit", Status: "Zaufana osoba", standing: "osoba zaufana",
		Meaning: "Moderacja nie miała zastrzeżeń do tego konta w dniu wpisu. Sama transakcja nadal jest na Twoje ryzyko.",
		onList:  "liście zaufanych", fromList: "listy zaufanych", part: "name",
		DateLabel: "Na liście od", NumberLabel: "Nr wpisu",
	},
	ungraded: {fromList: "rejestru", part: "none"},
}

func gravityOf(r *readmodel.Row) int {
	if r.List().Trusted() {
		return trusted
	}
	if r.Verified() {
		return confirmed
	}
	return unconfirmed
}

// gravestOf returns the gravity of the gravest entry, or ungraded if there are no entries.
func gravestOf(rows []*readmodel.Row) int {
	gravest := ungraded
	for _, r := range rows {
		gravest = min(gravest, gravityOf(r))
	}
	return gravest
}

// EntryPath returns the address of an entry's page.
func EntryPath(l events.List, entryID string) string {
	return "/wpis/" + string(l) + "/" + url.PathEscape(entryID)
}

// Path returns the address of the entry's page.
func (e *entry) Path() string { return EntryPath(e.List, e.ID) }

// IsAccused reports whether the entry is an accusation.
func (e *entry) IsAccused() bool { return !e.List.Trusted() }

// IsServer reports whether the entry is a server.
func (e *entry) IsServer() bool { return e.List == events.Servers }

// IsDisguised reports whether the published name has invisible characters.
func (e *entry) IsDisguised() bool { return lookalike.Hidden(e.PublicEntry.Name) }

// ReasonGist returns an accusation in one line: the first bold words of the reason, or else its beginning. It returns "" for a
// trusted person.
func (e *entry) ReasonGist() string {
	if !e.IsAccused() {
		return ""
	}
	return makeGist(e.DescHTML)
}

// ReasonExcerpt returns the beginning of the reason as text.
func (e *entry) ReasonExcerpt() string { return makeExcerpt(e.DescHTML) }

// ReasonHTML returns the whole reason.
func (e *entry) ReasonHTML() template.HTML { return withoutHeadings(e.DescHTML) }

// AvatarPath returns the address of the picture, or "" if the chat id cannot have one.
func (e *entry) AvatarPath() string {
	if !events.IsID(e.ChatID) {
		return ""
	}
	return "/api/chat/avatar/" + e.ChatID + "?size=128"
}

// EntryPage is the content of the page of one entry.
type EntryPage struct {
	Row  *readmodel.Row
	AsOf time.Time // when stale data was last known to be complete; zero for current data
}

// entryView is the data of entry.html.
type entryView struct {
	*entry
	searchForm
	Words   listWords
	Title   string // as in the verdict of its id
	Warning *warning
}

func (c EntryPage) page() page {
	e := newEntry(c.Row)
	rows := []*readmodel.Row{c.Row}
	view := entryView{
		entry: e, searchForm: searchForm{Action: "/"}, Words: allListWords[e.List],
		Title: describeListed(verdict.ByID, rows), Warning: newWarning(verdict.ByID, rows),
	}
	p := page{
		template: "entry", Title: e.Name + " – " + e.standing, SiteName: neutralName, Canonical: e.Path(), AsOf: c.AsOf,
		Preview: view.Title, About: "Otwórz i porównaj całe ID: link niczego nie dowodzi.", Data: view,
	}

	if !e.IsAccused() {
		p.Preview = trustedPreview
	}
	return p
}
