//go:build nightly

package events_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// importCSV runs the import of examples on a table.
func importCSV(t *testing.T, table string, args ...string) (lines []string, complaints string, err error) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no python3, which .ci/run installs")
		}
		t.Skip("no python3")
	}
	var out, complaint bytes.Buffer
	script, err := os.ReadFile("examples/import.py")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-X", "utf8", "-c", string(script)}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(table), &out, &complaint
	err = cmd.Run()
	return slices.Collect(strings.Lines(out.String())), complaint.String(), err
}

const header = "list,id,chat_id,name,reason,verified,proofs_id,proofs_private,report_id,reported_at,revision\n"

// Every way in which databases and spreadsheets write a row that can be understood becomes the event that is meant.
func TestImport(t *testing.T) {
	t.Parallel()
	spellings := map[string]bool{"t": true, "true": true, "TRUE": true, "1": true, "PRAWDA": true, "FAŁSZ": false, "f": false, "False": false, "0": false, "no": false}
	var table strings.Builder
	table.WriteString("\ufeff" + header)
	var want []events.Entry
	for verified, isVerified := range spellings {
		for private, isPrivate := range spellings {
			for _, proofs := range []string{"", "NULL", "p1"} {
				id := fmt.Sprint("e", len(want))
				fmt.Fprintf(&table, "legit,%s,900000000000000000001,\"Jan \"\"Ufny\"\", x\",\"żółć\nżaba\",%s,%s,%s,R-1,2025-11-21 11:15:00+01,%d\r\n",
					id, verified, proofs, private, len(want)+1)
				e := events.Entry{List: events.Legit, EntryID: id, ChatID: "900000000000000000001", Name: `Jan "Ufny", x`, Reason: "żółć\nżaba",
					Verified: isVerified, Proofs: events.Proofs{Private: isPrivate}, ReportID: "R-1", Revision: int64(len(want) + 1)}
				if proofs == "p1" && !isPrivate {
					e.Proofs.ID = "p1"
				}
				want = append(want, e)
			}
		}
	}
	lines, complaints, err := importCSV(t, table.String())
	require.NoError(t, err, complaints)
	require.Len(t, lines, len(want))
	for i, line := range lines {
		e, err := events.Decode([]byte(line))
		require.NoError(t, err, line)
		got, ok := e.Data.(events.Entry)
		require.True(t, ok)
		require.Equal(t, "2025-11-21T10:15:00Z", got.ReportedAt.UTC().Format("2006-01-02T15:04:05Z07:00"))
		want[i].ReportedAt = got.ReportedAt
		require.Equal(t, want[i], got)
		require.Equal(t, fmt.Sprintf("registry.legit.e%d@%d", i, i+1), e.ID)
	}

	// As a Polish Excel saves a table.
	lines, complaints, err = importCSV(t, "sep=;\r\n"+strings.ReplaceAll(strings.TrimSuffix(header, ",revision\n"), ",", ";")+
		"\r\nscammers;e1;1;\xa3ukasz;;FA\xa3SZ;;f;R;2025-11-21T11:15:00Z\r\n", "17")
	require.NoError(t, err, complaints)
	require.Regexp(t, "^line 3: not UTF-8: read as Windows-1250", complaints)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], `"revision": 17`)
	require.Contains(t, lines[0], `"name": "Łukasz"`)
}

// A row that cannot be understood is named with its line, the column and what to do. No event is made of it.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	const good = "scammers,e1,1,Ola,x,t,,f,R,2025-11-21T11:15:00Z,7\n"
	columns := strings.Split(strings.TrimSpace(header), ",")
	cells := strings.Split(strings.TrimSpace(good), ",")
	table, number := strings.Builder{}, 1
	table.WriteString(header)
	var want []string
	for column, bad := range map[string][]string{
		"list": {"", "NULL"}, "id": {"", "None"}, "chat_id": {"", "NULL", `\N`, "<nil>", "9.00000000000000E+20", "9E+17", "9.0"}, "name": {"", "null"},
		"verified": {"", "maybe", "2", "NULL", "tak"}, "proofs_private": {"", "x"}, "report_id": {""},
		"reported_at": {"", "2025-11-21 11:15:00", "21.11.2025", "45982.4", "0001-01-01T00:00:00+01:00", "2025-02-30T10:00:00Z"}, "revision": {"", "7.0", "-1", "7e3"},
	} {
		for _, value := range bad {
			row := slices.Clone(cells)
			row[slices.Index(columns, column)] = value
			table.WriteString(strings.Join(row, ",") + "\n" + good)
			number += 2
			want = append(want, fmt.Sprintf("^line %d: %s: .*: .*\n$", number-1, column))
		}
	}
	lines, complaints, err := importCSV(t, table.String())
	require.Error(t, err)
	require.Len(t, lines, len(want))
	got := slices.Collect(strings.Lines(complaints))
	require.Len(t, got, len(want)+1)
	for i := range want {
		require.Regexp(t, want[i], got[i])
	}
	for table, want := range map[string]string{
		"list,id\n":                              "line 1: no column chat_id",
		header + good + "scammers,e1,1\n" + good: "line 3: another number of cells",
		header + good + "scammers,e1,1,Ola, x,y,t,,f,R,2025-11-21T11:15:00Z,7\n":           "line 3: another number of cells",
		header + good + "scammers,e1,1,\"Ola\" x,y,t,,f,R,2025-11-21T11:15:00Z,7\n":        "line 3: ',' expected after '\"'",
		header + good + "scammers,e1,1,\"Ola,y,t,,f,R,2025-11-21T11:15:00Z,7\n" + good:     "line 3: unexpected end of data",
		header + good + "scammers,e1,1,\x81ukasz,y,t,,f,R,2025-11-21T11:15:00Z,7\n" + good: "line 3: neither UTF-8",
		"\xff\xfel\x00i\x00s\x00t\x00":                      "line 1: neither UTF-8",
		strings.TrimSuffix(header, "\n") + ",name\n" + good: "line 1: a column is there twice",
	} {
		if _, complaints, err := importCSV(t, table); err == nil || !strings.HasPrefix(complaints, want) {
			t.Errorf("%q: %v: %s", table, err, complaints)
		}
	}
}
