package events

// The bounds of the API contract, events.
const (
	MaxPayload = 256 << 10 // bytes of one message

	maxEventID    = 256    // characters
	maxSource     = 2048   // characters
	maxKey        = 64     // characters of entryId, donationId, proofs.id
	maxChatID     = 64     // characters
	maxName       = 200    // characters
	maxReasonText = 20_000 // bytes of Markdown
	maxReportID   = 64     // characters
	maxInteger    = 1<<53 - 1
	maxTimeText   = 64 // bytes of a time as written
	maxDepth      = 64 // levels of nesting, unknown members included

	minYear, maxYear = 1970, 2200
)

// isKey is true for [A-Za-z0-9_-]{1,64}.
func isKey(s string) bool {
	if len(s) == 0 || len(s) > maxKey {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// isAmount is true for [0-9]{1,18}(\.[0-9]{1,18})?.
func isAmount(s string) bool {
	whole := digits(s)
	if whole < 1 || whole > 18 {
		return false
	}
	if whole == len(s) {
		return true
	}
	fraction := digits(s[whole+1:])
	return s[whole] == '.' && fraction >= 1 && fraction <= 18 && whole+1+fraction == len(s)
}

// isCurrency is true for [A-Z0-9]{2,10}.
func isCurrency(s string) bool {
	if len(s) < 2 || len(s) > 10 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// digits counts the leading ASCII digits of s.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isList(l List) bool { return l == Scammers || l == Servers || l == Legit }

func isDonationStatus(s DonationStatus) bool {
	switch s {
	case DonationPending, DonationConfirming, DonationConfirmed, DonationFailed, DonationExpired:
		return true
	}
	return false
}
