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
	API     readmodel.CheckQuery  // what the API is asked for the same text; empty if the API refuses the text
	Found   readmodel.CheckResult // what the API finds
	Entries [events.NumLists]int  // shown entries of each list, in the order of events.Lists
	Looked  time.Time             // the last moment at which the view was known to be complete, to the minute; zero if unknown
	AsOf    time.Time             // when stale data was last known to be complete; zero for current data
}

// checkView is the data of check.html.
type checkView struct {
	Form     string // action of the search form
	Asked    string
	Counts   []string // how many entries each list shows; only in the empty form
	Looked   time.Time
	Total    string // how many entries were looked through
	Verdict  verdictView
	Single   *entry // the only entry that decides the verdict; nil if there are more, or none
	Alone    string // an id in a caution, to be checked alone
	AskID    *askID // the field in the banner for an id, if any
	Listed   []finding
	Class    string   // of the advice
	IsServer bool     // the accused are servers
	Warning  *warning // to copy into a chat; nil if the verdict is no warning
	Report   bool     // the person may have to be reported
	Same     *same    // nil if the API refuses the text
	Words    string   // for ranked search, if nobody was found
}

// askID is the field for an id.
type askID struct {
	Keep     string // the typed text, to be checked together with the id; may be empty
	IsServer bool   // the id is a server's
}

// finding is a part of the text, with its own answer.
type finding struct {
	Text  string
	IsID  bool
	Says  string
	Class string // of its look
	Rows  []*entry
}

// same has the entries that the API finds, in its order.
type same struct {
	Rows, Similar, Imitates []*entry
	More                    []option // lists with more matches
}

// trustedPreview is the title of a trusted person's page in chats, which are no place to vouch for anybody.
const trustedPreview = "Sprawdź to ID w rejestrze"

func (c CheckPage) page() page {
	if c.Asked == "" {
		return page{
			template: "check", Title: "Sprawdź, zanim zapłacisz", Path: "/", Canonical: "/", AsOf: c.AsOf, HasSearch: true,
			About: "Wpisz nick, ID, wzmiankę albo link do profilu i sprawdź, czy ktoś zgłosił to konto lub serwer jako oszustwo.",
			Data:  checkView{Form: "/", Counts: countEntries(c.Entries)},
		}
	}

	view := newCheckView(&c)
	p := page{
		template: "check", Title: view.Verdict.Title, Path: "/", AsOf: c.AsOf, NamesPerson: true, HasSearch: true,
		About: "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta.", Data: view,
	}

	if c.Verdict.Value == verdict.Trusted {
		p.Preview = trustedPreview
	}
	return p
}

// countEntries returns how many entries each list shows, in words.
func countEntries(n [events.NumLists]int) (counts []string) {
	for i, l := range events.Lists() {
		counts = append(counts, wordsOf(l).Noun.count(n[i]))
	}
	return counts
}

// newCheckView returns the data of an answer: the verdict, who was found, and what the visitor can do next.
func newCheckView(p *CheckPage) checkView {
	total := 0
	for _, n := range p.Entries {
		total += n
	}

	banner := describeVerdict(&p.Verdict)
	v := checkView{
		Form: "/", Asked: p.Asked, Looked: p.Looked, Total: formatNumber(total),
		Verdict: banner, Class: banner.Class, Alone: p.Verdict.Alone, IsServer: areServers(&p.Verdict),
	}

	// Show who was found.
	if len(p.Verdict.Rows) == 1 {
		v.Single = newEntry(p.Verdict.Rows[0])
	}
	v.Listed = listFindings(&p.Verdict)
	v.Same = findSame(p)

	// Ask for an id if the text does not settle who is meant. A report's number or an entry's address may settle it, too.
	byID := p.Verdict.Reason == verdict.ByID
	isID := func(f verdict.Finding) bool { return f.Kind == verdict.ID }
	hasID := byID || slices.ContainsFunc(p.Verdict.Findings, isID)
	mayBeMistyped := p.Verdict.Reason == verdict.OneDigitOff
	isTrustedName := p.Verdict.Value == verdict.TrustedName
	if !hasID || mayBeMistyped || isTrustedName {
		v.AskID = &askID{IsServer: v.IsServer}
		// A text that is nobody's is not kept: checked together with the id, the text would hide the answer.
		if p.Verdict.Value != verdict.Unchecked {
			v.AskID.Keep = p.Asked
		}
	}

	v.Warning = newWarning(byID, p.Verdict.Rows)
	isNobodyFound := p.Verdict.Value == verdict.None || p.Verdict.Value == verdict.Unchecked
	v.Report = isNobodyFound

	// Ranked search refuses a text of more than MaxSearch code points.
	if isNobodyFound && !hasID && !bounds.Longer(p.Asked, bounds.MaxSearch) {
		v.Words = p.Asked
	}
	return v
}

// areServers reports whether all accused that were found are servers.
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

// listFindings returns the parts of the text with their entries, the most severe first. It returns nil if the only entry is
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
		one := finding{Text: f.Text, IsID: f.Kind == verdict.ID, Says: describeFinding(&f), Class: grades[gravestOf(f.Rows)].part, Rows: entries}
		if !one.IsID {
			one.Text = shownName(f.Text)
		}
		all = append(all, one)
	}

	return all
}

// findSame returns what the API finds for the same text, so that the page never hides it.
func findSame(p *CheckPage) *same {
	if p.API == (readmodel.CheckQuery{}) {
		return nil
	}

	v := same{Imitates: newEntries(p.Found.Imitates)}
	for _, g := range p.Found.Groups {
		v.Rows = append(v.Rows, newEntries(g.Rows)...)
		// A full group may lack matches, which the list has.
		if len(g.Rows) >= readmodel.MaxGroup {
			link := listLink(readmodel.ListQuery{List: g.List, ID: p.API.ID, Search: p.API.Search, Limit: bounds.DefaultLimit})
			v.More = append(v.More, option{Value: link, Text: wordsOf(g.List).Title})
		}
	}

	for _, g := range p.Found.Similar {
		v.Similar = append(v.Similar, newEntries(g.Rows)...)
	}
	return &v
}

// warning is what a button copies for a chat: a text, and a link to the current state. A warning has no person's name,
// since a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// newWarning returns the warning about rows. byID says that an id decided, and not a name. newWarning returns nil if nobody
// is accused. It also returns nil if several rows have one name, since every link to all of them would have the name, too.
func newWarning(byID bool, rows []*readmodel.Row) *warning {
	gravest := gravestOf(rows)
	isAccusation := gravest == confirmed || gravest == unconfirmed
	needsName := len(rows) > 1 && !byID
	if !isAccusation || needsName {
		return nil
	}

	// The link leads to the page of the only entry. Of several entries, the link checks the id of the first.
	r := rows[0]
	w := warning{Text: describeAccused(byID, rows) + ".", Link: EntryPath(r.List(), r.ID())}
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
