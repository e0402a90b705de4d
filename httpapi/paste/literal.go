package paste

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/lookalike"
)

// maxLabels is how many labels may stand in a row.
const maxLabels = 2

// separators are the characters that may stand between an id and a name.
const separators = ",:;-–—|/"

// Span is a piece of a text, in bytes.
type Span struct{ From, To int }

// id is a literal id at its place.
type id struct {
	Span
	digits string
}

// readLiterals reads the literal forms.
func (rd *Reader) readLiterals(p *Paste) {
	ids := rd.ids(p.Text)
	for _, id := range ids {
		p.IDs = appendNew(p.IDs, id.digits)
	}
	p.Accuse = slices.Clone(p.IDs)
	if len(p.IDs) == 1 {
		p.Only, p.Beside = rd.beside(p.Text, ids)
	}
	p.Whole = rd.literal(p.Text)
	split := func(s, at string) (all []Literal) {
		if !strings.ContainsAny(s, at) {
			return nil
		}
		for _, part := range splitAny(s, at) {
			all = append(all, rd.literal(part))
		}
		return all
	}
	p.Lines = split(strings.ReplaceAll(p.Text, "\r\n", "\n"), "\n\r\u2028\u2029")
	p.Parts = split(p.Text, ",;")
	for _, m := range rd.channels.FindAllStringSubmatch(p.Text, -1) {
		if Digits(m[2]) {
			p.Server = appendNew(p.Server, m[2])
		}
	}
	for _, m := range rd.own.FindAllStringSubmatchIndex(p.Text, -1) {
		p.Own = append(p.Own, Reference{events.List(p.Text[m[2]:m[3]]), p.Text[m[4]:m[5]], m[0] == 0 && m[1] == len(p.Text)})
	}
}

