package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// vectorsFile has what clients in any language can be tested with. The page /boty/zakresy links to it.
const vectorsFile = "site/assets/vectors.json"

// vectors is that file. Registry, the ids of IDs, and Answers are written by hand; the server says
// the rest: go test ./httpapi -run TestVectors -update.
type vectors struct {
	About    string            `json:"about"`
	Version  string            `json:"version"`
	Registry []vectorEntry     `json:"registry"`
	IDs      []vectorID        `json:"ids"`
	Ranges   map[string]string `json:"ranges"`
	Answers  []vectorAnswers   `json:"answers"`
}

type vectorEntry struct {
	List     events.List `json:"list"`
	ID       string      `json:"id"`
	Verified bool        `json:"verified"`
}

type vectorID struct {
	ID     string `json:"id"`
	Hash   string `json:"hash"`
	Prefix string `json:"prefix"`
	Suffix string `json:"suffix"`
	Bits   string `json:"bits"`
}

// vectorAnswers is one case of a bot: what it is answered, and what it has to say then.
type vectorAnswers struct {
	Name    string        `json:"name"`
	ID      string        `json:"id"`
	Range   *vectorAnswer `json:"range,omitempty"` // nil: what the registry answers
	Check   *vectorAnswer `json:"check,omitempty"`
	Asks    bool          `json:"asks"` // the bot asks a check
	Verdict string        `json:"verdict"`
}

type vectorAnswer struct {
	Status int     `json:"status"`
	Age    *int    `json:"age,omitempty"`  // seconds; nil: the answer has no Registry-As-Of
	Body   *string `json:"body,omitempty"` // nil: what the registry answers
}

func readVectors(t testing.TB) (v vectors, text []byte) {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &v))
	return v, text
}

// serveVectors serves the registry of the vectors, and nobody else.
func serveVectors(t testing.TB, v vectors) *fixture {
	f := serve(t, withSite)
	for _, e := range v.Registry {
		id := fmt.Sprintf("%x", e.ID+string(e.List))
		f.apply(events.Entry{Revision: 1, List: e.List, EntryID: id[max(0, len(id)-64):], ChatID: e.ID, Name: "v", Verified: e.Verified, ReportID: "v", ReportedAt: asOf()})
	}
	return f
}

// The vectors are what the server answers.
func TestVectors(t *testing.T) {
	t.Parallel()
	v, text := readVectors(t)
	f := serveVectors(t, v)
	v.Ranges = map[string]string{}
	for i, x := range v.IDs {
		sum := sha256.Sum256([]byte(v.Version + "\n" + x.ID))
		hash := hex.EncodeToString(sum[:])
		x = vectorID{ID: x.ID, Hash: hash, Prefix: hash[:3], Suffix: hash[3:29], Bits: "00"}
		body := f.get(t, "/api/ranges/"+x.Prefix).body
		if _, after, found := strings.Cut(body, x.Suffix+":"); found {
			x.Bits = after[:2]
		}
		if v.IDs[i] = x; x.Bits != "00" {
			v.Ranges[x.Prefix] = body
		}
	}
	var made bytes.Buffer
	out := json.NewEncoder(&made)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	require.NoError(t, out.Encode(v))
	if *update {
		require.NoError(t, os.WriteFile(vectorsFile, made.Bytes(), 0o644))
	} else if !bytes.Equal(text, made.Bytes()) {
		t.Errorf("%s is not what the server answers; write it anew with -update", vectorsFile)
	}
	var version struct{ Version string }
	if err := json.Unmarshal([]byte(f.get(t, "/api/ranges").body), &version); err != nil || version.Version != v.Version {
		t.Errorf("the version is %q, %v", version.Version, err)
	}
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

// The bots of the page /boty/zakresy are run as they stand on it. They say what the vectors want, name nobody
// who is on no list, ask nothing where the id was lost, and ask for no range twice.
func TestBotsOfTheAPIPage(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	v, _ := readVectors(t)
	f := serveVectors(t, v)
	front := &botFront{f: f, answers: v.Answers}
	server := httptest.NewServer(front)
	defer server.Close()
	page := f.getFrom(t, "http://"+f.addr+"/boty/zakresy")
	page = strings.ReplaceAll(page, "http://"+f.addr, server.URL)
	keep := regexp.MustCompile(`(?mi)^((?:const )?\s*keep\s*=\s*)30`)
	for language, command := range map[string][]string{
		"go": {program(t, "go"), "run"}, "mjs": {program(t, "node")}, "py": {program(t, "python3")},
		"sh": {program(t, "env"), "XDG_CACHE_HOME=.", program(t, "sh")}, // where its local list is
	} {
		program(t, "curl")
		t.Run(language, func(t *testing.T) {
			dir := t.TempDir()
			code := exampleOf(t, page, "bot-"+language)
			impatient := keep.ReplaceAllString(code, "${1}0")
			if impatient == code {
				t.Fatal("the bot has no keep = 30")
			}
			writeFile(t, dir, "bot."+language, code)
			writeFile(t, dir, "impatient."+language, impatient)
			run := func(name string, ids ...string) (said []string) {
				t.Helper()
				args := append(append(command[1:len(command):len(command)], name+"."+language), ids...)
				stdout, stderr := outputs(t, dir, 0, command[0], args...)
				said = strings.Split(strings.TrimSpace(stdout), "\n")
				unknown, reasons := strings.Count(stdout, "nie wiadomo"), strings.Split(strings.TrimSpace(stderr), "\n")
				if unknown > 0 && (len(reasons) != unknown || !strings.Contains(reasons[0], ": 503")) {
					t.Errorf("%d reasons for %d verdicts that are unknown:\n%s", len(reasons), unknown, stderr)
				}
				return said
			}
			front.reset()
			var ids []string
			for _, a := range v.Answers {
				ids = append(ids, a.ID)
			}
			for i, line := range run("bot", ids...) {
				a := v.Answers[i]
				if want := a.ID + " " + a.Verdict; strings.TrimSpace(line) != strings.TrimSpace(want) {
					t.Errorf("%s: says %q, want %q", a.Name, line, want)
				}
				if asks := front.named[a.ID] > 0; asks != a.Asks {
					t.Errorf("%s: named in a check: %v", a.Name, asks)
				}
				if front.asked[prefixOf(a.ID)] > 1 {
					t.Errorf("%s: %d requests for the range", a.Name, front.asked[prefixOf(a.ID)])
				}
			}
			// The second time the local list answers, or a 304 does.
			twice := []string{v.Answers[0].ID, v.Answers[1].ID}
			for name, again := range map[string]int{"bot": 0, "impatient": 2} {
				front.reset()
				for i, line := range run(name, append(twice, twice...)...) {
					if a := v.Answers[i%2]; line != a.ID+" "+a.Verdict {
						t.Errorf("%s, asked again of %s: %q", name, a.Name, line)
					}
				}
				if front.known < again || again == 0 && front.asked[prefixOf(twice[0])] > 1 {
					t.Errorf("%s: %d answers were 304, ranges asked for: %v", name, front.known, front.asked)
				}
			}
			if len(front.faults) > 0 {
				t.Error(front.faults)
			}
		})
	}
}
