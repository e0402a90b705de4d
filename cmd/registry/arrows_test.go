package main

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "example.org/registry/"

// arrows are the rooms that each room may import: one direction, no cycles.
func arrows() map[string][]string {
	return map[string][]string{
		"events":       {},
		"readmodel":    {"events"},
		"snapshots":    {"events", "readmodel"},
		"projector":    {"events", "readmodel"},
		"httpapi":      {"events", "readmodel"},
		"cmd/registry": {"events", "readmodel", "snapshots", "projector", "httpapi"},
		"deploy":       {}, // tries the program from outside
	}
}

// unreachable returns what packages must not import, themselves or through others, by prefix of the
// import path. NATS's client library imports net/http, so packages that use it cannot be kept from
// that.
func unreachable() map[string][]string {
	web, store, broker := []string{"net/http", "github.com/gin-gonic/"}, "go.etcd.io/bbolt", "github.com/nats-io/"
	server := broker + "nats-server/"
	return map[string][]string{
		"events":        append(web, store, broker),
		"events/...":    {"github.com/gin-gonic/", store},
		"readmodel":     append(web, store, broker), // the index of ranked search has a bbolt of its own
		"readmodel/...": append(web, broker),
		"snapshots":     append(web, broker),
		"snapshots/...": {"github.com/gin-gonic/", server},
		"projector/...": {"github.com/gin-gonic/", store, server},
		"httpapi/...":   {store, broker},
	}
}

// testsMay returns what tests may import beyond their room's arrows: the real broker, and the store
// of a projector.
func testsMay(room string) []string {
	switch room {
	case "projector":
		return []string{"snapshots"}
	case "deploy":
		return []string{"events", "cmd/registry"} // names of streams, events to publish, registrytest
	}
	return nil
}

// eachImport calls fn for every import of every Go file below the rooms.
func eachImport(t *testing.T, fn func(room, file, imported string, test bool)) {
	t.Helper()
	root := filepath.Join("..", "..")
	for room := range arrows() {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range file.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				fn(room, path, name, isTest(room, path))
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// isTest is true for tests and what only tests use.
func isTest(room, path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.Contains(path, "eventstest") || strings.Contains(path, "registrytest")
}

// roomOf is the room that an import path belongs to; empty outside the module.
func roomOf(imported string) string {
	rest, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	parts := strings.SplitN(rest, "/", 3)
	if parts[0] == "cmd" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// TestArrows compares every import between rooms with the arrows.
func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	eachImport(t, func(room, file, imported string, test bool) {
		target := roomOf(imported)
		if target == "" || target == room {
			return
		}
		seen[room+" "+target] = true
		if !slices.Contains(arrows()[room], target) && !(test && slices.Contains(testsMay(room), target)) {
			t.Errorf("%s: %s must not import %s", file, room, imported)
		}
		if !test && imported == module+"events/eventstest" {
			t.Errorf("%s: test helpers in the program", file)
		}
	})
	for _, want := range []string{"readmodel events", "httpapi readmodel", "snapshots readmodel", "cmd/registry projector"} {
		if !seen[want] {
			t.Errorf("the arrow %q was never seen: is this test reading the rooms?", want)
		}
	}
}

// TestRings keeps ranked search out of the model: it lags, and the model does without it.
func TestRings(t *testing.T) {
	rings := 0
	eachImport(t, func(room, file, imported string, test bool) {
		outside := strings.HasPrefix(imported, module+"readmodel/ranked") ||
			strings.HasPrefix(imported, module+"readmodel/indexing")
		if filepath.Dir(file) != filepath.Join("..", "..", "readmodel") || test {
			return
		}
		if rings++; outside {
			t.Errorf("%s must not import %s", file, imported)
		}
	})
	if rings < 100 {
		t.Errorf("readmodel has %d imports: is this test reading them?", rings)
	}
}

// TestUnreachable keeps NATS, bbolt and HTTP out of the packages that are to know nothing of them.
func TestUnreachable(t *testing.T) {
	for packages, strangers := range unreachable() {
		for imported, chain := range dependencies(t, module+packages) {
			for _, stranger := range strangers {
				if strings.HasPrefix(imported, stranger) {
					t.Errorf("%s must not know %s: %s", packages, imported, strings.Join(chain, " -> "))
				}
			}
		}
	}
}

// dependencies are all that packages import, themselves and through others, tests apart: each with
// the shortest way to it.
func dependencies(t *testing.T, packages string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,DepOnly", packages).Output()
	require.NoError(t, err)
	imports, ways := map[string][]string{}, map[string][]string{}
	var queue []string
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
			DepOnly    bool
		}
		require.NoError(t, dec.Decode(&p))
		if imports[p.ImportPath] = p.Imports; !p.DepOnly {
			ways[p.ImportPath], queue = []string{p.ImportPath}, append(queue, p.ImportPath)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		if from == "golang.org/x/net/publicsuffix" {
			continue // a table; it names net/http/cookiejar for an interface alone
		}
		for _, to := range imports[from] {
			if ways[to] == nil {
				ways[to] = append(slices.Clone(ways[from]), to)
				queue = append(queue, to)
			}
		}
	}
	if len(ways) < 10 {
		t.Fatalf("%s imports %d packages: is this test reading them?", packages, len(ways))
	}
	return ways
}
