package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

// vectorsFile has what clients in any language can be tested with. The page /boty links to it.
const vectorsFile = "site/bots/vectors.json"

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
