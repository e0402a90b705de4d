package paste

import (
	"net/netip"
	"strings"
	"unicode"

	"example.org/registry/events"
)

// readMentions reads mentions, and what has the form of one but is nobody.
func (x *reading) readMentions() {
	for _, m := range x.rd.mention.FindAllStringSubmatchIndex(x.text, -1) {
		x.bar(Span{m[0], m[1]}, Identity, Plain)
		x.seekID(x.text[m[2]:m[3]], Typed, Span{m[0], m[1]})
	}
	for _, m := range x.rd.place.FindAllStringIndex(x.text, -1) {
		x.bar(Span{m[0], m[1]}, Unchecked, Place)
	}
}

// readAddresses reads mail and web addresses. An address ends where something else may begin: at
// white space, brackets, quotes and what parts names.
func (x *reading) readAddresses() {
	ends := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|()[]{}<>\"„”“«»", r) }
	for at := 0; at < len(x.text); {
		size := strings.IndexFunc(x.text[at:], ends)
		if size < 0 {
			size = len(x.text) - at
		}
		word := x.text[at : at+size]
		bare := strings.TrimLeft(word, "/*`'’")
		if strings.HasPrefix(word, "/wpis/") {
			bare = word
		}
		from := at + size - len(bare)
		bare = strings.TrimRight(bare, ".:!?*`'’")
		if bare != "" {
			x.readAddress(Span{from, from + len(bare)}, bare)
		}
		for at += size; at < len(x.text) && strings.IndexFunc(x.text[at:], ends) == 0; {
			at += len(string([]rune(x.text[at:])[:1]))
		}
	}
}

func (x *reading) readAddress(span Span, word string) {
	foreign := func(kind Kind) {
		x.claim(span, Unchecked, kind)
		x.loose = append(x.loose, span)
	}
	if m := x.rd.mail.FindStringSubmatch(word); m != nil && isDomain(m[1]) {
		foreign(Mail)
		return
	}
	scheme, host, path := cutAddress(word)
	path, query := cutQuery(path)
	platform := x.rd.platform.MatchString(host)
	name, _, _ := strings.Cut(host, ":")
	switch user, server := x.rd.user.FindStringSubmatch(path), x.rd.server.FindStringSubmatch(path); {
	case x.readEntry(span, host, path):
	case platform && user != nil:
		x.loose = append(x.loose, span)
		span.To -= len(query)
		x.claim(span, Identity, Plain)
		x.seekID(user[1], Typed, span)
	case platform && server != nil:
		x.bar(span, Identity, Place)
		x.add(Sought{ID: server[1], Server: true, Spans: []Span{span}})
	case platform && strings.HasPrefix(path, "/channels/@me"):
		x.bar(span, Unchecked, Place)
	case x.rd.inviting.MatchString(host) && path != "", platform && strings.HasPrefix(path, "/invite/"):
		foreign(Invitation)
	case x.rd.steam.MatchString(word), x.rd.elsewhere.MatchString(name):
		foreign(Profile)
	case host != "-" && (platform || scheme || strings.HasPrefix(strings.ToLower(host), "www.") || isDomain(name) || isNumeric(name)):
		foreign(Web)
	}
}

// readEntry reads an address of an entry's page. On a host that is not the site's own it only may
// mean the entry.
func (x *reading) readEntry(span Span, host, path string) bool {
	m := x.rd.entry.FindStringSubmatch(path)
	if m == nil {
		return false
	}
	how := Typed
	if !x.rd.isOwn(host) {
		how = Maybe
		x.loose = append(x.loose, span)
		x.claim(span, Unchecked, Web)
	}
	x.bar(span, Identity, Plain)
	x.add(Sought{Number: m[2], List: events.List(m[1]), How: how, Spans: []Span{span}})
	return true
}

// readNumbers seeks words that may be the number of a report or of an entry. Anybody may take one
// for a name, so it only may mean the entry.
func (x *reading) readNumbers() {
	for _, m := range x.rd.number.FindAllStringIndex(x.text, -1) {
		word, span := x.text[m[0]:m[1]], Span{m[0], m[1]}
		if strings.ContainsAny(word, "0123456789") && !Digits(word) && !x.masked(span.From) && x.isWord(span) {
			x.add(Sought{Number: word, How: Maybe, Spans: []Span{span}})
		}
	}
}

// cutAddress splits a word into its host, with the port, and what follows it, and reports whether
// it has a scheme.
func cutAddress(word string) (scheme bool, host, path string) {
	if at := strings.Index(word, "://"); at > 0 {
		scheme, word = true, word[at+3:]
	}
	if at := strings.IndexAny(word, "/?#\\"); at >= 0 {
		return scheme, word[:at], word[at:]
	}
	return scheme, word, ""
}

func cutQuery(path string) (before, query string) {
	if at := strings.IndexAny(path, "?#"); at >= 0 {
		return path[:at], path[at:]
	}
	return path, ""
}

// isNumeric reports whether a host is an IPv4 address.
func isNumeric(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4()
}
