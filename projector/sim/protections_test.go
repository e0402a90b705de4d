package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var protectionsFor = flag.Duration("protections", 0, "how long TestProtections looks for a seed that notices that a protection is missing")

// patches are the files that take one protection out each. The first line of a file names it.
func patches(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.patch")
	if err != nil || len(all) == 0 {
		t.Fatal("no patches", err)
	}
	return all
}

// root returns the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	return filepath.Dir(string(out))
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestProtections takes out one protection after the other, in a copy of the module, and lets seeds
// look for it.
func TestProtections(t *testing.T) {
	if *protectionsFor == 0 {
		t.Skip("left out: minutes for each patch, which -protections 60s runs")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "module")
	require.NoError(t, os.Mkdir(source, 0o755))
	command(t, root(t), "sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"`, source)
	for _, patch := range patches(t) {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		path, err := filepath.Abs(patch)
		require.NoError(t, err)
		command(t, source, "git", "apply", path)
		binary := filepath.Join(dir, "sim.test")
		command(t, source, "go", "test", "-c", "-vet=off", "-o", binary, "./projector/sim")
		command(t, source, "git", "apply", "-R", path)
		t.Logf("%-26s %s", name, search(t, binary, source))
	}
}

var foundSeed = regexp.MustCompile(`FOUND (seed \d+ after \S+: \S+)`)

// search runs seeds of a binary until one finds something, and says which.
func search(t *testing.T, binary, source string) string {
	t.Helper()
	c := exec.Command(binary, "-test.run", "^TestSimulation$", "-test.v", "-sim", protectionsFor.String(), "-sim.seed", "1")
	c.Dir = filepath.Join(source, "projector", "sim")
	began := time.Now()
	out, err := c.CombinedOutput()
	if m := foundSeed.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	t.Fail()
	if err != nil && !bytes.Contains(out, []byte("steps in")) {
		return fmt.Sprintf("did not run: %v: %s", err, out[max(0, len(out)-500):])
	}
	return "not found in " + time.Since(began).Round(time.Second).String()
}