// splitAny splits a text at each of some characters.
func splitAny(s, at string) (parts []string) {
	for {
		i := strings.IndexAny(s, at)
		if i < 0 {
			return append(parts, s)
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		parts, s = append(parts, s[:i]), s[i+size:]
	}
}

// literal returns a text as a name, with its labels and without.
func (rd *Reader) literal(text string) (l Literal) {
	text = strings.TrimSpace(text)
	for n := range l {
		l[n].Text, l[n].Forms = text, []string{lookalike.Literal(text)}
		if after, ok := strings.CutPrefix(text, "@"); ok {
			l[n].Forms = append(l[n].Forms, lookalike.Literal(after))
		}
		if text = rd.unlabeled(text); text == "" {
			break
		}
	}
	return l
}

// unlabeled returns a text without the label that it begins with, or "" if there is none or nothing
// else.
func (rd *Reader) unlabeled(text string) string {
	label := rd.label.FindString(text)
	if label == "" {
		return ""
	}
	return text[len(label):]
}

// ids returns the literal ids of a text in their order.
func (rd *Reader) ids(s string) (ids []id) {
	if !strings.ContainsAny(s, "0123456789") {
		return nil
	}
	closed := rd.closed(s, &ids)
	inClosed := func(at int) int { // where the address or the brackets end, or 0
		for _, c := range closed {
			if c.From <= at && at < c.To {
				return c.To
			}
		}
		return 0
	}
	for at := 0; at < len(s); {
		if end := inClosed(at); end > 0 {
			at = end
			continue
		}
		if !isDigit(s[at]) {
			at++
			continue
		}
		end := at
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		switch {
		case isRun(s[at:end]):
			if !touches(s, at, end) {
				ids = append(ids, id{Span{at, end}, s[at:end]})
			}
		case end-at == 4 && !touches(s, at, end) && !continues(s[:at], false):
			if grouped := rd.group.FindString(s[at:]); grouped != "" {
				to := at + len(grouped)
				if !touches(s, at, to) && !continues(s[to:], true) {
					ids = append(ids, id{Span{at, to}, strings.ReplaceAll(grouped, " ", "")})
				}
				for to < len(s) && isDigit(s[to]) {
					to++
				}
				end = to
			}
		}
		at = end
	}
	slices.SortFunc(ids, func(a, b id) int { return a.From - b.From })
	return ids
}

// closed returns the addresses and the <…> of a text, and adds the literal ids that they are.
func (rd *Reader) closed(s string, ids *[]id) (closed []Span) {
	for at := 0; at < len(s); at++ {
		if s[at] != '<' {
			continue
		}
		if m := rd.mention.FindStringSubmatch(s[at:]); m != nil {
			*ids = append(*ids, id{Span{at, at + len(m[0])}, m[1]})
			closed = append(closed, Span{at, at + len(m[0])})
			at += len(m[0]) - 1
			continue
		}
		if size := strings.IndexAny(s[at+1:], "<>"); size >= 0 && s[at+1+size] == '>' {
			closed = append(closed, Span{at, at + size + 2})
			at += size + 1
		}
	}
	for token := range tokens(s) {
		text := strings.TrimPrefix(s[token.From:token.To], ":") // id :https://…
		for range maxLabels {                                   // ID:https://…
			if label := rd.label.FindString(text); label != "" {
				text = text[len(label):]
			}
		}
		token.From = token.To - len(text)
		inside := func(c Span) bool { return c.From <= token.From && token.To <= c.To }
		switch digits, refers := events.ReferredChatID(text); {
		case slices.ContainsFunc(closed, inside):
		case refers && isRun(digits):
			*ids = append(*ids, id{token, digits})
			closed = append(closed, token)
		case isAddress(text):
			closed = append(closed, token)
		}
	}
	return closed
}

// tokens yields the pieces of a text between white space, brackets, quotes and separators that no
// address has.
func tokens(s string) func(yield func(Span) bool) {
	return func(yield func(Span) bool) {
		at := 0
		for piece := range strings.FieldsFuncSeq(s, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(",;|–—()[]{}<>\"„”“«»", r)
		}) {
			at += strings.Index(s[at:], piece)
			if !yield(Span{at, at + len(piece)}) {
				return
			}
			at += len(piece)
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// touches reports whether a letter or a digit stands next to a piece of a text.
func touches(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, _ := utf8.DecodeRuneInString(s[to:])
	return lookalike.IsWordly(before) || lookalike.IsWordly(after)
}

// continues reports whether white space and a digit stand at the near end of a text.
func continues(s string, after bool) bool {
	var rest string
	var r rune
	if after {
		rest = strings.TrimLeftFunc(s, unicode.IsSpace)
		r, _ = utf8.DecodeRuneInString(rest)
	} else {
		rest = strings.TrimRightFunc(s, unicode.IsSpace)
		r, _ = utf8.DecodeLastRuneInString(rest)
	}
	return len(rest) < len(s) && unicode.IsNumber(r)
}

// beside reads a text that has one literal id, once or more often. It reports whether the rest is only
// labels and separators. If the rest is a name before, after or between the ids, beside returns what
// that name may be; if it is more than one name, nothing.
func (rd *Reader) beside(s string, ids []id) (only bool, names []string) {
	first, rest := rd.skipIDs(s, 0, ids)
	if first > 0 {
		if rest == "" {
			return !strings.Contains(s, "("), nil
		}
		names = append(names, rd.namesAfter(rest, s[first-1] == ')')...)
	}
	for _, one := range ids {
		for _, start := range rd.starts(s, one) {
			if end, rest := rd.skipIDs(s, start, ids); start < first || end == 0 || rest != "" {
				continue
			}
			for _, name := range rd.namesBefore(s[first:start], s[start] == '(') {
				if first == 0 {
					names = append(names, strings.TrimSpace(name))
				} else {
					names = append(names, rd.namesAfter(name, s[first-1] == ')')...)
				}
			}
		}
	}
	return false, names
}

// skipIDs skips labels, ids and separators from a place on. It returns where the last id ends, and
// what follows, or 0 if there is no id.
func (rd *Reader) skipIDs(s string, at int, ids []id) (end int, rest string) {
	for {
		to := rd.skipID(s, at, ids)
		if to == 0 {
			return end, s[max(end, 0):]
		}
		if end = to; end == len(s) {
			return end, ""
		}
		next := rd.sep.FindString(s[end:])
		if next == "" {
			next = s[end : len(s)-len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))]
			if next == "" && s[end-1] != ')' && s[end] != '(' {
				return end, s[end:]
			}
		}
		at = end + len(next)
	}
}

// skipID returns the end of an id with its labels and parentheses at a place, or 0.
func (rd *Reader) skipID(s string, at int, ids []id) (end int) {
	from := at
	open := strings.HasPrefix(s[at:], "(")
	if open {
		from += 1 + len(s[at+1:]) - len(strings.TrimLeftFunc(s[at+1:], unicode.IsSpace))
	}
	for n := 0; ; n++ {
		if i := slices.IndexFunc(ids, func(one id) bool { return one.From == from }); i >= 0 {
			end = ids[i].To
			break
		}
		label := rd.label.FindString(s[from:])
		if label == "" || n == maxLabels {
			return 0
		}
		from += len(label)
	}
	if !open {
		return end
	}
	rest := strings.TrimLeftFunc(s[end:], unicode.IsSpace)
	if !strings.HasPrefix(rest, ")") {
		return 0
	}
	return len(s) - len(rest) + 1
}

// starts returns where an id begins: with each number of its labels, and with a parenthesis.
func (rd *Reader) starts(s string, one id) (starts []int) {
	add := func(at int) {
		if rd.skipID(s, at, []id{one}) > 0 {
			starts = append(starts, at)
		}
	}
	for at := range s[:one.From+1] {
		if at == one.From || s[at] == '(' || strings.IndexByte("IiNnDdSs", s[at]) >= 0 && !wordBefore(s, at) {
			add(at)
		}
	}
	return starts
}

func wordBefore(s string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:at])
	return lookalike.IsWordly(r)
}

