package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "example.org/registry/"

// arrows is DESIGN.md's "one direction, no cycles": the rooms that each room may import.
func arrows() map[string][]string {
	return map[string][]string{
		"events":       {},
		"readmodel":    {"events"},
		"snapshots":    {"events", "readmodel"},
		"projector":    {"events", "readmodel"},
		"httpapi":      {"events", "readmodel"},
		"cmd/registry": {"events", "readmodel", "snapshots", "projector", "httpapi"},
		"cmd/soak":     {"events"}, // tries the program from outside, for long
		"deploy":       {},         // tries the program from outside
	}
}

// strangers are what a room must not know, by prefix of the import path.
func strangers() map[string][]string {
	web := []string{"net/http", "github.com/gin-gonic/"}
	return map[string][]string{
		"events":    append(web, "go.etcd.io/bbolt"),
		"readmodel": append(web, "go.etcd.io/bbolt", "github.com/nats-io/"),
		"snapshots": append(web, "github.com/nats-io/nats-server/"),
		"projector": append(web, "go.etcd.io/bbolt", "github.com/nats-io/nats-server/"),
		"httpapi":   {"go.etcd.io/bbolt", "github.com/nats-io/"},
	}
}

// testsMay is what tests may use beyond their room's arrows: the real broker, and the store
// behind a projector.
func testsMay(room string) []string {
	switch room {
	case "projector":
		return []string{"snapshots"}
	case "deploy":
		return []string{"events"} // names of streams, and events to publish
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
		if err != nil {
			t.Fatal(err)
		}
	}
}

// isTest is true for tests and what only tests use.
func isTest(room, path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.Contains(path, "eventstest") || room == "cmd/soak"
}

// roomOf is the room that an import path belongs to; empty outside the module.
func roomOf(imported string) string {
	rest, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	if strings.HasPrefix(rest, "cmd/") {
		return rest
	}
	room, _, _ := strings.Cut(rest, "/")
	return room
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

// TestStrangers keeps NATS, bbolt and HTTP out of the rooms that are to know nothing of them.
func TestStrangers(t *testing.T) {
	eachImport(t, func(room, file, imported string, test bool) {
		if test || strings.Contains(file, filepath.Join("events", "broker")) {
			return // the embedded broker is of the room that knows the stream
		}
		for _, stranger := range strangers()[room] {
			if strings.HasPrefix(imported, stranger) {
				t.Errorf("%s: %s must not know %s", file, room, imported)
			}
		}
	})
}
