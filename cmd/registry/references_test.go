package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReferences looks for references that lead nowhere: pages, their headings, and tests that pages and
// comments name.
func TestReferences(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.md", "*.go", "*.yaml", "*.yml", "*.conf", "*.html").Output()
	require.NoError(t, err)
	files := strings.Fields(string(out))
	anchors, tests := map[string]bool{}, map[string]bool{}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		texts[file] = string(text)
		for _, heading := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(string(text), -1) {
			anchors[file+"#"+anchorOf(heading[1])] = true
		}
		for _, test := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)`).FindAllStringSubmatch(string(text), -1) {
			tests[test[1]] = true
		}
	}

	pages := regexp.MustCompile(`([\w./-]+\.md)(#[\w-]+)?`)
	names := regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*\b`)
	for file, text := range texts {
		if filepath.Ext(file) == ".go" {
			text = commentsOf(text)
		}
		for _, ref := range pages.FindAllStringSubmatch(text, -1) {
			page, ok := findPage(root, file, ref[1])
			if !ok || ref[2] != "" && !anchors[page+ref[2]] {
				t.Errorf("%s refers to %s, which is not there", file, ref[0])
			}
		}
		for _, name := range names.FindAllString(text, -1) {
			if !tests[name] {
				t.Errorf("%s refers to %s, and no test has that name", file, name)
			}
		}
	}
}

// anchorOf is the name that renderers of Markdown give a heading.
func anchorOf(heading string) string {
	kept := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(strings.TrimSpace(kept), " ", "-")
}

// commentsOf returns the lines of Go code that are comments.
func commentsOf(code string) string {
	return strings.Join(regexp.MustCompile(`(?m)^\s*//.*$`).FindAllString(code, -1), "\n")
}

// findPage returns the page that a reference leads to, as seen from the file, a folder above it or the
// root.
func findPage(root, file, page string) (string, bool) {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, page)
		if _, err := os.Stat(filepath.Join(root, found)); err == nil {
			return found, true
		}
		if dir == "." {
			return "", false
		}
	}
}
