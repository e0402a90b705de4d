package recovery

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// A file of tombstones is read to its end or not at all.
func TestReadTombstones(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 250_000_000, time.UTC)
	all := Tombstones{Histories: []string{"E"}, Time: at, Removals: []events.Data{
		events.Delisting{List: events.Servers, EntryID: "a", Revision: 7},
		events.DonationRemoval{DonationID: "d", Revision: 9}}}
	var out bytes.Buffer
	require.NoError(t, all.Write(&out))
	lines := strings.SplitAfter(out.String(), "\n")
	first, second, end := lines[0], lines[1], lines[2]
	for text, wrong := range map[string]string{
		out.String():                "",
		first + "\n" + second + end: "",
		"":                          "its end is missing", // a disk that was full
		first:                       "its end is missing",
		first + end:                 "line 2: the end of 2 removals, after 1",
		out.String() + first:        "line 4: after the end",
		first + "# failed\n":        "line 2: event: not JSON",
		first[:40]:                  "line 1: event: not JSON",
		strings.Replace(out.String(), `"revision":7`, `"revision":0`, 1):                                               "line 1: data.revision",
		strings.Replace(out.String(), "registry.entry.delisted\"", "registry.views.counted\",\"x\":1", 1):              "line 1: data.views",
		strings.Replace(first, "registry.entry.delisted", "registry.views.counted", 1)[:len(first)-4] + `,"views":1}}`: "line 1: not a removal",
	} {
		got, err := ReadTombstones(strings.NewReader(text))
		if wrong == "" {
			require.NoError(t, err)
			require.Equal(t, all, got)
		} else if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v; want %q", text, err, wrong)
		}
	}
}

// FuzzTombstones: a file is an error, or is written again as it was read.
func FuzzTombstones(f *testing.F) {
	f.Add([]byte(`{"specversion":"1.0","id":"1","source":"s","type":"registry.entry.delisted","time":"2026-11-22T12:00:00.25Z","data":{"list":"legit","entryId":"a","revision":7}}
{"end":true,"count":1,"histories":["E"],"time":"2026-11-22T12:00:00Z"}`))
	f.Add([]byte(`{"end":true,"count":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := ReadTombstones(bytes.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := read.Write(&out); err != nil {
			return // a time of the end that JSON cannot have
		}
		again, err := ReadTombstones(&out)
		require.NoError(t, err)
		require.Equal(t, read.Removals, again.Removals)
	})
}
