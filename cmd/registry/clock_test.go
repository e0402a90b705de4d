package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clocked is which files of the rooms that make state may look at a clock: the index, a cache, and
// what says when something was last known. The content of the model is a function of events
// (promise 1), so that setting the system's time, forwards or back, changes none of it.
func clocked() map[string][]string {
	return map[string][]string{
		"events":    {"broker.go", "recover.go"},                                                    // a test's broker; how often a broker is started again
		"readmodel": {"keeper.go", "pacer.go", "builder.go", "follower.go", "store.go", "erase.go"}, // of packages indexing, exact and ranked
		"projector": {"gather.go", "loss.go", "mirror.go", "projector.go", "receiver.go", "rejecter.go", "saver.go", "subjects.go", "watch.go"},
	}
}

// The system's clock can be set. What makes state does not ask for it, and no waiting or keeping
// goes by it: Go's times carry a monotonic reading, until it is taken off by way of Unix time or of
// Round(0).
func TestClocks(t *testing.T) {
	seen := 0
	for room := range arrows() {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			now, wall := clocksOf(file)
			if now {
				seen++
			}
			if may, state := clocked()[room]; state && now && !slices.Contains(may, filepath.Base(path)) {
				t.Errorf("%s looks at the clock, and makes state", path)
			}
			if wall {
				t.Errorf("%s takes the monotonic reading off a time of this process", path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	if seen == 0 {
		t.Error("no file looks at a clock: the test sees nothing")
	}
}

// clocksOf says whether a file asks for the time, and whether it makes a time of the clock's Unix
// time, or measures from one.
func clocksOf(file *ast.File) (now, wall bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := timeFunc(call)
		now = now || slices.Contains([]string{"Now", "Since", "Until"}, name)
		if name == "Since" || name == "Until" {
			wall = wall || len(call.Args) == 1 && strings.HasPrefix(timeFunc(call.Args[0]), "Unix")
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && timeFunc(method.X) == "Now" {
			wall = wall || strings.HasPrefix(method.Sel.Name, "Unix") || method.Sel.Name == "Round" || method.Sel.Name == "Truncate"
		}
		return true
	})
	return now, wall
}

// timeFunc is F where n is time.F(…).
func timeFunc(n ast.Expr) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "time" {
		return ""
	}
	return f.Sel.Name
}
