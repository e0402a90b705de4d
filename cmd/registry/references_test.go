package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// citation is a text that readers follow: a comment of Go or of a script, or a page.
type citation struct {
	file, text string // file is relative to the repository's root
	page       bool   // Markdown, where links count too
}

// house is everything in the repository that a reference may name.
type house struct {
	root      string
	citations []citation
	anchors   map[string]map[string]bool // of each Markdown page, by its path
	tests     map[string]bool            // names of tests, benchmarks and fuzz targets
	declared  map[string]bool            // what Go files declare, by folder and name
}

// readHouse reads every comment and page of the repository.
func readHouse(t *testing.T) house {
	t.Helper()
	h := house{root: filepath.Join("..", ".."), anchors: map[string]map[string]bool{}, tests: map[string]bool{}, declared: map[string]bool{}}
	err := filepath.WalkDir(h.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(h.root, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "data" || d.Name() == "data-demo"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(file, ".go"):
			return h.readGo(file)
		case strings.HasSuffix(file, ".md"):
			return h.readPage(file)
		case cited(file):
			return h.readScript(file)
		}
		return nil
	})
	require.NoError(t, err)
	return h
}

// cited is true for the files besides Go and Markdown whose comments people read.
func cited(file string) bool {
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".conf", ".vcl", ".service", ".html", ".css", ".js", ".txtar":
		return true
	}
	return file == filepath.Join(".ci", "run") || strings.HasPrefix(filepath.Base(file), "Dockerfile")
}

func (h *house) readGo(file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(h.root, file), nil, parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, group := range parsed.Comments {
		h.citations = append(h.citations, citation{file: file, text: group.Text()})
	}
	for name := range parsed.Scope.Objects { // functions, types, variables and constants
		h.declared[filepath.Join(filepath.Dir(file), name)] = true
		if test {
			h.tests[name] = true
		}
	}
	return nil
}

func (h *house) readPage(file string) error {
	text, err := os.ReadFile(filepath.Join(h.root, file))
	if err != nil {
		return err
	}
	h.citations = append(h.citations, citation{file: file, text: string(text), page: true})
	h.anchors[file] = map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(string(text), -1) {
		h.anchors[file][anchor(heading[1])] = true
	}
	return nil
}

func (h *house) readScript(file string) error {
	text, err := os.ReadFile(filepath.Join(h.root, file))
	h.citations = append(h.citations, citation{file: file, text: string(text)})
	return err
}

// anchor is the name that renderers of Markdown give a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(strings.TrimSpace(kept), " ", "-")
}

// promises are the numbers of the promises that text names, as "promise 6" or "promises 1, 2 and
// 4".
func promises(text string) []int {
	var numbers []int
	for _, list := range regexp.MustCompile(`(?i)\bpromises?\s+(\d+(?:(?:,\s*|\s+and\s+|\s+or\s+)\d+)*)`).FindAllStringSubmatch(text, -1) {
		for _, digits := range regexp.MustCompile(`\d+`).FindAllString(list[1], -1) {
			n, err := strconv.Atoi(digits)
			if err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

// leads tells whether a reader of file finds path, as seen from the file, its folder's parents or
// the root.
func (h *house) leads(file, path string) (found string, ok bool) {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, path)
		if _, err := os.Stat(filepath.Join(h.root, at)); err == nil {
			return at, true
		}
		if dir == "." {
			return "", false
		}
	}
}

// TestReferences looks for references that lead nowhere: pages, headings, files of Go, promises and
// tests that comments and pages name, and documents that are not in the repository.
func TestReferences(t *testing.T) {
	h := readHouse(t)
	pages := regexp.MustCompile(`([\w./-]+\.md)(?:#([\w-]+))?`)
	sources := regexp.MustCompile(`(\.ci/[\w.-]+\.go|\b[a-z][\w-]*(?:/[\w.-]+)*/[\w.-]+\.go|\b[a-z]\w*\.go)\b`)
	links := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[\w-]+)?\)`)
	docLinks := regexp.MustCompile(`\[([A-Z]\w*)(?:\.\w+)?\]`)
	names := regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*\b`)
	absent := regexp.MustCompile(`(?i)\b(API[ -]contract|API[ -]seed|the seed's|DESIGN\.md|HOUSE\.md)\b`)
	for _, c := range h.citations {
		for _, ref := range pages.FindAllStringSubmatch(c.text, -1) {
			found, ok := h.leads(c.file, ref[1])
			if !ok {
				t.Errorf("%s refers to %s, which is not there", c.file, ref[1])
			} else if ref[2] != "" && !h.anchors[found][ref[2]] {
				t.Errorf("%s refers to %s#%s, and no heading there has that name", c.file, ref[1], ref[2])
			}
		}
		for _, n := range promises(c.text) {
			if n < 1 || n > len(statedPromises(t)) {
				t.Errorf("%s refers to promise %d, which readmodel/doc.go does not state", c.file, n)
			}
		}
		for _, word := range absent.FindAllString(c.text, -1) {
			t.Errorf("%s refers to %q, which is not in the repository", c.file, word)
		}
		for _, name := range names.FindAllString(c.text, -1) {
			if !h.tests[name] {
				t.Errorf("%s refers to %s, and no test has that name", c.file, name)
			}
		}
		for _, ref := range sources.FindAllStringSubmatch(c.text, -1) {
			if _, ok := h.leads(c.file, ref[1]); !ok && !elsewhere(ref[1]) {
				t.Errorf("%s refers to %s, which is not there", c.file, ref[1])
			}
		}
		if filepath.Ext(c.file) == ".go" {
			for _, link := range docLinks.FindAllStringSubmatch(c.text, -1) {
				if !h.declared[filepath.Join(filepath.Dir(c.file), link[1])] {
					t.Errorf("%s refers to [%s], which its package does not declare", c.file, link[1])
				}
			}
		}
		if !c.page {
			continue
		}
		for _, link := range links.FindAllStringSubmatch(c.text, -1) {
			if _, err := os.Stat(filepath.Join(h.root, filepath.Dir(c.file), link[1])); err != nil && !strings.HasPrefix(link[1], "/") {
				t.Errorf("%s links to %s, which is not there", c.file, link[1])
			}
		}
	}
}

// elsewhere names files of Go that comments cite from other projects, whose sources a reader can
// open.
func elsewhere(path string) bool {
	for _, module := range []string{"nats.go", "com/nats-io/", "server/", "jetstream/", "net/http/", "runtime/"} {
		if strings.HasPrefix(path, module) {
			return true
		}
	}
	return false
}

// statedPromises are the numbers that readmodel/doc.go states, in order.
func statedPromises(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "readmodel", "doc.go"))
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^//\s+(\d+)\. `).FindAllString(string(text), -1)
}
