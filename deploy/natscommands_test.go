package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNATSCommandsOfThePages runs every command of the brokers' own tool that a page has, in a block,
// a table or a sentence, as the operator who has run the lines of "A shell for the operator". The
// broker is one, so a removal of a peer is refused; every other command works.
func TestNATSCommandsOfThePages(t *testing.T) {
	t.Parallel()
	tool := program(t, "nats")
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	serve(t, append(c.as("replica"), "--snapshot-every=0")...)
	var all []string
	for _, page := range []string{"README.md", "operating.md", "capacity.md", "erasing.md", "../events/CONTRACT.md", "../events/PUBLISHING.md", "../README.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		joined := strings.ReplaceAll(string(text), "\\\n", " ")
		for _, command := range regexp.MustCompile("(?ms)^ {4}(nats [^\n]*)$|`(nats [^`]*)`|^(nats .*?)\n```").FindAllStringSubmatch(joined, -1) {
			line := command[1] + strings.Join(strings.Fields(command[2]), " ") + command[3]
			if !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	// The contexts come first: with them every command is true.
	saves := func(line string) bool { return strings.Contains(line, "context save") }
	all = slices.Concat(slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !saves(l) }), slices.DeleteFunc(slices.Clone(all), saves))
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "deploy"), 0o700))
	require.NoError(t, os.Symlink(secrets, filepath.Join(dir, "deploy", "secrets")))
	for _, line := range all {
		asked := regexp.MustCompile(`nats://127\.0\.0\.1:4222|--server …`).ReplaceAllString(line, "--server "+c.server.ClientURL())
		asked = strings.Replace(asked, "--server --server", "--server", 1)
		if !regexp.MustCompile(`[-A-Z]`).MatchString(line) {
			asked += " --help" // the name of a command
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", asked)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(tool)+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "PWD="+dir)
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %v", asked, err)
		switch removes := strings.Contains(line, "peer-remove"); {
		case removes && (err == nil || regexp.MustCompile(`unknown|unexpected|Violation`).Match(out)), !removes && err != nil:
			t.Errorf("%s: %v\n%s", asked, err, out)
		}
	}
	if len(all) < 5 {
		t.Error("only these commands were found:", all)
	}
}
