package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTablesAreCurrent: the committed tables are those that the data files give.
func TestTablesAreCurrent(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "tables.txt"))
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "tables.txt")
	require.NoError(t, run(filepath.Join("..", "testdata"), out))
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Error("tables.txt is not what its generator writes: go generate ./readmodel/lookalike")
	}
}

// TestDamagedData: a data file of another form or version is an error, never a wrong table.
func TestDamagedData(t *testing.T) {
	const good, derived = "# Version: 15.0.0\n0430 ;\t0061 ;\tMA\t# x\n", "# DerivedCoreProperties-15.0.0.txt\n00AD ; Default_Ignorable_Code_Point # x\n"
	for name, c := range map[string]struct {
		confusables, ignorable, want string
	}{
		"good":            {good, derived, ""},
		"no version":      {"0430 ; 0061 ; MA\n", derived, "version"},
		"two versions":    {good, "# DerivedCoreProperties-16.0.0.txt\n", "version"},
		"another table":   {good + "0430 ; 0061 ; SL\n", derived, "line 3"},
		"two sources":     {good + "0430 0431 ; 0061 ; MA\n", derived, "line 3"},
		"no number":       {good + "0430 ; x ; MA\n", derived, "line 3"},
		"beyond Unicode":  {good + "FFFFFFF ; 0061 ; MA\n", derived, "line 3"},
		"too few fields":  {good + "0430 ; 0061\n", derived, "line 3"},
		"other property":  {good, derived + "0061 ; Alphabetic\n", "line 3"},
		"three ends":      {good, derived + "0061..0062 63 ; Default_Ignorable_Code_Point\n", "line 3"},
		"range of naught": {good, derived + " ; Default_Ignorable_Code_Point\n", "line 3"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"confusables.txt": c.confusables, "DefaultIgnorable.txt": c.ignorable} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		switch _, err := tables(dir); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if err := run(t.TempDir(), "x"); err == nil {
		t.Error("an empty folder gave tables")
	}
}
