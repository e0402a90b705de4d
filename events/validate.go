package events

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
	if err := validate(&e); err != nil {
		return err
	}
	return nil
}

// validate implements Validate for callers that need the *Error.
func validate(e *Event) *Error {
	if err := checkAttribute("id", e.ID, maxEventID); err != nil {
		return err
	}
	if err := checkAttribute("source", e.Source, maxSource); err != nil {
		return err
	}
	if !e.Time.IsZero() {
		if err := checkTime("time", e.Time); err != nil {
			return err
		}
	}
	if !isType(e.Type) {
		return wrongWords("type", "unknown type", quote(string(e.Type)))
	}
	if e.Data == nil || !e.Data.isDataOf(e.Type) {
		return wrong("data", "not the data of "+string(e.Type))
	}
	if entry, ok := e.Data.(Entry); ok && e.Type == TypeVerified && !entry.Verified {
		return inData("verified", "must be true in "+string(TypeVerified))
	}
	return checkData(e.Data)
}

func checkData(d Data) *Error {
	if d == nil {
		return wrong("data", "missing")
	}
	if err := checkBody(d); err != nil {
		return err
	}
	if r := Revision(d); r < 1 || r > MaxRevision {
		return inData("revision", "must be a whole number from 1 to 7289654399999")
	}
	return nil
}

// checkBody checks all of d but its revision.
func checkBody(d Data) *Error {
	switch d := d.(type) {
	case Entry:
		return checkEntry(&d)
	case Delisting:
		return checkTarget(d.List, d.EntryID)
	case Views:
		if err := checkTarget(d.List, d.EntryID); err != nil {
			return err
		}
		return checkInteger("views", d.Views)
	case Donation:
		return checkDonation(&d)
	case DonationRemoval:
		return checkID("donationId", d.DonationID)
	}
	return wrong("data", "missing")
}

func checkTarget(l List, entryID string) *Error {
	if !isList(l) {
		return inData("list", "must be scammers, servers or legit")
	}
	return checkID("entryId", entryID)
}

func checkEntry(e *Entry) *Error {
	if err := checkTarget(e.List, e.EntryID); err != nil {
		return err
	}
	if err := checkChatID(e.ChatID); err != nil {
		return err
	}
	if err := checkText("name", e.Name, maxName); err != nil {
		return err
	}
	if strings.TrimSpace(e.Name) == "" {
		return inData("name", "white space alone")
	}
	if len(e.Reason) > MaxReason {
		return inData("reason", "longer than 20000 bytes")
	}
	if err := checkClean("data.reason", e.Reason); err != nil {
		return err
	}
	if err := checkProofs(e.Proofs); err != nil {
		return err
	}
	if err := checkText("reportId", e.ReportID, maxReportID); err != nil {
		return err
	}
	return checkTime("data.reportedAt", e.ReportedAt)
}

func checkProofs(p Proofs) *Error {
	if p.ID == "" {
		return nil
	}
	if p.Private {
		return inData("proofs.id", "must be null when the proofs are private")
	}
	return checkID("proofs.id", p.ID)
}

var (
	amount   = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,18})?$`)
	currency = regexp.MustCompile(`^[A-Z0-9]{2,10}$`)
)

func checkDonation(d *Donation) *Error {
	if err := checkID("donationId", d.DonationID); err != nil {
		return err
	}
	switch {
	case !isDonationStatus(d.Status):
		return inData("status", "must be pending, confirming, confirmed, failed or expired")
	case !amount.MatchString(d.Amount):
		return inData("amount", "must be digits, at most 18 before and 18 after a point")
	case !currency.MatchString(d.Currency):
		return inData("currency", "must be 2 to 10 of A-Z and 0-9")
	}
	if err := checkInteger("confirmations", d.Confirmations); err != nil {
		return err
	}
	if err := checkInteger("requiredConfirmations", d.RequiredConfirmations); err != nil {
		return err
	}
	if err := checkTime("data.createdAt", d.CreatedAt); err != nil {
		return err
	}
	return checkTime("data.updatedAt", d.UpdatedAt)
}

func checkID(field, s string) *Error {
	if !IsID(s) {
		return inData(field, "must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	}
	return nil
}

// checkText accepts 1 to limit characters (Unicode code points).
func checkText(field, s string, limit int) *Error {
	if s == "" {
		return inData(field, "empty")
	}
	if err := checkClean("data."+field, s); err != nil {
		return err
	}
	if len(s) > limit && utf8.RuneCountInString(s) > limit {
		return inData(field, "longer than "+strconv.Itoa(limit)+" characters")
	}
	return nil
}

func checkClean(field, s string) *Error {
	if !utf8.ValidString(s) {
		return wrong(field, "invalid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return wrong(field, "contains NUL")
	}
	return nil
}

// checkAttribute accepts text that fits a message header unchanged: control characters would break
// the header (and are not allowed in CloudEvents strings), and outer spaces would be trimmed.
func checkAttribute(field, s string, limit int) *Error {
	switch {
	case s == "":
		return wrong(field, "missing or empty")
	case !utf8.ValidString(s):
		return wrong(field, "invalid UTF-8")
	case len(s) > limit && utf8.RuneCountInString(s) > limit:
		return wrong(field, "longer than "+strconv.Itoa(limit)+" characters")
	case strings.IndexFunc(s, isControl) >= 0:
		return wrong(field, "contains a control character")
	case s[0] == ' ' || s[len(s)-1] == ' ':
		return wrong(field, "begins or ends with a space")
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || (r >= 0x7f && r <= 0x9f) }

func checkInteger(field string, n int64) *Error {
	if n < 0 || n > maxInteger {
		return inData(field, "must be a whole number from 0 to 9007199254740991")
	}
	return nil
}

func checkTime(field string, t time.Time) *Error {
	if y := t.UTC().Year(); y < minYear || y > maxYear {
		return wrongTime(field, "year outside 1970 to 2200", t.UTC().AppendFormat(nil, time.RFC3339))
	}
	return nil
}

// IsID reports whether s is [A-Za-z0-9_-]{1,64}, as ids of entries, donations and proofs are.
func IsID(s string) bool {
	if len(s) == 0 || len(s) > MaxID {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isList(l List) bool {
	_, ok := l.Index()
	return ok
}

func isType(t Type) bool {
	all := Types()
	return slices.Contains(all[:], t)
}

func isDonationStatus(s DonationStatus) bool {
	all := DonationStatuses()
	return slices.Contains(all[:], s)
}
