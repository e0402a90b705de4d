package events_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// The import from CSV in PUBLISHING.md makes a valid event of a row.
func TestPublishingImport(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no python3, which .ci/run installs")
		}
		t.Skip("no python3")
	}
	page, err := os.ReadFile("PUBLISHING.md")
	require.NoError(t, err)
	script := regexp.MustCompile(`(?s)python3 -c '\n(.*?)\n' < reports.csv`).FindSubmatch(page)
	if script == nil {
		t.Fatal("no import from CSV in PUBLISHING.md")
	}
	cmd := exec.Command(python, "-X", "utf8", "-c", string(script[1]))
	cmd.Stdin = strings.NewReader("list,id,chat_id,name,reason,verified,proofs_id,proofs_private,report_id,reported_at,revision\n" +
		`legit,e1,900000000000000000001,"Jan ""Ufny"", x",żółć,true,p1,false,R-1,2025-11-21T10:15:00Z,7` + "\n")
	line, err := cmd.Output()
	require.NoError(t, err)
	e, err := events.Decode(line)
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if got, ok := e.Data.(events.Entry); !ok || got.Name != `Jan "Ufny", x` || got.Reason != "żółć" || !got.Verified || got.Proofs.ID != "p1" {
		t.Errorf("got %+v", e.Data)
	}
}
