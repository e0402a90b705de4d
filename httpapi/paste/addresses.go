package paste

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"example.org/registry/events"
)

// readMentions reads mentions and emoji, and texts in the form of a mention that name no person. It
// only excludes the platform's own numbers from further reading.
func (x *reading) readMentions() {
	for _, m := range x.rd.mention.FindAllStringSubmatchIndex(x.text, -1) {
		x.understood(Span{m[0], m[1]}, Plain)
		x.seekID(Sought{ID: x.text[m[2]:m[3]], Spans: []Span{{m[0], m[1]}}})
	}
	for _, m := range x.rd.place.FindAllStringSubmatchIndex(x.text, -1) {
		x.claim(Span{m[0], m[1]}, Unchecked, Place)
		for i := 2; i < len(m); i += 2 {
			number := Span{m[i], m[i+1]}
			x.bars, x.masks = append(x.bars, number), append(x.masks, number)
		}
	}
	for _, m := range x.rd.marker.FindAllStringIndex(x.text, -1) { // no number in one is known to be a person's
		x.claim(Span{m[0], m[1]}, Unchecked, Place)
		x.loose = append(x.loose, Span{m[0], m[1]})
	}
	for _, m := range x.rd.emoji.FindAllStringSubmatchIndex(x.p.Text, -1) {
		if at := slices.Index(x.at, m[0]); at >= 0 {
			for _, s := range []string{x.p.Text[m[2]:m[3]], x.p.Text[m[4]:m[5]]} {
				mark := []Span{{at, at + len(emojiMark)}}
				x.add(Sought{Names: []string{s}, How: Maybe, Spans: mark})
				if isRun(s) {
					x.seekID(Sought{ID: s, Short: true, How: Maybe, Spans: mark})
				}
			}
		}
	}
}

// readAddresses reads mail and web addresses. An address ends at white space, brackets, quotes and
// separators of names.
func (x *reading) readAddresses() {
	ends := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|()[]{}<>\"„”“«»", r) }
	at := 0
	for word := range strings.FieldsFuncSeq(x.text, ends) {
		at += strings.Index(x.text[at:], word)
		bare := strings.TrimLeft(word, "/*`'’")
		if strings.HasPrefix(word, "/wpis/") {
			bare = word
		}
		from := at + len(word) - len(bare)
		if bare = strings.TrimRight(bare, ".:!?#/*`'’-_~+=&@\\…"); bare != "" {
			x.readAddress(Span{from, from + len(bare)}, bare)
		}
		at += len(word)
	}
}

// readAddress reads a word that may be an address. It does not interpret the query or the fragment
// of a known address.
func (x *reading) readAddress(span Span, word string) {
	foreign := func(span Span, kind Kind) {
		x.claim(span, Unchecked, kind)
		x.loose = append(x.loose, span)
	}
	if m := x.rd.mail.FindStringSubmatch(word); m != nil && isDomain(m[1]) {
		foreign(span, Mail)
		return
	}
	a := x.rd.address.FindStringSubmatch(word)
	scheme, host, path, tail := strings.ToLower(a[1]), a[2], a[3], a[4]
	known := Span{span.From, span.To - len(tail)}
	ours := scheme == "" || scheme == "http" || scheme == "https" || scheme == "discord"
	platform := ours && x.rd.platform.MatchString(host)
	name, _, _ := strings.Cut(host, ":")
	switch user, server, entry := x.rd.user.FindStringSubmatch(path), x.rd.server.FindStringSubmatch(path), x.rd.entry.FindStringSubmatch(path); {
	case entry != nil && ours && x.rd.isOwn(host): // no person's, unless the entry exists
		x.claim(known, Unchecked, Web)
		x.bars, x.masks = append(x.bars, known), append(x.masks, known)
		x.add(Sought{Number: entry[2], List: events.List(entry[1]), Spans: []Span{known}})
	case platform && user != nil:
		x.understood(known, Plain)
		x.seekID(Sought{ID: user[1], Spans: []Span{known}})
	case platform && server != nil:
		x.understood(known, Place)
		x.add(Sought{ID: server[1], Server: true, Spans: []Span{known}})
	case platform && x.rd.talk.MatchString(path):
		x.claim(known, Unchecked, Place)
		x.bars = append(x.bars, known)
	case x.rd.inviting.MatchString(host) && path != "", platform && strings.HasPrefix(path, "/invite/"):
		foreign(span, Invitation)
		return
	case x.rd.steam.MatchString(word), x.rd.elsewhere.MatchString(name):
		foreign(span, Profile)
		return
	case hasAddress(word), x.rd.entries.MatchString(word):
		foreign(span, Web)
		return
	default:
		return
	}
	if tail != "" {
		foreign(Span{known.To, span.To}, Web)
	}
}

// hasAddress reports whether a word contains a web address or a domain.
func hasAddress(word string) bool {
	if strings.Contains(word, "://") || strings.HasPrefix(strings.ToLower(word), "www.") {
		return true
	}
	for host := range strings.FieldsFuncSeq(word, func(r rune) bool { return !wordly(r) && r != '.' && r != '-' }) {
		host = strings.Trim(host, ".-")
		if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
			return true
		}
		for at, r := range host + "." { // a sentence may continue after it
			if (r == '.' || r == '-') && isDomain(host[:at]) {
				return true
			}
		}
	}
	return false
}

// readNumbers finds words that may be the number of a report or of an entry, or the end of an
// entry's address. A person may also have one as a name, so each only may mean the entry.
func (x *reading) readNumbers() {
	for _, m := range x.rd.entries.FindAllStringSubmatchIndex(x.text, -1) {
		if span := (Span{m[0], m[1]}); !within(x.masks, span) {
			number := strings.TrimRight(x.text[m[4]:m[5]], "-_")
			x.add(Sought{Number: number, List: events.List(x.text[m[2]:m[3]]), How: Maybe, Spans: []Span{span}})
		}
	}
	for _, m := range x.rd.number.FindAllStringIndex(x.text, -1) {
		word, span := x.text[m[0]:m[1]], Span{m[0], m[1]}
		if strings.ContainsAny(word, "0123456789") && !Digits(word) && !within(x.masks, span) && x.isWord(span) {
			x.add(Sought{Number: word, How: Maybe, Spans: []Span{span}})
		}
	}
}
