package readmodel

import "strings"

// needle is a text to search for in many others. strings.Index searches for the first byte, which
// is common in most languages, and stops there again and again. A needle searches for its rarest
// byte.
type needle struct {
	text string
	at   int // of the rarest byte
}

// commonBytes are the bytes of Polish text, the most common ones first.
const commonBytes = " aioezn\xc4\xc5\xb3rwstcykdpmu\x82ljgb\x85h\x99\xbcfó"

// newNeedle chooses the byte to search for. The text is not empty.
func newNeedle(text string) needle {
	n, rarest := needle{text: text}, -1
	for i := range len(text) {
		rank := strings.IndexByte(commonBytes, text[i])
		if rank < 0 {
			rank = len(commonBytes)
		}
		if rank > rarest {
			n.at, rarest = i, rank
		}
	}
	return n
}

// isIn reports whether s contains the text.
func (n *needle) isIn(s string) bool {
	const tries = 16 // s has so many of this byte that strings.Contains, which bounds its work, is as good
	for from, tried := n.at, 0; from < len(s); tried++ {
		if tried == tries {
			return strings.Contains(s[from-n.at:], n.text)
		}
		i := strings.IndexByte(s[from:], n.text[n.at])
		if i < 0 {
			return false
		}
		if strings.HasPrefix(s[from+i-n.at:], n.text) {
			return true
		}
		from += i + 1
	}
	return false
}
