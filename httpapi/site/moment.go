package site

import (
	"fmt"
	"time"
)

// moment is a time as Polish is written, to the minute: 21 listopada 2026, 10:15 UTC. UTC is named, not
// guessed: the same page is sent to everybody.
func moment(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d %s %d, %02d:%02d UTC", t.Day(), month(t.Month()), t.Year(), t.Hour(), t.Minute())
}

func month(m time.Month) string {
	return [...]string{"stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia",
		"września", "października", "listopada", "grudnia"}[m-1]
}
