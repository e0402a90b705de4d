package site

import (
	"slices"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// CheckPage is the content of the person check. All its fields come from one view of the read model.
type CheckPage struct {
	Asked   string // as typed; empty for the empty form
	Verdict verdict.Verdict
	API     readmodel.CheckQuery  // the API's query for the same text; empty if the API refuses the text
	Found   readmodel.CheckResult // the API's answer to this query
	Entries [events.NumLists]int  // shown entries of each list, in the order of events.Lists
	Looked  time.Time             // the last moment at which the view was known to be complete, to the minute; zero if unknown
	AsOf    time.Time             // when stale data was last known to be complete; zero for current data
}

// searchForm is the form that checks a text.
type searchForm struct {
	Action string // the path to which the form leads
	Asked  string // the text in the field
}

// checkView is the data of check.html. The empty form has Counts alone, an answer has the other fields.
type checkView struct {
	Counts []option // how many entries each list shows, with links to the lists

	searchForm
	verdictView
	Looked   time.Time
	Total    string // how many entries were looked through
	Single   *entry // the only entry that decides the verdict; nil if there are more, or none
	Alone    string // an id that stands beside other text, to be checked alone; empty if there is none
	AskID    *askID // nil if the text settles who is meant
	Listed   []finding
	IsServer bool     // accused were found, and all of them are servers
	Warning  *warning // to copy into a chat; nil if the verdict is no warning
	Same     *same    // nil if the API refuses the text
	Words    string   // a name that is nobody's, for ranked search; empty if somebody was found
}

// askID is the form that asks for an id. Keep is the typed text if the form checks it together with the id, else empty.
type askID struct{ Keep string }

// finding is a part of the text, with its own answer.
type finding struct {
	ID    string // the part if it is an id, else empty
	Text  string // the part if it is no id
	Says  string
	Class string // of the style
	Rows  []*entry
}

// same has the entries that the API finds for the same text, in the API's order.
type same struct {
	Rows, Similar, Imitates []*entry
	More                    []option // lists with more matches
}

// trustedPreview is the title of a trusted person's page in chats, which are no place to vouch for anybody.
const trustedPreview = "Sprawdź to ID w rejestrze"

func (c CheckPage) page() page {
	if c.Asked == "" {
		return page{
			template: "check", Title: "Sprawdź, zanim zapłacisz", Path: "/", Canonical: "/", AsOf: c.AsOf,
			About: "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo.",
			Data:  checkView{Counts: countEntries(c.Entries)},
		}
	}

	view := newCheckView(&c)
	p := page{
		template: "check", Title: view.Title, SiteName: neutralName, Path: "/", AsOf: c.AsOf,
		About: "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta.", Data: view,
	}

	if c.Verdict.Value == verdict.Trusted {
		p.Preview = trustedPreview
	}
	return p
}

// countEntries returns how many entries each list shows, in words, with a link to the list.
func countEntries(n [events.NumLists]int) (counts []option) {
	for i, l := range events.Lists() {
		words := allListWords[l]
		counts = append(counts, option{Value: words.Path, Text: words.Noun.count(n[i])})
	}
	return counts
}

// newCheckView returns the data of an answer: the verdict, the entries that were found, and the next steps.
func newCheckView(c *CheckPage) checkView {
	total := 0
	for _, n := range c.Entries {
		total += n
	}

	v := &c.Verdict
	view := checkView{
		searchForm: searchForm{Action: "/", Asked: c.Asked}, verdictView: describeVerdict(v), Looked: c.Looked, Total: formatNumber(total),
		Alone: v.Alone, Listed: listFindings(v), IsServer: areServers(v), Warning: newWarning(v.Reason, v.Rows), Same: findSame(c),
	}
	if len(v.Rows) == 1 {
		view.Single = newEntry(v.Rows[0])
	}

	// Ask for an id if the text does not settle who is meant. ByID includes a report's number and an entry's address.
	isID := func(f verdict.Finding) bool { return f.Kind == verdict.ID }
	hasID := v.Reason == verdict.ByID || slices.ContainsFunc(v.Findings, isID)
	mayBeMistyped := v.Reason == verdict.OneDigitOff
	isNobodys := v.Value == verdict.Unchecked
	if !hasID || mayBeMistyped || v.Value == verdict.TrustedName {
		view.AskID = &askID{}
		// Keep somebody's name, so that it is checked together with the id. Any other text would blur the id's answer.
		if !isNobodys {
			view.AskID.Keep = c.Asked
		}
	}

	// If the text is nobody's name, offer ranked search, which refuses more than MaxSearch code points.
	if isNobodys && !hasID && !bounds.Longer(c.Asked, bounds.MaxSearch) {
		view.Words = c.Asked
	}
	return view
}

// areServers reports whether accused were found and all of them are servers.
func areServers(v *verdict.Verdict) bool {
	hasServer := false
	for _, f := range v.Findings {
		for _, r := range f.Rows {
			if r.List() == events.Scammers {
				return false
			}
			hasServer = hasServer || r.List() == events.Servers
		}
	}
	return hasServer
}

// maxFindings is how many parts of a text a page lists, each with at most readmodel.MaxGroup entries.
const maxFindings = 30

// listFindings returns the parts of the text with their entries, both the gravest first. It returns nil if the only entry is
// the one that decides, since the banner shows this entry.
func listFindings(v *verdict.Verdict) (all []finding) {
	isOnlyEntry := len(v.Rows) == 1 && len(v.Findings) == 1 && len(v.Findings[0].Rows) == 1
	if isOnlyEntry {
		return nil
	}

	found := slices.Clone(v.Findings)
	slices.SortStableFunc(found, func(a, b verdict.Finding) int { return gravestOf(a.Rows) - gravestOf(b.Rows) })
	for _, f := range found[:min(len(found), maxFindings)] {
		rows := slices.SortedStableFunc(slices.Values(f.Rows), func(a, b *readmodel.Row) int { return gravityOf(a) - gravityOf(b) })
		entries := newEntries(rows[:min(len(rows), readmodel.MaxGroup)])
		part := finding{Says: describeFinding(&f), Class: grades[gravestOf(f.Rows)].part, Rows: entries}
		if f.Kind == verdict.ID {
			part.ID = f.Text
		} else {
			part.Text = shownName(f.Text)
		}
		all = append(all, part)
	}
	return all
}

// findSame returns the entries that the API finds for the same text, so that the page never hides them.
func findSame(c *CheckPage) *same {
	if c.API == (readmodel.CheckQuery{}) {
		return nil
	}

	v := same{Imitates: newEntries(c.Found.Imitates)}
	for _, g := range c.Found.Groups {
		v.Rows = append(v.Rows, newEntries(g.Rows)...)
		// A full group may lack matches. The page of the list has them.
		if len(g.Rows) >= readmodel.MaxGroup {
			link := listLink(readmodel.ListQuery{List: g.List, ID: c.API.ID, Search: c.API.Search, Limit: bounds.DefaultLimit})
			v.More = append(v.More, option{Value: link, Text: allListWords[g.List].Title})
		}
	}

	for _, g := range c.Found.Similar {
		v.Similar = append(v.Similar, newEntries(g.Rows)...)
	}
	return &v
}

// warning is the text that a button copies for a chat, with a link to the current state. A warning has no person's name,
// since a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// newWarning returns the warning about rows, which were found by their id or by their name: reason says which. It returns nil
// if nobody is accused. It also returns nil if a name found several rows: a link to all of them would contain the name.
func newWarning(reason verdict.Reason, rows []*readmodel.Row) *warning {
	gravest := gravestOf(rows)
	isAccusation := gravest == confirmed || gravest == unconfirmed
	needsName := len(rows) > 1 && reason == verdict.ByName
	if !isAccusation || needsName {
		return nil
	}

	// The link leads to the page of the only entry. Of several entries, the link checks the id of the first.
	r := rows[0]
	w := warning{Text: describeListed(reason, rows) + ".", Link: EntryPath(r.List(), r.ID())}
	if len(rows) > 1 {
		w.Link = "/?id=" + r.ChatID()
	}
	hasDigitsOnly := strings.Trim(r.ChatID(), "0123456789") == ""
	if hasDigitsOnly {
		w.Text += " ID: " + r.ChatID() + "."
	}

	w.Text += " Porównaj ID, zanim zapłacisz:"
	return &w
}
