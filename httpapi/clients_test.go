//go:build nightly

package httpapi

import (
	"bytes"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// The programs of the pages do as they say. .ci/nightly installs the languages; without them these tests are skipped, unless
// CI=true.

// notInstalled skips the test for want of a program, or fails it where .ci/nightly should have installed it.
func notInstalled(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: .ci/nightly installs it", what)
	}
	t.Skipf("left out: %s is missing", what)
}

// program is the path of a program of the system.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		notInstalled(t, name)
	}
	return path
}

// outputs runs a program in dir and returns its standard output and error. It fails the test unless the program ends with 0.
func outputs(t testing.TB, dir, name string, args ...string) (out, errors string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(name), err, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// The examples of the page /api are run as they stand on it.
func TestExamplesOfTheAPIPage(t *testing.T) {
	f := serve(t, withSite)
	page, dir := f.getFrom(t, "http://"+f.addr+"/api"), t.TempDir()
	for _, language := range []string{"sh", "mjs", "py", "go"} {
		writeFile(t, dir, "check."+language, exampleOf(t, page, language))
	}
	list := func(verified bool) {
		f.apply(events.Entry{Revision: 1, List: events.Servers, EntryID: "e", ChatID: "99016474520097277832", Name: "x", Verified: verified, ReportID: "v", ReportedAt: asOf()})
	}
	for _, state := range []struct {
		says   string // "" for a failure
		change func()
	}{
		{"brak wpisu", func() {}},
		{"powiadom moderatora", func() { list(false) }},
		{"ostrzeż", func() { list(true) }},
		{"", func() { f.set(func(r *Readiness) { r.Ready = false }) }},
	} {
		state.change()
		for _, command := range [][]string{{"node", "check.mjs"}, {"python3", "check.py"}, {"go", "run", "check.go"}, {"sh", "check.sh"}} {
			cmd := exec.CommandContext(t.Context(), program(t, command[0]), command[1:]...)
			cmd.Dir = dir
			out, _ := cmd.Output() // scripts end with an error where nothing is known
			says := strings.HasPrefix(string(out), state.says) && state.says != ""
			if command[0] == "sh" {
				says = strings.Contains(string(out), `"results"`)
			}
			if says != (state.says != "") {
				t.Errorf("%s says %q, want %q", command[1], out, state.says)
			}
		}
	}
}

// exampleOf is the text of an example of a page.
func exampleOf(t *testing.T, page, name string) string {
	t.Helper()
	_, after, found := strings.Cut(page, `data-example="`+name+`">`)
	code, _, ended := strings.Cut(after, "</code>")
	if !found || !ended {
		t.Fatalf("no example %q on the page", name)
	}
	return html.UnescapeString(regexp.MustCompile(`</?span[^>]*>`).ReplaceAllString(code, ""))
}

// getFrom is the body at an address that leads to f.
func (f *fixture) getFrom(t *testing.T, address string) string {
	t.Helper()
	resp, err := f.client.Get(address)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", address, resp.StatusCode, err)
	}
	return string(text)
}

// botFront answers bots as the vectors say, and knows whom they named.
type botFront struct {
	f       *fixture
	answers []vectorAnswers

	mu     sync.Mutex
	asked  map[string]int // paths of ranges, conditional or not
	known  int            // answered with 304
	named  map[string]int // ids of checks
	faults []string
}

func (b *botFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	given := httptest.NewRecorder()
	b.f.public.ServeHTTP(given, r)
	var instead *vectorAnswer
	id := r.URL.Query().Get("id")
	switch prefix, ofRange := strings.CutPrefix(r.URL.Path, "/api/ranges/"); {
	case ofRange:
		b.asked[prefix]++
		for _, a := range b.answers {
			if a.Range != nil && prefixOf(a.ID) == prefix {
				instead = a.Range
			}
		}
	case r.URL.Path == "/api/check":
		b.named[id]++
		if r.Header.Get("Registry-Min-Sequence") == "" {
			b.faults = append(b.faults, "a check that may be older than its range")
		}
		for _, a := range b.answers {
			if a.ID == id {
				instead = a.Check
			}
		}
	default:
		b.faults = append(b.faults, r.URL.Path)
	}
	status, body, age := given.Code, given.Body.String(), new(int)
	if instead != nil {
		status, age = instead.Status, instead.Age
		if instead.Body != nil {
			body = *instead.Body
		}
	}
	maps.Copy(w.Header(), given.Header())
	w.Header().Del("Content-Length")
	w.Header().Del("Registry-As-Of")
	if age != nil {
		w.Header().Set("Registry-As-Of", time.Now().UTC().Add(-time.Duration(*age)*time.Second).Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if status == http.StatusNotModified {
		b.known++
		body = ""
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (b *botFront) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked, b.named, b.known, b.faults = map[string]int{}, map[string]int{}, 0, nil
}

// The programs for ranges say what the vectors want, name nobody who is on no list, ask nothing where
// the id was lost, and ask for no range twice.
func TestRangePrograms(t *testing.T) {
	v, _ := readVectors(t)
	front := &botFront{f: serveVectors(t, v), answers: v.Answers}
	server := httptest.NewServer(front)
	defer server.Close()
	for name, interpreter := range map[string]string{"ranges.mjs": "node", "ranges.py": "python3"} {
		dir := t.TempDir()
		writeFile(t, dir, name, front.f.getFrom(t, server.URL+"/boty/"+name))
		args := []string{name}
		for _, a := range v.Answers {
			args = append(args, a.ID)
		}
		front.reset()
		stdout, stderr := outputs(t, dir, program(t, interpreter), args...)
		said := strings.Split(strings.TrimSpace(stdout), "\n")
		for i, a := range v.Answers {
			if want := a.ID + " " + a.Verdict; strings.TrimSpace(said[i]) != strings.TrimSpace(want) {
				t.Errorf("%s, %s: says %q, want %q\n%s", name, a.Name, said[i], want, stderr)
			}
			if asks := front.named[a.ID] > 0; asks != a.Asks || front.asked[prefixOf(a.ID)] > 1 {
				t.Errorf("%s, %s: named in a check: %v, %d requests for the range", name, a.Name, asks, front.asked[prefixOf(a.ID)])
			}
		}
		if len(front.faults) > 0 {
			t.Error(name, front.faults)
		}
	}
}
