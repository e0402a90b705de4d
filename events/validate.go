package events

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of events/CONTRACT.md#data and #envelope.
const (
	MaxPayload = 256 << 10 // bytes of one message
	MaxReason  = 20_000    // bytes of Markdown

	maxEventID  = 256  // characters
	maxSource   = 2048 // characters
	MaxID       = 64   // characters of entryId, donationId, proofs.id
	maxName     = 200  // characters
	maxReportID = 64   // characters
	maxInteger  = 1<<53 - 1
	maxTimeText = 64 // bytes of a time as written

	minYear, maxYear = 1970, 2200
)

// Validate checks every bound of events/CONTRACT.md#data, and that the data belongs to the type.
// The error is an *Error. If it is nil, Encode succeeds and Decode returns e again.
func Validate(e Event) error {
	// Check the envelope: cmp.Or returns the first error.
	err := cmp.Or(checkAttribute("id", e.ID, maxEventID), checkAttribute("source", e.Source, maxSource))
	if err != nil {
		return err
	}
	if !e.Time.IsZero() {
		if err := checkTime("time", e.Time); err != nil {
			return err
		}
	}

	// Check the type, and whether the data belongs to it.
	if types := Types(); !slices.Contains(types[:], e.Type) {
		return newQuotingError("type", "unknown type", string(e.Type))
	}
	if e.Data == nil || !slices.Contains(e.Data.eventTypes(), e.Type) {
		return newError("data", "not the data of "+string(e.Type))
	}
	if entry, ok := e.Data.(Entry); ok && e.Type == TypeVerified && !entry.Verified {
		return newDataError("verified", "must be true in "+string(TypeVerified))
	}

	// Check the data itself.
	if err := e.Data.checkBounds(); err != nil {
		return err
	}
	if r := Revision(e.Data); r < 1 || r > MaxRevision {
		return newDataError("revision", "must be a whole number from 1 to 7289654399999")
	}
	return nil
}

func (d Delisting) checkBounds() error { return checkTarget(d.List, d.EntryID) }

func (d DonationRemoval) checkBounds() error { return checkID("donationId", d.DonationID) }

func (v Views) checkBounds() error {
	return cmp.Or(checkTarget(v.List, v.EntryID), checkInteger("views", v.Views))
}

func checkTarget(l List, entryID string) error {
	if !isList(l) {
		return newDataError("list", "must be scammers, servers or legit")
	}
	return checkID("entryId", entryID)
}

func (e Entry) checkBounds() error {
	return cmp.Or(
		checkTarget(e.List, e.EntryID),
		checkChatID(e.ChatID),
		checkName(e.Name),
		checkReason(e.Reason),
		checkProofs(e.Proofs),
		checkText("reportId", e.ReportID, maxReportID),
		checkTime("data.reportedAt", e.ReportedAt),
	)
}

func checkName(name string) error {
	if err := checkText("name", name, maxName); err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return newDataError("name", "white space alone")
	}
	return nil
}

func checkReason(reason string) error {
	if len(reason) > MaxReason {
		return newDataError("reason", "longer than 20000 bytes")
	}
	return checkCharacters("data.reason", reason)
}

func checkProofs(p Proofs) error {
	if p.ID == "" {
		return nil
	}
	if p.Private {
		return newDataError("proofs.id", "must be null when the proofs are private")
	}
	return checkID("proofs.id", p.ID)
}

var (
	amountPattern   = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,18})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z0-9]{2,10}$`)
)

func (d Donation) checkBounds() error {
	if err := checkID("donationId", d.DonationID); err != nil {
		return err
	}
	if all := DonationStatuses(); !slices.Contains(all[:], d.Status) {
		return newDataError("status", "must be pending, confirming, confirmed, failed or expired")
	}

	if !amountPattern.MatchString(d.Amount) {
		return newDataError("amount", "must be digits, at most 18 before and 18 after a point")
	}
	if !currencyPattern.MatchString(d.Currency) {
		return newDataError("currency", "must be 2 to 10 of A-Z and 0-9")
	}

	return cmp.Or(
		checkInteger("confirmations", d.Confirmations),
		checkInteger("requiredConfirmations", d.RequiredConfirmations),
		checkTime("data.createdAt", d.CreatedAt),
		checkTime("data.updatedAt", d.UpdatedAt),
	)
}

func checkID(member, s string) error {
	if !IsID(s) {
		return newDataError(member, "must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	}
	return nil
}

// checkText accepts 1 to limit characters (Unicode code points).
func checkText(member, s string, limit int) error {
	if s == "" {
		return newDataError(member, "empty")
	}
	return cmp.Or(checkCharacters("data."+member, s), checkLength("data."+member, s, limit))
}

func checkCharacters(field, s string) error {
	if !utf8.ValidString(s) {
		return newError(field, "invalid UTF-8")
	}
	if strings.Contains(s, "\x00") {
		return newError(field, "contains NUL")
	}
	return nil
}

func checkLength(field, s string, limit int) error {
	if utf8.RuneCountInString(s) > limit {
		return newError(field, "longer than "+strconv.Itoa(limit)+" characters")
	}
	return nil
}

// checkAttribute accepts text that fits a message header unchanged. Control characters would break the header,
// and CloudEvents forbids them. Outer spaces would be trimmed.
func checkAttribute(field, s string, limit int) error {
	if s == "" {
		return newError(field, "missing or empty")
	}
	if !utf8.ValidString(s) {
		return newError(field, "invalid UTF-8")
	}

	if err := checkLength(field, s, limit); err != nil {
		return err
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return newError(field, "contains a control character")
	}
	if strings.Trim(s, " ") != s {
		return newError(field, "begins or ends with a space")
	}
	return nil
}

func checkInteger(member string, n int64) error {
	if n < 0 || n > maxInteger {
		return newDataError(member, "must be a whole number from 0 to 9007199254740991")
	}
	return nil
}

func checkTime(field string, t time.Time) error {
	if y := t.UTC().Year(); y < minYear || y > maxYear {
		return newTimeError(field, "year outside 1970 to 2200", t.UTC().Format(time.RFC3339))
	}
	return nil
}

// IsID reports whether s is [A-Za-z0-9_-]{1,64}, as ids of entries, donations and proofs are.
func IsID(s string) bool {
	if s == "" || len(s) > MaxID {
		return false
	}

	for i := range len(s) {
		c := s[i]
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		isDigit := c >= '0' && c <= '9'
		isMark := c == '_' || c == '-'
		if !isLetter && !isDigit && !isMark {
			return false
		}
	}
	return true
}

func isList(l List) bool {
	_, ok := l.Index()
	return ok
}
