package verdict

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
)

// BenchmarkCostliest reads and decides texts of the greatest size that cost much, before a registry of
// 300,000. Each may take 5 ms of CPU time.
func BenchmarkCostliest(b *testing.B) {
	all := people()
	for i, e := range eventstest.Entries(300_000, 1) {
		all = append(all, Entry{List: e.List, ID: strconv.Itoa(i), ChatID: e.ChatID, Name: e.Name, Verified: e.Verified})
	}
	rd, view := reader(b), viewOf(all)
	for name, text := range map[string]string{
		"emoji": strings.Repeat("😀 ", 150), "emoji words": strings.Repeat("a😀", 150), "dots": strings.Repeat(".", 300), "dotted": strings.Repeat("a.", 150),
		"digits": strings.Repeat("99 ", 100), "single digits": strings.Repeat("9 ", 150), "letters": strings.Repeat("a b ć ", 50), "ligatures": strings.Repeat("ﷺa,", 100),
		"parts": strings.Repeat("ab,", 100), "quoted": strings.Repeat(`"a" `, 75), "names": strings.Repeat("Kwaśny Joystick ", 18), "at": strings.Repeat("@a ", 100),
		"joined": strings.Repeat("/", 300), "marks": strings.Repeat("a\u0301", 150), "mixed": strings.Repeat("1a ", 100), "figures": strings.Repeat("x1-", 100),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := rd.Read(text, text)
				found, err := Find(b.Context(), view, &p)
				require.NoError(b, err)
				Decide(&p, found)
			}
		})
	}
}
