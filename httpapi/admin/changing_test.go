package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// Every list is counted in /projection, on the page and in what registry rebuild prints
// (events/CHANGING.md#a-list).
func TestEveryListIsCounted(t *testing.T) {
	f := serve(t)
	p := ProjectionOf(f.model.View())
	text, err := json.Marshal(p.Entries)
	require.NoError(t, err)
	_, page, _ := ask(t, newAdmin(t, f, func(c *Config) { c.Projection = func() Projection { return p } }), "GET", "/")
	for _, l := range events.Lists() {
		n := f.model.View().NumEntries(l)
		for where, want := range map[string]string{
			string(text):       fmt.Sprintf("%q:%d", l, n),
			p.Entries.String(): fmt.Sprintf("%s %d", l, n),
			page:               fmt.Sprintf("<dt>%s</dt><dd>%d</dd>", l, n),
		} {
			if !strings.Contains(where, want) {
				t.Errorf("%s is not in %.300s", want, where)
			}
		}
	}
}
