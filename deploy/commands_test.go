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

	"example.org/registry/events/eventstest"
)

// leftOut are commands of the pages that TestCommandsOfThePages does not run, by how they begin,
// each with the reason.
func leftOut() map[string]string {
	return map[string]string{
		"go run ./cmd/registry keys":         "main_test.go runs it",
		"go run ./cmd/registry publish":      "roles_test.go publishes with that key",
		"go test -tags nightly":              "a test of its own",
		"go build":                           "main_test.go builds it",
		"sudo ":                              "needs root",
		"curl 'http://localhost:8080":        "needs that port; the other tests ask /api/check",
		"registry publish FILE":              "roles_test.go publishes",
		"docker compose":                     "needs a container engine",
		"kubectl ":                           "needs a cluster",
		"for role in":                        "needs a cluster",
		"NATS_NKEY=edge.nk":                  "edge_test.go runs the script",
		"registry serve --stream EDGE":       "edge_test.go starts it",
		"registry serve --min-entries N":     "cmd/registry/internal/serve/bootstrap_test.go waits for enough entries",
		"registry snapshot restore FILE":     "needs a stopped server; cmd/registry/testdata/snapshots.txtar does it",
		"registry recover --into EPOCH":      "needs another stream; cmd/registry/testdata/recover.txtar has one",
		"curl -s http://127.0.0.1:8081":      "needs that port; the other tests ask /projection",
		"registry publish --nats-url tls://": "tls_test.go publishes so",
		"registry serve":                     "the tests start it",
	}
}

// commandsOf returns the commands of a page's indented blocks, each in a line, and then those of the program in its tables and
// sentences. There a command without arguments is its name: it must have help.
func commandsOf(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	for _, line := range regexp.MustCompile(`(?m)^ {4,7}((?:registry|go|sudo|docker|kubectl|for|curl|jq|[A-Z_]+=\S+ (?:sh|go)) .*)$`).FindAllStringSubmatch(joined, -1) {
		all = append(all, line[1])
	}
	for _, span := range regexp.MustCompile("`(registry [a-z][^`]*)`").FindAllStringSubmatch(string(text), -1) {
		line := strings.Join(strings.Fields(span[1]), " ")
		if !strings.ContainsAny(line, "-.ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			line += " --help"
		}
		all = append(all, line)
	}
	return all
}

// The commands of README.md, cluster.md and operating.md work in the order in which they stand there, in a shell, against a server. Each
// that cannot run here is left out with a reason.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	program(t, "jq")
	address, err := eventstest.Address()
	require.NoError(t, err)
	r := serve(t, "--min-entries=0", "--embedded-nats-addr="+address)
	require.NoError(t, r.WaitReady(t.Context()))
	eventstest.Publish(t, eventstest.Dial(t, r.NATS), eventstest.Events(50, 1)...)
	await(t, r.Admin+"/projection", `"checkpoint":50,`)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(registry, filepath.Join(dir, "registry")))
	sh := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "REGISTRY_NATS_URL=nats://"+address,
			"REGISTRY_ADMIN_ADDR="+r.AdminAddr())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	sh("registry snapshot create && registry snapshot create --output registry.snapshot && registry export --removals --output removals.ndjson")
	name := regexp.MustCompile(`(?m)^REGISTRY\S+`).FindString(sh("registry snapshot list"))
	fill := strings.NewReplacer("FILE", "registry.snapshot", "NAME", name, "--admin-addr …", "")
	used := map[string]bool{}
	ran := 0
	for _, line := range slices.Concat(commandsOf(t, "README.md"), commandsOf(t, "cluster.md"), commandsOf(t, "operating.md")) {
		isLeftOut := false
		for begin := range leftOut() {
			if strings.HasPrefix(line, begin) && !strings.HasSuffix(line, " --help") {
				isLeftOut = true
				used[begin] = true
			}
		}
		if isLeftOut {
			continue
		}

		line, _, _ = strings.Cut(line, "  #")
		if strings.HasPrefix(line, "registry recover") && !strings.Contains(line, "--dry-run") && !strings.HasSuffix(line, " --help") {
			line += " --yes" // which a person would be asked
		}
		sh(fill.Replace(line))
		ran++
	}
	require.GreaterOrEqual(t, ran, 15, "commands were run")
	for begin := range leftOut() {
		require.True(t, used[begin], "no page has %q any more", begin)
	}
}
