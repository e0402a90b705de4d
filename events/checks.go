package events

import (
	"mime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The checks of single members. The error is nil, or names the member.

func checkKey(field, s string) *Error {
	if !isKey(s) {
		return inData(field, "must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	}
	return nil
}

// checkText takes 1 to limit characters (Unicode code points).
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

// checkAttribute takes what fits a message header unchanged: control characters would break
// it (and are no CloudEvents string), outer spaces would be trimmed from it.
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
		return wrong(field, "year outside 1970 to 2200")
	}
	return nil
}

// checkContentType takes the JSON media types: application/json and all that end in +json.
func checkContentType(s string) *Error {
	media, _, err := mime.ParseMediaType(s)
	if err != nil || (media != "application/json" && !strings.HasSuffix(media, "+json")) {
		return wrong("datacontenttype", "must be JSON")
	}
	return nil
}
