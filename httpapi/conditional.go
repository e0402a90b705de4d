package httpapi

import "strings"

// tagSet is the entity tag of a content in each of its encodings.
type tagSet struct {
	quoted [numEncodings]string   // without W/
	header [numEncodings][]string // ready for an answer's header; shared, not to be changed
}

func newTagSet(tag string) (t tagSet) {
	for e := range numEncodings {
		t.quoted[e] = `"` + tag + e.suffix() + `"`
		t.header[e] = []string{t.quoted[e]}
	}
	return t
}

// held is which variants of a content a reader has, by its If-None-Match.
type held struct {
	variants [numEncodings]bool
	any      bool // one of them, or the reader said *
}

// held compares weakly, as If-None-Match is defined (RFC 9110, 13.1.2). What follows a malformed
// tag is not looked at.
func (t *tagSet) held(lines []string) (h held) {
	for _, line := range lines {
		if strings.TrimSpace(line) == "*" {
			h.any = true
			continue
		}
		for tag, rest := nextTag(line); tag != ""; tag, rest = nextTag(rest) {
			t.mark(tag, &h)
		}
	}
	return h
}

func (t *tagSet) mark(tag string, h *held) {
	for e := range numEncodings {
		if tag == t.quoted[e] {
			h.variants[e], h.any = true, true
		}
	}
}

// nextTag cuts the first entity tag, without W/, off a list of them; "" when there is none.
func nextTag(list string) (tag, rest string) {
	list = strings.TrimLeft(list, " \t,")
	list = strings.TrimPrefix(list, "W/")
	if !strings.HasPrefix(list, `"`) {
		return "", ""
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", ""
	}
	return list[:end+2], list[end+2:]
}

// settles says that a 304 is the answer without looking at the body, the reader getting the
// encoding e where the body is worth it. It is not while the reader shows no encoded variant:
// whether it would get one, and so which tag the 304 carries, is then a matter of the body's size.
func (h held) settles(e encoding) bool {
	large := h.variants[gzipped] || h.variants[zstandard]
	return h.any && (e == identity || large)
}
