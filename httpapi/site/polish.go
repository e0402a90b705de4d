package site

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// forms are the three forms of a noun after Polish numbers: 1 wpis, 2 wpisy, 5 wpisów.
type forms struct{ one, few, many string }

var entryForms = forms{"wpis", "wpisy", "wpisów"}

// count returns n with its noun: few if n ends in 2, 3 or 4, except in 12, 13 or 14. n must not be negative.
func (f forms) count(n int) string {
	endsIn2To4 := n%10 >= 2 && n%10 <= 4
	isTeen := n/10%10 == 1

	noun := f.many
	if n == 1 {
		noun = f.one
	} else if endsIn2To4 && !isTeen {
		noun = f.few
	}
	return formatNumber(n) + "\u00a0" + noun
}

// formatNumber formats n, with thousands separated from five digits on, as is customary in Polish.
func formatNumber(n int) string {
	s := strconv.Itoa(n)
	if len(s) < 5 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}

// formatTime formats a time in Polish: 21 listopada 2026, 10:15 UTC. All visitors get the same page, whatever their zone is.
func formatTime(t time.Time, layout string) string {
	t = t.UTC()
	return fmt.Sprintf("%d %s %d, %s UTC", t.Day(), monthName(t.Month()), t.Year(), t.Format(layout))
}

// formatDay formats the day of a time in UTC, in Polish: 14 listopada 2026. All visitors get the same page, whatever their
// zone is.
func formatDay(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d\u00a0%s\u00a0%d", t.Day(), monthName(t.Month()), t.Year())
}

// inFours splits an id of digits into fours, which are easier to compare. Other ids stay whole.
func inFours(id string) (fours []string) {
	if strings.Trim(id, "0123456789") != "" {
		return []string{id}
	}
	for ; len(id) > 4; id = id[4:] {
		fours = append(fours, id[:4])
	}
	return append(fours, id)
}

func monthName(m time.Month) string {
	return [...]string{"stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia",
		"września", "października", "listopada", "grudnia"}[m-1]
}
