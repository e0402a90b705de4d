package site

import (
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// verdictView is the verdict in words. Package verdict has made the verdict.
type verdictView struct {
	Value  verdict.Value
	Class  string // of its look: scam, risk, legit, name or none
	Title  string
	Whose  string // the name of the trusted person whose id was typed, after Title
	Unread string // what was not looked up, said first
	Text   string
	Fakes  bool // the address for reporting impostors is shown
}

// looks returns the style class of a value.
func looks(v verdict.Value) string {
	switch v {
	case verdict.Accused:
		return "scam"
	case verdict.Risk, verdict.Caution:
		return "risk"
	case verdict.Trusted:
		return "legit"
	case verdict.TrustedName:
		return "name"
	default:
		return "none"
	}
}

// wording puts a verdict into words. main are the entries that it is about.
func wording(v *verdict.Verdict, p *paste.Paste, main []*readmodel.Row) verdictView {
	a := verdictView{Value: v.Value, Class: looks(v.Value)}
	switch v.Value {
	case verdict.Trusted:
		a.Title, a.Text = "To ID osoby zaufanej", gradeNamed("legit").Meaning
		a.Whose = whose(main)
	case verdict.Accused, verdict.Risk:
		a.Title, a.Text = listed(v, main)
	case verdict.TrustedName:
		a.Title = "Sprawdź ID: taką nazwę ma osoba zaufana"
		a.Text = "Nazwę może przyjąć każdy, także oszust. Tylko po ID poznasz, czy to konto tej osoby."
		if v.Reason == verdict.ByID {
			a.Title = "Sprawdź ID: to wpis osoby zaufanej"
			a.Text = "Link do wpisu i jego numer może wysłać każdy, także oszust. Skopiuj ID z profilu osoby, z którą rozmawiasz, i porównaj."
		}
	case verdict.Caution:
		a.Title, a.Text = careful(v, accusedNoun(v))
	case verdict.Unchecked:
		a.Title, a.Text, a.Fakes = unchecked(v, p)
	default:
		a.Title, a.Text = "Nie ma na żadnej liście", "Nikt o tej nazwie nie jest na liście. To nie znaczy, że można zaufać."
		if v.Reason == verdict.ByID {
			a.Text = "Nie mamy wpisu o tym ID. To nie znaczy, że można zaufać."
		}
		if len(v.Others)+len(v.Spellings) > 0 {
			a.Title = "Nie ma wpisu o dokładnie takiej nazwie"
		}
	}
	if v.Namesake {
		a.Text += " Uwaga: zgłoszono też kogoś o takiej samej albo podobnej nazwie, z innym ID. Zobacz niżej."
	}
	if v.Value != verdict.Unchecked && v.Value != verdict.Trusted {
		a.Unread = unread(v, p)
	}
	return a
}

// whose returns the names of the trusted persons who have an id.
func whose(main []*readmodel.Row) string {
	var names []string
	for _, r := range main {
		if name := r.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// unread says what was not looked up.
func unread(v *verdict.Verdict, p *paste.Paste) string {
	var parts []string
	for _, s := range v.Unchecked {
		parts = append(parts, "„"+p.Text[s.From:s.To]+"”")
	}
	if n := 3; len(parts) > n {
		parts = append(parts[:n], "…")
	}
	if v.Omitted {
		parts = append(parts, "reszty tekstu, bo jest za długi")
	}
	if len(parts) == 0 {
		return ""
	}
	return "Nie sprawdziliśmy: " + strings.Join(parts, ", ") + "."
}

// listed returns the words for a listed person.
func listed(v *verdict.Verdict, main []*readmodel.Row) (title, text string) {
	g, byID := gradeNamed(looks(v.Value)), v.Reason == verdict.ByID
	same := slices.DeleteFunc(slices.Clone(main), func(r *readmodel.Row) bool { return gradeOf(r) != g })
	title = g.titleOf(same, namesOf(v), byID)
	if ids, deciding := idsOf(v); byID && ids > 1 {
		title = g.titleOfIDs(ids, deciding)
	}
	switch {
	case len(main) == 1:
		text = gradeOf(main[0]).Meaning
	case len(main) >= readmodel.MaxGroup:
		text = "Znaleziono co najmniej " + entries().count(len(main)) + ", wśród nich " + tally(main) + "."
	default:
		text = "Znaleziono " + entries().count(len(main)) + ": " + tally(main) + "."
	}
	switch {
	case byID:
	case len(main) == 1:
		text += " Porównaj ID: tę samą nazwę może mieć ktoś inny."
	default:
		text += " Tę samą nazwę może mieć ktoś inny, a oszuści kopiują cudze nazwy. Porównaj ID konta."
	}
	return title, text
}

// idsOf counts the typed ids, and the deciding ones.
func idsOf(v *verdict.Verdict) (typed, deciding int) {
	seen := map[*readmodel.Row]bool{}
	for _, f := range v.Findings {
		if !f.IsID() || len(f.Hits) > 0 && seen[f.Hits[0].Row] { // one report, said twice
			continue
		}
		for _, h := range f.Hits {
			seen[h.Row] = true
		}
		if typed++; f.Value == v.Value {
			deciding++
		}
	}
	return typed, deciding
}

// titleOfIDs returns the heading for several typed ids.
func (g grade) titleOfIDs(typed, deciding int) string {
	on := " na " + g.on
	switch {
	case deciding == typed:
		return g.call + "Podane ID są" + on
	case deciding == 1:
		return g.call + "Jedno z podanych ID jest" + on
	}
	return g.call + "Niektóre z podanych ID są" + on
}

// namesOf returns the names that decide a verdict, if more was typed than one name.
func namesOf(v *verdict.Verdict) (names []string) {
	for _, f := range v.Findings {
		if !f.IsID() && f.Value == v.Value && f.Reason == v.Reason {
			names = append(names, "„"+f.Name+"”")
		}
	}
	if len(v.Findings) < 2 {
		return nil
	}
	return names
}

// titleOf returns the heading. same are the entries of this grade, the most severe; names are the
// names to show, if any.
func (g grade) titleOf(same []*readmodel.Row, names []string, byID bool) string {
	noun := nounOf(same)
	if byID {
		return g.onList(noun == servers())
	}
	whose := "o tej nazwie"
	switch len(names) {
	case 0:
	case 1:
		whose = "o nazwie " + names[0]
	default:
		whose = "o nazwach " + strings.Join(names[:min(len(names), 3)], ", ")
		if len(names) > 3 {
			whose += " i innych"
		}
	}
	verb := forms{"jest", "są", "jest"}.forCount(len(same))
	count := noun.forCount(len(same))
	if len(same) > 1 {
		count = noun.count(len(same))
	}
	return g.call + "Na " + g.on + " " + verb + " " + count + " " + whose
}

// onList says that the account or server of an id is on a list.
func (g grade) onList(server bool) string {
	this := "To konto"
	if server {
		this = "Ten serwer"
	}
	return g.call + this + " jest na " + g.on
}

// careful explains conflicting results.
func careful(v *verdict.Verdict, noun forms) (title, text string) {
	switch v.Reason {
	case verdict.OtherName:
		return "Ostrożnie! ID i nazwa należą do różnych osób",
			"Podane ID jest na liście zaufanych, ale nazwa należy do kogoś innego, kto też jest w rejestrze. Ustal, z którym kontem rozmawiasz."
	case verdict.OtherAccount:
		other := "inne konto"
		if noun == servers() {
			other = "inny serwer"
		}
		return "Ostrożnie! Na liście jest " + other + " o tej nazwie",
			"Tego ID nie ma na żadnej liście. Jest za to " + other + " o tej samej albo podobnej nazwie. Może to być ktoś inny albo nowe konto tych samych osób."
	case verdict.NotTheirs:
		return "Ostrożnie! Tego ID nie ma na liście zaufanych",
			"Tego ID nie ma na żadnej liście, a osoba zaufana o tej nazwie ma inne ID. Ktoś może się pod nią podszywać."
	case verdict.OtherID:
		return "Ostrożnie! Nie wszystkie podane ID należą do osób zaufanych",
			"Część podanych ID jest na liście zaufanych, a pozostałych nie ma na żadnej. Sprawdź osobno konto, z którym rozmawiasz."
	case verdict.SeveralIDs:
		return "Ostrożnie! Sprawdź każde ID osobno",
			"Te ID są na liście zaufanych, ale należą do różnych osób. Sprawdź samo ID konta, z którym rozmawiasz."
	case verdict.MaybeID:
		return "Ostrożnie! Nie wiadomo, czy to ID tej osoby",
			"Cyfry z tego tekstu są w rejestrze, ale obok są inne znaki albo inny adres. Skopiuj z profilu samo ID i sprawdź je jeszcze raz."
	case verdict.Shared:
		return "Ostrożnie! Tę nazwę mają i osoby zgłoszone, i zaufane",
			"Pod tą nazwą mamy: " + tallyHits(v) + ". Z kim rozmawiasz, rozstrzyga dopiero ID."
	case verdict.LikeAccused:
		return "Ostrożnie! Ta nazwa przypomina nazwę z listy",
			"To nie jest dokładnie ta nazwa: niżej widać, czym się różnią. Może to być ta sama osoba albo ktoś inny, więc porównaj ID."
	case verdict.LikeTrusted:
		return "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej",
			"To nie jest dokładnie ta nazwa. Ktoś może podszywać się pod osobę zaufaną: porównaj nazwy litera po literze, a najlepiej porównaj ID."
	case verdict.InSentence:
		return inSentence(v)
	case verdict.Inflected:
		return "Ostrożnie! Na liście jest podobnie zapisana nazwa",
			"Te same słowa, w innej formie albo kolejności, są nazwą z rejestru. Może to być ktoś inny, więc porównaj ID."
	case verdict.Beside:
		return "Ostrożnie! Sprawdziliśmy tylko ID",
			"To ID jest na liście zaufanych, ale obok jest coś jeszcze. Ten tekst mógł napisać ktoś inny. Skopiuj ID z profilu osoby, z którą rozmawiasz, i sprawdź samo ID."
	default: // verdict.TooMany
		return "Ostrożnie! Sprawdziliśmy tylko część tego tekstu", "Sprawdź pozostałe nazwy i ID osobno."
	}
}

// inSentence says whose name is in a sentence, the most severe first.
func inSentence(v *verdict.Verdict) (title, text string) {
	text = "Jeśli o tę nazwę chodzi, sprawdź ją samą, a najlepiej sprawdź ID. Tę samą nazwę może mieć ktoś inny."
	name, gravest := "", (*readmodel.Row)(nil)
	for _, f := range v.Findings {
		if f.IsID() {
			continue
		}
		for _, h := range f.Hits {
			if gravest == nil || graver(h.Row, gravest) < 0 {
				name, gravest = f.Name, h.Row
			}
		}
	}
	if gravest == nil {
		return "Ostrożnie! Jest tu nazwa, którą mamy w rejestrze", text
	}
	return "Ostrożnie! „" + name + "” to nazwa z " + gradeOf(gravest).from, text
}

// accusedNoun returns the noun for the accused of a verdict.
func accusedNoun(v *verdict.Verdict) forms {
	var found []*readmodel.Row
	for _, f := range v.Findings {
		for _, h := range f.Hits {
			if !h.Row.List().Trusted() {
				found = append(found, h.Row)
			}
		}
	}
	return nounOf(found)
}

// tallyHits counts the entries that have a shared name.
func tallyHits(v *verdict.Verdict) string {
	var found []*readmodel.Row
	for _, f := range v.Findings {
		if f.Reason != verdict.Shared {
			continue
		}
		for _, h := range f.Hits {
			found = append(found, h.Row)
		}
	}
	return tally(found)
}

// unchecked says what was pasted, and what to paste instead.
func unchecked(v *verdict.Verdict, p *paste.Paste) (title, text string, fakes bool) {
	const instead = " Wklej sam nick, samą nazwę serwera albo samo ID."
	const nothing = "Nie znaleźliśmy tu nikogo z rejestru, ale nie sprawdziliśmy wszystkiego. To nie znaczy, że można zaufać."
	switch v.Reason {
	case verdict.TooMany:
		return "Sprawdziliśmy tylko część tego tekstu", nothing + instead, false
	case verdict.OneDigitOff:
		return "Czy na pewno to ID?", "Tego ID nie ma na żadnej liście, ale jest prawie takie samo jak jedno z rejestru: różni się jedną cyfrą. Skopiuj ID jeszcze raz z profilu.", false
	case verdict.NotNow:
		return "Nie udało się teraz sprawdzić nazwy", "Spróbuj za chwilę albo sprawdź ID.", false
	case verdict.NotLiteral:
		if p.HasID {
			return "Nie sprawdziliśmy całego tekstu", nothing + " Wklej samo ID, a potem sam nick.", false
		}
		return "Nie wiemy, o kogo chodzi", nothing + instead, false
	}
	switch p.Kind() {
	case paste.Invitation:
		return "Z zaproszenia nie da się odczytać serwera",
			"Zaproszenie nie mówi, do którego serwera prowadzi. Wklej nazwę serwera albo jego ID.", false
	case paste.Message:
		return "To link do wiadomości", "Link nie mówi, kto ją napisał. Naciśnij nick autora, potem trzy kropki i „Kopiuj ID użytkownika”, i wklej to ID.", false
	case paste.Place:
		return "Ten link nie wskazuje osoby ani serwera", "To odnośnik do roli, kanału, polecenia albo rozmowy." + instead, false
	case paste.Time:
		return "Nie wiemy, o kogo chodzi", "To data albo godzina." + instead, false
	case paste.Profile:
		return "Tego rejestr nie sprawdza", "To profil na innej platformie, a na listach są konta i serwery na czacie." + instead, false
	case paste.Short:
		return "To za mało cyfr na ID", "ID ma od 17 do 20 cyfr. Skopiuj je jeszcze raz z profilu." + instead, false
	case paste.Number:
		return "To za długi numer na ID", "ID ma od 17 do 20 cyfr. Skopiuj je jeszcze raz z profilu." + instead, false
	case paste.Telephone:
		return "To numer telefonu", "Telefonów rejestr nie sprawdza." + instead, true
	case paste.Card:
		return "To numer karty", "Kart rejestr nie sprawdza. Nikomu nie podawaj numeru karty." + instead, true
	case paste.Account:
		return "To numer rachunku", "Rachunków rejestr nie sprawdza." + instead, true
	case paste.Mail:
		return "To adres e-mail", "E-maili rejestr nie sprawdza." + instead, true
	}
	return "To adres strony", "Stron rejestr nie sprawdza." + instead, true
}

func accounts() forms { return forms{"konto", "konta", "kont"} }
func servers() forms  { return forms{"serwer", "serwery", "serwerów"} }

// nounOf returns the noun for entries.
func nounOf(found []*readmodel.Row) forms {
	n := 0
	for _, r := range found {
		if r.List() == events.Servers {
			n++
		}
	}
	switch n {
	case 0:
		return accounts()
	case len(found):
		return servers()
	}
	return entries()
}

// tally counts the entries of each grade, in words.
func tally(found []*readmodel.Row) string {
	n := map[int]int{}
	for _, r := range found {
		n[gravity(r)]++
	}
	var said []string
	for i, g := range grades() {
		if n[i] > 0 {
			said = append(said, g.noun.count(n[i]))
		}
	}
	if last := len(said) - 1; last > 0 {
		return strings.Join(said[:last], ", ") + " i " + said[last]
	}
	return strings.Join(said, "")
}

// checked is one part of the text, and its own result.
type checked struct {
	ID, Name string // exactly one is set; Name for parts that were not looked up
	Says     string
	Class    string // of its look
	Value    verdict.Value
}

// checkedOf lists the parts that were found, the ids that were not, and what was not looked up, the most
// severe first.
func checkedOf(v *verdict.Verdict, p *paste.Paste) (all []checked) {
	for _, f := range v.Findings {
		value := f.Value
		if value == verdict.Trusted { // only the banner vouches
			value = verdict.TrustedName
		}
		all = append(all, checked{ID: f.ID, Name: f.Number + f.Name, Says: shortly(&f), Class: looks(value), Value: value})
	}
	unlooked := checked{Class: "none", Value: verdict.Unchecked}
	for _, s := range v.Unchecked {
		unlooked.Name, unlooked.Says = p.Text[s.From:s.To], unlookedAs(s.Kind)
		all = append(all, unlooked)
	}
	if v.Omitted {
		unlooked.Name, unlooked.Says = "", "Tekst jest dłuższy, niż sprawdzamy naraz: reszty nie sprawdziliśmy."
		all = append(all, unlooked)
	}
	slices.SortStableFunc(all, func(a, b checked) int { return a.Value.Gravity() - b.Value.Gravity() })
	all = slices.CompactFunc(all, func(a, b checked) bool { return a.ID == b.ID && a.Name == b.Name })
	return all[:min(len(all), maxChecked)]
}

// maxChecked is how many parts of a text a page lists.
const maxChecked = 30

// unlookedAs says why a part was not looked up.
func unlookedAs(kind paste.Kind) string {
	switch kind {
	case paste.Short:
		return "to za mało cyfr na ID"
	case paste.Time:
		return "to data albo godzina"
	case paste.Message:
		return "link do wiadomości nie mówi, kto ją napisał"
	case paste.Profile:
		return "profilu na innej platformie nie sprawdzamy"
	case paste.Web:
		return "adresu strony nie sprawdzamy"
	case paste.Mail:
		return "e-maila nie sprawdzamy"
	case paste.Telephone:
		return "numeru telefonu nie sprawdzamy"
	case paste.Card:
		return "numeru karty nie sprawdzamy"
	case paste.Account:
		return "numeru rachunku nie sprawdzamy"
	case paste.Place:
		return "roli, kanału ani polecenia nie sprawdzamy"
	case paste.Invitation:
		return "zaproszenie nie mówi, do którego serwera prowadzi"
	}
	return "to za długi numer na ID"
}

// shortly returns the result for one name or id alone.
func shortly(f *verdict.Finding) string {
	switch {
	case f.Value == verdict.Accused:
		return "na liście oszustów"
	case f.Value == verdict.Risk:
		return "na liście ryzyka"
	case f.Value == verdict.Trusted, f.Value == verdict.TrustedName && f.Reason == verdict.ByID && f.ID != "":
		return "na liście zaufanych"
	case f.Value == verdict.TrustedName && f.ID != "":
		return "może ID osoby zaufanej"
	case f.Value == verdict.TrustedName && f.Number != "":
		return "wpis osoby zaufanej, nie jej ID"
	case f.Value == verdict.TrustedName:
		return "nazwa osoby zaufanej"
	case f.Reason == verdict.Shared:
		return "nazwa osób zgłoszonych i zaufanych"
	case f.Reason == verdict.LikeAccused:
		return "przypomina nazwę z listy"
	case f.Reason == verdict.LikeTrusted:
		return "przypomina nazwę osoby zaufanej"
	case f.Reason == verdict.InSentence && !slices.ContainsFunc(f.Hits, func(h verdict.Hit) bool { return h.Same }), f.Reason == verdict.Inflected:
		return "podobna nazwa jest " + inLists(f)
	case f.Reason == verdict.InSentence:
		return "jest taka nazwa " + inLists(f)
	case f.Reason == verdict.MaybeID && f.Number != "":
		return "taki numer ma wpis " + inLists(f)
	case f.Reason == verdict.MaybeID:
		return "takie cyfry ma ID " + inLists(f)
	}
	return "nie ma na żadnej liście"
}

// inLists says on which lists the name is, the most severe first.
func inLists(f *verdict.Finding) string {
	if len(f.Hits) == 0 {
		return "w rejestrze"
	}
	gravest := slices.MinFunc(f.Hits, func(a, b verdict.Hit) int { return graver(a.Row, b.Row) })
	return "na " + gradeOf(gravest.Row).on
}
