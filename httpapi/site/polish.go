package site

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// forms are the three forms of a noun after Polish numbers: 1 wpis, 2 wpisy, 5 wpisów.
type forms struct{ one, few, many string }

func entries() forms { return forms{"wpis", "wpisy", "wpisów"} }

// count returns n with its noun. n must not be negative.
func (f forms) count(n int) string { return number(n) + "\u00a0" + f.forCount(n) }

// forCount returns the form for n: few if n ends in 2, 3 or 4, except in 12, 13 or 14.
func (f forms) forCount(n int) string {
	switch tens, ones := n/10%10, n%10; {
	case n == 1:
		return f.one
	case ones >= 2 && ones <= 4 && tens != 1:
		return f.few
	default:
		return f.many
	}
}

// number formats n, with thousands separated from five digits on, as is customary in Polish.
func number(n int) string {
	s := strconv.Itoa(n)
	if len(s) < 5 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}

// moment formats a time in Polish, to the minute: 21 listopada 2026, 10:15 UTC; second, to the
// second. All visitors get the same page, so the zone is named rather than guessed.
func moment(t time.Time) string { return clocked(t, "15:04") }
func second(t time.Time) string { return clocked(t, "15:04:05") }

func clocked(t time.Time, layout string) string {
	t = t.UTC()
	return fmt.Sprintf("%d %s %d, %s UTC", t.Day(), month(t.Month()), t.Year(), t.Format(layout))
}

// day formats a date in Polish: 14 listopada 2026. It is the day in UTC, since all visitors get the
// same page.
func day(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d\u00a0%s\u00a0%d", t.Day(), month(t.Month()), t.Year())
}

// groups splits an id of digits into fours, which are easier to compare. Other ids stay whole.
func groups(id string) (fours []string) {
	if strings.Trim(id, "0123456789") != "" {
		return []string{id}
	}
	for len(id) > 4 {
		fours, id = append(fours, id[:4]), id[4:]
	}
	return append(fours, id)
}

func month(m time.Month) string {
	return [...]string{"stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia",
		"września", "października", "listopada", "grudnia"}[m-1]
}
