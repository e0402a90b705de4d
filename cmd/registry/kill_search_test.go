package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// searchesAreRight compares searches with those of a model without an index, while the server's index is made
// and once it is complete (promise 6). No two are the same, so that none is remembered.
func (k *killer) searchesAreRight(line logLine, m *readmodel.Model) {
	k.t.Helper()
	asked := map[string]bool{}
	for range 2 {
		for range 40 {
			if needle := k.needle(); !asked[needle] {
				asked[needle] = true
				k.sameSearch(line, m.View(), needle)
			}
		}
		k.indexed(line)
	}
}

// needle is something to search for: a part of a name, a number or a word that may be in many.
func (k *killer) needle() string {
	e := k.pool[k.rng.IntN(len(k.pool))]
	name := []rune(e.Name)
	words := strings.Fields(e.Reason)
	switch at := k.rng.IntN(len(name)); {
	case k.rng.IntN(4) == 0:
		return fmt.Sprint(k.rng.IntN(k.serial + 1))
	case len(words) > 0 && k.rng.IntN(2) == 0:
		return words[k.rng.IntN(len(words))]
	default:
		return string(name[at:min(len(name), at+1+k.rng.IntN(7))])
	}
}

func (k *killer) sameSearch(line logLine, v *readmodel.View, needle string) {
	k.t.Helper()
	if needle = strings.TrimSpace(needle); needle == "" || len(needle) > 100 {
		return
	}
	for _, list := range events.Lists() {
		want, err := v.List(context.Background(), readmodel.ListQuery{List: list, Search: needle, Limit: 60})
		if err != nil {
			k.t.Fatal(err)
		}
		k.sameBody(line, fmt.Sprintf("/api/%s?limit=60&search=%s", list, url.QueryEscape(needle)), want.AppendJSON(nil))
	}
	want, err := v.Check(context.Background(), readmodel.CheckQuery{Search: needle})
	if err != nil {
		k.t.Fatal(err)
	}
	k.sameBody(line, "/api/check?search="+url.QueryEscape(needle), want.AppendJSON(nil))
}

func (k *killer) sameBody(line logLine, path string, want []byte) {
	k.t.Helper()
	status, body, err := ask("http://" + line.HTTP + path)
	if err != nil || status != http.StatusOK || strings.TrimSpace(string(body)) != string(want) {
		k.t.Errorf("%s: %d %v\n got %.300s\nwant %.300s", path, status, err, body, want)
	}
}

// indexed waits until the text index is where the checkpoint is.
func (k *killer) indexed(line logLine) {
	k.t.Helper()
	var doc struct{ Checkpoint, IndexSequence uint64 }
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if k.get("http://"+line.Admin+"/projection", &doc); doc.IndexSequence == doc.Checkpoint {
			return
		}
	}
	k.t.Errorf("not indexed: %+v", doc)
}

// TestIndexFolder: whatever is found in the index's folder at a start, or instead of it, is removed, or, a
// link, not followed; and searches are right (promise 6).
func TestIndexFolder(t *testing.T) {
	t.Parallel()
	k := newFailing(t)
	k.pool = eventstest.Entries(1200, 1)
	c := k.start(0)
	k.acked = publishUntilDead(k.ready(c).NATS, k.events(2000), 1)
	c.end(syscall.SIGKILL)
	folder, elsewhere := filepath.Join(k.dir, "data", "index"), filepath.Join(k.dir, "elsewhere")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(elsewhere, 0o700))
	must(os.WriteFile(filepath.Join(elsewhere, "kept"), []byte("kept"), 0o600))
	for i, mess := range []func(){
		func() { // what a kill, a disk or a bleve index may have left
			must(os.MkdirAll(filepath.Join(folder, "store", "deep"), 0o700))
			for _, name := range []string{"block-1", "block-2", "root.bolt", "store/00000001.zap", "store/deep/x"} {
				must(os.WriteFile(filepath.Join(folder, name), []byte(strings.Repeat("\xff", 4099)), 0o600))
			}
			must(os.Truncate(filepath.Join(folder, "block-2"), 0))
		},
		func() { // what cannot be read, or only by root
			must(os.WriteFile(filepath.Join(folder, "block-1"), []byte("x"), 0))
			must(os.Mkdir(filepath.Join(folder, "block-2"), 0))
			must(syscall.Mkfifo(filepath.Join(folder, "block-3"), 0o600))
		},
		func() { // links to what is not ours
			must(os.Symlink(elsewhere, filepath.Join(folder, "block-1")))
			must(os.Symlink(filepath.Join(elsewhere, "kept"), filepath.Join(folder, "block-2")))
			must(os.Symlink("nowhere", filepath.Join(folder, "block-3")))
		},
		func() {
			must(os.Remove(folder))
			must(os.Symlink(elsewhere, folder))
		},
		func() {
			must(os.Remove(folder))
			must(os.WriteFile(folder, []byte("a file"), 0o400))
		},
		func() { must(os.Remove(folder)) },
	} {
		mess()
		k.survive(1 + i)
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("mess %d: left in the folder: %v %v", i, left, err)
		}
		if text, err := os.ReadFile(filepath.Join(elsewhere, "kept")); string(text) != "kept" {
			t.Errorf("mess %d: what a link led to: %q %v", i, text, err)
		}
	}
}
