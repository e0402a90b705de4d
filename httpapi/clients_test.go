//go:build nightly

package httpapi

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// What people write clients with takes openapi.yaml: a generator of TypeScript, and the programs of
// the pages. .ci/nightly installs the programs; without them these tests are skipped, unless CI=true.

// notInstalled skips the test for want of a program, or fails it where .ci/run should have
// installed that.
func notInstalled(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: .ci/run installs it", what)
	}
	t.Skipf("left out: %s is missing", what)
}

// notWithRace skips the test with the race detector, which sees nothing of other programs.
func notWithRace(t testing.TB) {
	t.Helper()
	if eventstest.RaceDetector {
		t.Skip("left out with the race detector: it sees nothing of other programs")
	}
}

// program is the path of a program of the system.
func program(t testing.TB, name string) string {
	t.Helper()
	notWithRace(t)
	path, err := exec.LookPath(name)
	if err != nil {
		notInstalled(t, name)
	}
	return path
}

// npmProgram is the path of a program of .ci/npm/package.json, installed in the directory
// REGISTRY_NPM.
func npmProgram(t testing.TB, name string) string {
	t.Helper()
	notWithRace(t)
	path := filepath.Join(os.Getenv("REGISTRY_NPM"), "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil || os.Getenv("REGISTRY_NPM") == "" {
		notInstalled(t, name+" below REGISTRY_NPM")
	}
	return path
}

// output runs a program in dir and returns its standard output. It fails the test unless the
// program ends with status.
func output(t testing.TB, dir string, status int, name string, args ...string) string {
	t.Helper()
	text, _ := outputs(t, dir, status, name, args...)
	return text
}

// outputs is output, with what the program wrote on stderr.
func outputs(t testing.TB, dir string, status int, name string, args ...string) (out, errors string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		t.Fatalf("%s: %v, want status %d\n%s%s", filepath.Base(name), err, status, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// An example of every status that the tests can cause, for programs in typed languages: paths of
// GET requests.
func typedRequests(c *contract) (targets []string) {
	for _, path := range slices.Sorted(maps.Keys(c.doc["paths"].(map[string]any))) {
		op, _ := c.node("/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get")
		examples, _ := op["x-examples"].([]any)
		for _, e := range examples {
			targets = append(targets, e.(map[string]any)["path"].(string))
		}
		if !strings.Contains(path, "{") {
			targets = append(targets, path, path+"?id=1&search=1&q=1", path+"?id=%FF&search=%FF&q=%FF&skip=x")
		}
	}
	return append(targets, "/api/check?search=LUKASZ", "/api/check?search=n", "/api/chat/avatar/a?size=3", "/proofs/p-1")
}

// The TypeScript types made of the document fit the responses: a program that assigns each response
// to the type of its path and status compiles, and one that assigns another value does not.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	generate, tsc := npmProgram(t, "openapi-typescript"), npmProgram(t, "tsc")
	f := serve(t)
	dir := t.TempDir()
	writeFile(t, dir, "openapi.yaml", openAPIFile)
	output(t, dir, 0, generate, "openapi.yaml", "--output=registry.ts")
	program, checked := typedProgram(t, f)
	for path := range f.contract.doc["paths"].(map[string]any) {
		if !checked[path] {
			t.Errorf("no answer of %s is in the program", path)
		}
	}
	writeFile(t, dir, "answers.ts", program)
	output(t, dir, 0, tsc, "--strict", "--noEmit", "--target", "es2022", "answers.ts")
	writeFile(t, dir, "answers.ts", strings.Replace(program, `"hasMore":`, `"hasmore":`, 1))
	output(t, dir, 2, tsc, "--strict", "--noEmit", "--target", "es2022", "answers.ts")
}

// typedProgram asks for everything and writes each answer down as a constant of its type.
func typedProgram(t *testing.T, f *fixture) (program string, paths map[string]bool) {
	var out strings.Builder
	out.WriteString(`import type { paths } from "./registry";

type Responses<P extends keyof paths> = paths[P]["get"]["responses"];
type Content<R> = R extends { content: infer C } ? C[keyof C] : never;
type Body<P extends keyof paths, S extends keyof Responses<P>> = Content<Responses<P>[S]>;
`)
	paths = map[string]bool{}
	for i, target := range append(typedRequests(f.contract), "/api/donate/status?id=d-1") {
		a := f.fetch(t, http.MethodGet, target)
		path, _, _ := strings.Cut(target, "?")
		path = f.contract.pathOf(path)
		paths[path] = true
		if !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			fmt.Fprintf(&out, "export type A%d = Responses<%q>[%d];\n", i, path, a.status)
			continue
		}
		fmt.Fprintf(&out, "export const a%d: Body<%q, %d> = %s;\n", i, path, a.status, a.body)
		fmt.Fprintf(&out, "// @ts-expect-error another value than the answer's\nexport const b%d: Body<%q, %d> = [];\n", i, path, a.status)
	}
	out.WriteString(`
type Change = Body<"/api/changes/{epoch}", 200>["changes"][number];
export function fold(lists: Map<string, string>, c: Change) {
	if (c.op === "set") lists.set(c.entry._id, c.entry.name + c.reportedAt);
	else lists.delete(c._id);
}
export const ids: paths["/api/check/batch"]["get"]["parameters"]["query"]["ids"] = ["1", "2"];
`)
	return out.String(), paths
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
		stdout, stderr := outputs(t, dir, 0, program(t, interpreter), args...)
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