// namesAfter returns what the name may be in what follows an id. closed says that a parenthesis ends
// the id.
func (rd *Reader) namesAfter(rest string, closed bool) (names []string) {
	trimmed := strings.TrimSpace(rest)
	if closed {
		return []string{trimmed}
	}
	if len(trimmed) < len(rest) {
		names = append(names, trimmed)
	}
	if sep := rd.sep.FindString(rest); sep != "" {
		names = append(names, rest[len(sep):])
	}
	if inner, ok := inParentheses(trimmed); ok {
		names = append(names, inner)
	}
	return names
}

// namesBefore returns what the name may be in what precedes an id. open says that a parenthesis begins
// the id.
func (rd *Reader) namesBefore(rest string, open bool) (names []string) {
	trimmed := strings.TrimRightFunc(rest, unicode.IsSpace)
	if open {
		return []string{trimmed}
	}
	if len(trimmed) < len(rest) {
		names = append(names, trimmed)
	}
	if r, size := utf8.DecodeLastRuneInString(trimmed); strings.ContainsRune(separators, r) {
		names = append(names, strings.TrimRightFunc(trimmed[:len(trimmed)-size], unicode.IsSpace))
	}
	if inner, ok := inParentheses(trimmed); ok {
		names = append(names, inner)
	}
	return names
}

func inParentheses(s string) (inner string, ok bool) {
	if s = strings.TrimSpace(s); len(s) < 2 || s[0] != '(' || s[len(s)-1] != ')' {
		return "", false
	}
	return strings.TrimSpace(s[1 : len(s)-1]), true
}

// IsBeside reports whether the text is one literal id and this name, which [lookalike.Literal] has
// returned.
func (rd *Reader) IsBeside(p *Paste, name string) bool {
	return slices.ContainsFunc(p.Beside, func(s string) bool {
		l := rd.literal(s)
		return l.Is(name)
	})
}

// readPlain recognizes a text that can be cleared: one literal id, one plain name, or both.
func (rd *Reader) readPlain(p *Paste) {
	text := strings.Trim(p.Text, separators+" ")
	read := func(typed string) {
		if name := rd.plain(typed); name != "" && (p.Plain == "" || len(name) < len(p.Plain)) {
			p.Plain, p.Typed = name, ""
			if strings.TrimPrefix(typed, "@") != name {
				p.Typed = typed
			}
		}
	}
	switch {
	case len(p.Unchecked) > 0, len(p.IDs) > 1:
		return
	case len(p.IDs) == 0:
		read(text)
		return
	case len(p.IDs[0]) < minIssued:
		return
	}
	only, beside := p.Only, p.Beside
	if text != p.Text {
		only, beside = rd.beside(text, rd.ids(text))
	}
	for _, name := range beside {
		read(name)
	}
	if p.Alone = only || p.Plain != ""; p.Alone {
		p.Near = oneDigitOff(p.IDs[0])
	}
}

// plain returns a plain name without its labels and an @, or "" if it is none: one line of one to three
// words of letters, digits, dots, dashes and underscores, in one script.
func (rd *Reader) plain(text string) string {
	for range maxLabels {
		if rest := rd.unlabeled(text); rest != "" {
			text = rest
		}
	}
	text = strings.TrimPrefix(text, "@")
	if bounds.Longer(text, maxPlain) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) && r != ' ' }) || len(rd.kinds(text)) > 0 {
		return ""
	}
	words, letters, numbers := strings.Fields(norm.NFC.String(text)), 0, 0
	var script *unicode.RangeTable
	for _, word := range words {
		digits, has := 0, false
		for _, r := range word {
			switch {
			case '0' <= r && r <= '9':
				digits++
			case unicode.IsLetter(r):
				has = true
				if script == nil {
					script = lookalike.ScriptOf(r)
				}
				if script == nil || !unicode.Is(script, r) {
					return ""
				}
			case r != '.' && r != '_' && r != '-':
				return ""
			}
		}
		switch {
		case digits >= 8, !has && (digits > 4 || digits != len(word)):
			return ""
		case has:
			letters++
		default:
			numbers++
		}
	}
	if letters == 0 || numbers > 1 || len(words) > 3 {
		return ""
	}
	return text
}

// oneDigitOff returns the ids that differ by one digit, which is changed, missing or too much, or by two
// neighbors that are swapped.
func oneDigitOff(id string) (near []string) {
	for i := range id {
		near = append(near, id[:i]+id[i+1:])
		if i > 0 && id[i] != id[i-1] {
			near = append(near, id[:i-1]+id[i:i+1]+id[i-1:i]+id[i+1:])
		}
		for d := byte('0'); d <= '9'; d++ {
			if near = append(near, id[:i]+string(d)+id[i:]); d != id[i] {
				near = append(near, id[:i]+string(d)+id[i+1:])
			}
		}
	}
	for d := byte('0'); d <= '9'; d++ {
		near = append(near, id+string(d))
	}
	return near
}
