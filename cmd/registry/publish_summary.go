package main

import (
	"fmt"
	"strings"
)

// badLines is the error of a run that had any: what to do about them.
func (r *publishing) badLines() error {
	if r.stopped != "" {
		return fmt.Errorf("stopped at %s: correct the line and publish again, or allow more bad lines with --max-errors", r.stopped)
	}
	return fmt.Errorf("%s not sent: correct and publish them again", count(r.bad, "bad line"))
}

// summary is the one line on standard output.
func (r *publishing) summary(dry bool) string {
	var s strings.Builder
	if dry {
		fmt.Fprintf(&s, "%s, %s; nothing sent (dry run)", count(r.good, "good line"), count(r.bad, "bad line"))
	} else {
		fmt.Fprintf(&s, "%d sent, %d already there, %s", r.done.Sent, r.done.Duplicates, count(r.bad, "bad line"))
	}
	if r.done.LastSequence > 0 { // something was acknowledged
		fmt.Fprintf(&s, "; last sequence %d", r.done.LastSequence)
	}
	if r.stopped != "" {
		fmt.Fprintf(&s, "; stopped at %s", r.stopped)
	}
	return s.String()
}
