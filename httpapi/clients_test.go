package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/apidoc"
)

// What people write clients with takes openapi.yaml: a linter, a generator of TypeScript, one of
// Go. .ci/run installs the programs; without them these tests are skipped, unless CI=true.

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

// The linter finds nothing, not even a warning, and would have found an operation without an id.
func TestLinter(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	redocly := npmProgram(t, "redocly")
	lint := func(document string, status int) int {
		dir := t.TempDir()
		writeFile(t, dir, "openapi.yaml", document)
		text := output(t, dir, status, redocly, "lint", "--extends=recommended-strict", "--format=json", "openapi.yaml")
		var found struct {
			Problems []struct{ RuleID, Message string }
		}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if status == 0 && len(found.Problems) > 0 {
			t.Error(text)
		}
		return len(found.Problems)
	}
	lint(openAPIFile, 0)
	if n := lint(strings.Replace(openAPIFile, "      operationId: check\n", "", 1), 1); n != 1 {
		t.Errorf("%d problems found where an operationId is missing", n)
	}
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
	eventstest.Long(t)
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

// The Go client that is generated from the document calls every operation, and its types are those
// of the answers.
func TestGoClient(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	f := serve(t)
	const source = "testdata/goclient"
	cmd := exec.CommandContext(t.Context(), program(t, "go"), "tool", "-n", "oapi-codegen")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GOPROXY=off", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		notInstalled(t, fmt.Sprintf("oapi-codegen (%s)", text))
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
	writeFile(t, dir, "openapi.yaml", openAPIFile)
	output(t, dir, 0, "go", "tool", "oapi-codegen", "-config=oapi-codegen.yaml", "-o=client.gen.go", "openapi.yaml")
	output(t, dir, 0, "go", "run", ".", "http://"+f.addr)
}

// exampleID is whom the examples of the page ask for.
const exampleID = "99016474520097277832"

// The examples of the page /api are run as they stand on it, with the address that it was asked at,
// against a server in each of its states.
func TestExamplesOfTheAPIPage(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	f := serve(t, withSite)
	front := newExampleFront(t, f)
	dir := t.TempDir()
	page := f.getFrom(t, front.URL+"/api")
	for _, language := range []string{"sh", "mjs", "py", "go"} {
		code := exampleOf(t, page, "check-"+language)
		if !strings.Contains(code, front.URL+"/api/check?id=") || !strings.Contains(code, exampleID) {
			t.Errorf("%s does not ask at %s for %s:\n%s", language, front.URL, exampleID, code)
		}
		writeFile(t, dir, "check."+language, code)
	}
	output(t, dir, 0, program(t, "go"), "build", "-o", "check", "check.go")
	languages := map[string][]string{
		"Go": {filepath.Join(dir, "check")}, "JavaScript": {program(t, "node"), "check.mjs"}, "Python": {program(t, "python3"), "check.py"},
	}
	curl := []string{program(t, "sh"), "check.sh"}
	program(t, "curl")
	listed := func(l events.List, verified bool) func() {
		return func() {
			f.apply(events.Entry{Revision: 1, List: l, EntryID: "demo-01647", ChatID: exampleID, Name: "Darmowe Nitro PL", Verified: verified,
				Reason: "Serwer sprzedaje konto z rangą za 35 zł, a zgłoszenia o braku towaru są usuwane razem z kontem zgłaszającego.",
				Proofs: events.Proofs{ID: "Z-101647"}, ReportID: "Z-101647", ReportedAt: asOf()})
		}
	}
	delisted := func(l events.List) {
		f.apply(events.Delisting{Revision: 1, Time: eventstest.Start(), List: l, EntryID: "demo-01647"})
	}
	for _, c := range []struct {
		name, want string
		state      func()
	}{
		{"nobody", "brak wpisu", func() {}},
		{"risk", "powiadom moderatora", listed(events.Scammers, false)},
		{"verified", "ostrzeż", listed(events.Scammers, true)},
		{"risky server", "powiadom moderatora", func() { delisted(events.Scammers); listed(events.Servers, false)() }},
		{"verified server", "ostrzeż", listed(events.Servers, true)},
		{"trusted", "brak wpisu", func() { delisted(events.Servers); listed(events.Legit, true)() }},
		{"loading", "nie wiadomo", func() { f.set(func(r *Readiness) { r.Ready = false }) }},
		{"another server", "nie wiadomo", func() { front.answer("<html>Zaloguj się do sieci</html>") }},
		{"no results", "nie wiadomo", func() { front.answer("{}") }},
		{"no answer", "nie wiadomo", front.Close},
	} {
		c.state()
		for language, command := range languages {
			if got := strings.TrimSpace(output(t, dir, 0, command[0], command[1:]...)); got != c.want {
				t.Errorf("%s: %s says %q, want %q", c.name, language, got, c.want)
			}
		}
		got := strings.TrimSpace(output(t, dir, 0, curl[0], curl[1:]...))
		switch want := f.fetch(t, http.MethodGet, "/api/check?id="+exampleID).body; {
		case c.name == "loading" || c.name == "no answer":
			if got != c.want {
				t.Errorf("%s: curl says %q, want %q", c.name, got, c.want)
			}
		case c.want != "nie wiadomo" && got != want:
			t.Errorf("%s: curl says %q, want %q", c.name, got, want)
		}
		if c.name == "verified server" && !sameJSON(t, got, exampleOf(t, page, "json")) {
			t.Errorf("the sample answer is not that of a server: %s", got)
		}
	}
}

// The examples of the page /api ask nothing where the id was lost, and do not say that nobody is
// listed.
func TestExamplesOfTheAPIPageGuardThemselves(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	f := serve(t, withSite)
	front := newExampleFront(t, f)
	page := f.getFrom(t, front.URL+"/api")
	front.answer(`{"results":[]}`) // as a service that knows nothing of lost values
	lost := map[string][]string{   // as each language writes them; exampleID in quotes stands for a good one
		"mjs": {"undefined", "null", "NaN", "{}", "[]", `""`, `"undefined"`, `"[object Object]"`, `" "`, exampleID, `"` + exampleID + `\n"`},
		"py":  {"None", `float("nan")`, "{}", `""`, `"None"`, `" "`, `"` + exampleID + `\n"`},
		"go":  {`""`, `"nil"`, `"<nil>"`, `" "`, `"` + exampleID + `\n"`},
		"sh":  {`''`, `'null'`, `' '`, `"$nothing"`},
	}
	commands := map[string][]string{
		"mjs": {program(t, "node"), "check.mjs"}, "py": {program(t, "python3"), "check.py"}, "go": {program(t, "go"), "run", "check.go"}, "sh": {program(t, "sh"), "check.sh"},
	}
	program(t, "curl")
	for language, values := range lost {
		code, dir := exampleOf(t, page, "check-"+language), t.TempDir()
		quoted := `"` + exampleID + `"`
		if language == "sh" {
			quoted = "'" + exampleID + "'"
		}
		for _, value := range append(values, quoted) {
			writeFile(t, dir, "check."+language, strings.ReplaceAll(code, quoted, value))
			asked, want := front.asked.Load(), "nie wiadomo"
			if value == quoted {
				asked, want = asked+1, map[bool]string{true: `{"results":[]}`, false: "brak wpisu"}[language == "sh"]
			}
			if got := strings.TrimSpace(output(t, dir, 0, commands[language][0], commands[language][1:]...)); got != want || front.asked.Load() != asked {
				t.Errorf("%s: check(%s) says %q, want %q, after %d requests", language, value, got, want, front.asked.Load()-asked)
			}
		}
	}
}

// exampleFront is a server in front of f that can answer something else.
type exampleFront struct {
	*httptest.Server
	instead atomic.Pointer[string] // nil: f answers
	asked   atomic.Int64
}

func newExampleFront(t *testing.T, f *fixture) *exampleFront {
	front := &exampleFront{}
	front.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		front.asked.Add(1)
		if text := front.instead.Load(); text != nil {
			_, _ = io.WriteString(w, *text)
			return
		}
		f.public.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front
}

func (f *exampleFront) answer(text string) { f.instead.Store(&text) }

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

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
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

// The page names the address of the service: the configured one, or that of the request.
func TestAPIPageNamesTheAddress(t *testing.T) {
	t.Parallel()
	bare, based := serve(t, withSite), serve(t, withSite, func(c *Config) { c.BaseURL = "https://rejestr.example/" })
	for _, c := range []struct {
		f                 *fixture
		host, proto, want string
	}{
		{bare, "", "", "http://" + bare.addr}, {bare, "rejestr.example:8443", "https", "https://rejestr.example:8443"},
		{bare, "[::1]:8080", "http", "http://[::1]:8080"}, {bare, "REJESTR.example", "ftp", "http://REJESTR.example"},
		{bare, `a"b`, "", apidoc.Address}, {bare, "a<b", "", apidoc.Address}, {based, "other.example", "http", "https://rejestr.example"},
	} {
		req := mustRequest("/api")
		if req.Host = c.f.addr; c.host != "" {
			req.Host = c.host
		}
		if c.proto != "" {
			req.Header.Set("X-Forwarded-Proto", c.proto)
		}
		a := httptest.NewRecorder()
		c.f.public.ServeHTTP(a, req)
		if n := strings.Count(a.Body.String(), c.want+"/api/check?id="); n < 5 {
			t.Errorf("%q %q: %d times %s", c.host, c.proto, n, c.want)
		}
		cache := "private, max-age=300"
		if c.f == based {
			cache = "public, max-age=300"
		}
		if got := a.Header().Get("Cache-Control"); got != cache {
			t.Errorf("%q: Cache-Control %q", c.host, got)
		}
	}
}
