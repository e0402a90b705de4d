package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// mirrored is a line of the file of registry mirror.
type mirrored struct {
	List       events.List
	ReportedAt time.Time
	Entry      json.RawMessage
}

// mirrorFront stands between a mirror and the server. It makes pages small, and kills the mirror in
// the middle of an answer or soon after it.
type mirrorFront struct {
	k    *killer
	base string // of the server

	mu     sync.Mutex
	kill   int // requests until then; 0: never
	victim *os.Process
	zero   int // requests for the feed from its beginning
}

func (f *mirrorFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	query := r.URL.Query()
	if query.Has("since") {
		query.Set("limit", "7")
		if query.Get("since") == "0" {
			f.zero++
		}
	}
	// With the context of a mirror that is killed a poll ends too: the next one waits for mu.
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, f.base+r.URL.Path+"?"+query.Encode(), nil)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.Header().Set("Registry-Sequence", answer.Header.Get("Registry-Sequence"))
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(answer.StatusCode)
	if f.kill > 2 && bytes.Contains(body, []byte(`"upToDate":true`)) {
		f.kill = 1 + f.k.rng.IntN(2) // this one, or the comparison: it has nothing else to ask
	}
	if f.kill--; f.kill == 0 && f.k.rng.IntN(2) == 0 {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		_ = f.victim.Kill()
		return
	}
	_, _ = w.Write(body)
	if f.kill == 0 {
		_ = http.NewResponseController(w).Flush()
		f.k.rest(15)
		_ = f.victim.Kill()
	}
}

// TestMirrorKill kills a mirror with SIGKILL while events are published. Whenever there is a file it
// is whole, each mirror goes on where the last one was, and the last has what the lists show.
func TestMirrorKill(t *testing.T) {
	t.Parallel()
	k := newFailing(t)
	k.start()
	published := publishUntilDead(k.NATS, k.events(300), 1)
	front := &mirrorFront{k: k, base: k.HTTP}
	server := httptest.NewServer(front)
	defer server.Close()
	file := filepath.Join(k.dir, "copy")
	rounds := 6
	switch {
	case eventstest.RaceDetector:
		rounds = 3 // it sees nothing of the processes
	case eventstest.FullRun():
		rounds = 40
	}
	for round := range rounds {
		published = append(published, publishUntilDead(k.NATS, k.events(10), uint64(round))...)
		front.mu.Lock()
		front.kill = 1 + k.rng.IntN(12)
		cmd := k.mirror(server.URL, file)
		require.NoError(t, cmd.Start())
		front.victim = cmd.Process
		front.mu.Unlock()
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
			t.Fatalf("round %d: %s", round, cmd.ProcessState)
		}
		if text, err := os.ReadFile(file); err == nil {
			mirrorLines(t, text)
		}
		if round == rounds/2 { // from here on there is a copy
			k.mirrorOnce(server.URL, file)
			front.mu.Lock()
			front.zero = 0
			front.mu.Unlock()
		}
	}
	k.mirrorOnce(server.URL, file)
	if front.zero > 0 {
		t.Errorf("the feed was read from its beginning %d times", front.zero)
	}
	text, err := os.ReadFile(file)
	if err != nil || len(published) == 0 {
		t.Fatal(err, len(published))
	}
	k.isTheLists(mirrorLines(t, text))
}

func (k *killer) mirror(url, file string, flags ...string) *exec.Cmd {
	k.t.Helper()
	return &exec.Cmd{Path: self(k.t), Args: append([]string{"registry", "mirror", url, file}, flags...)}
}

func (k *killer) mirrorOnce(url, file string) {
	k.t.Helper()
	if out, err := k.mirror(url, file, "--once").CombinedOutput(); err != nil || !strings.Contains(string(out), "are the server's") {
		k.t.Fatalf("%v: %s", err, out)
	}
}

// mirrorLines reads a whole file, whose lines are in order.
func mirrorLines(t *testing.T, text []byte) (all []mirrored) {
	t.Helper()
	last := ""
	for line := range bytes.Lines(text) {
		var m mirrored
		var entry struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal(line, &m); err != nil || line[len(line)-1] != '\n' || json.Unmarshal(m.Entry, &entry) != nil {
			t.Fatalf("%v: %q", err, line)
		}
		list, ok := m.List.Index()
		if key := fmt.Sprint(list, entry.ID); !ok || key <= last || m.ReportedAt.IsZero() {
			t.Fatalf("%q after %q", line, last)
		} else {
			last = key
		}
		all = append(all, m)
	}
	return all
}

// isTheLists compares a copy with what the lists show.
func (k *killer) isTheLists(all []mirrored) {
	k.t.Helper()
	copied := map[string]bool{}
	for _, m := range all {
		copied[string(m.List)+string(m.Entry)] = true
	}
	for _, list := range events.Lists() {
		for skip, more := 0, true; more; skip += 60 {
			var page struct {
				Data    []json.RawMessage
				HasMore bool
			}
			k.get("/api/"+string(list)+"?"+url.Values{"limit": {"60"}, "skip": {fmt.Sprint(skip)}}.Encode(), &page)
			for _, entry := range page.Data {
				if !copied[string(list)+string(entry)] {
					k.t.Errorf("not in the copy: %s", entry)
				}
				delete(copied, string(list)+string(entry))
			}
			more = page.HasMore
		}
	}
	if len(copied) > 0 {
		k.t.Errorf("in the copy alone: %v", copied)
	}
}
