package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a registry of replicas that lag differently, behind a proxy that fails. Each request finds
// it with some more changes, until there have been enough.
type fake struct {
	t      *testing.T
	rng    *rand.Rand
	file   string
	faults int // of 100 requests
	kill   int // of 100 requests, at which the mirror is killed

	mu      sync.Mutex
	epoch   int
	history []change // sequences grow, and have gaps
	left    int      // changes to come
	stop    func()
	told    []byte // what the file has to be
	open    *os.File
}

func (f *fake) name() string { return fmt.Sprintf("EPOCH%d", f.epoch) }

func (f *fake) last() uint64 {
	if len(f.history) == 0 {
		return 0
	}
	return f.history[len(f.history)-1].Sequence
}

// grow adds changes, or begins another stream.
func (f *fake) grow() {
	if f.left > 0 && f.rng.IntN(60) == 0 {
		f.epoch++
		f.history = nil
	}
	for range min(f.left, f.rng.IntN(4)) {
		f.left--
		c := change{Sequence: f.last() + 1 + f.rng.Uint64N(3), Op: "set", List: events.Lists()[f.rng.IntN(3)], EntryID: fmt.Sprint("e", f.rng.IntN(4))}
		if f.rng.IntN(3) == 0 {
			c.Op = "remove"
		} else {
			c.ReportedAt = "2026-11-23T00:00:00Z"
			c.Entry = json.RawMessage(fmt.Sprintf(`{"_id":%q,"name":"zażółć <%d>"}`, c.EntryID, f.left))
		}
		f.history = append(f.history, c)
	}
}

// state returns the last changes up to a sequence, by sequence.
func (f *fake) state(at uint64) []change {
	last := map[string]change{}
	for _, c := range f.history {
		if c.Sequence <= at {
			last[string(c.List)+"/"+c.EntryID] = c
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b change) int { return int(a.Sequence) - int(b.Sequence) })
}

// want returns the file and the head at a sequence.
func (f *fake) want(at uint64) (file []byte, h head) {
	h = head{Epoch: f.name(), Sequence: at}
	sum := new(big.Int)
	lines := map[string]string{}
	for _, c := range f.state(at) {
		h.LastChange = c.Sequence
		if c.Op == "remove" {
			continue
		}
		*h.Entries.Of(c.List)++
		hash := sha256.Sum256([]byte(string(c.List) + "\n" + string(c.Entry)))
		sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
		list, _ := c.List.Index()
		lines[fmt.Sprint(list, c.EntryID)] = fmt.Sprintf(`{"list":"%s","reportedAt":"%s","entry":%s}`+"\n", c.List, c.ReportedAt, c.Entry)
	}
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		file = append(file, lines[key]...)
	}
	h.Digest = fmt.Sprintf("%032x", sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128)))
	return file, h
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if got, err := os.ReadFile(f.file); !bytes.Equal(got, f.told) || err != nil && f.told != nil {
		f.t.Errorf("the file is not what was last told: %v", err)
	}
	f.grow()
	if f.rng.IntN(100) < f.kill {
		f.stop()
	}
	if f.rng.IntN(100) < f.faults {
		f.fail(w)
		return
	}
	at := f.last() - min(f.last(), f.rng.Uint64N(20)) // of the replica that answers
	w.Header().Set("Registry-Sequence", fmt.Sprint(at))
	epoch, ofPage := strings.CutPrefix(r.URL.Path, "/api/changes/")
	if !ofPage {
		_, h := f.want(at)
		_ = json.NewEncoder(w).Encode(h)
		return
	}
	var since uint64
	_, _ = fmt.Sscan(r.URL.Query().Get("since"), &since)
	switch {
	case epoch != f.name():
		refuse(w, http.StatusGone)
		return
	case since > at:
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	p := page{Epoch: epoch, Since: &since, Until: at, UpToDate: true, Changes: []change{}}
	for _, c := range f.state(at) {
		if c.Sequence > since {
			p.Changes = append(p.Changes, c)
		}
	}
	if limit := 1 + f.rng.IntN(3); len(p.Changes) > limit {
		p.Changes, p.UpToDate = p.Changes[:limit], false
		p.Until = p.Changes[limit-1].Sequence
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(p)
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"…"}`)
}

// fail responds as a failing proxy does.
func (f *fake) fail(w http.ResponseWriter) {
	switch f.rng.IntN(6) {
	case 0:
		refuse(w, http.StatusServiceUnavailable)
	case 1:
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>502</html>")
	case 2:
		_, _ = io.WriteString(w, "<html>Zaloguj się</html>")
	case 3:
		_, _ = io.WriteString(w, "{}")
	case 4:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"epoch":`)
	default:
		panic(http.ErrAbortHandler)
	}
}

// newFake serves a fake.
func newFake(t *testing.T, seed uint64) (*fake, Config) {
	f := &fake{t: t, rng: rand.New(rand.NewPCG(seed, 1)), file: filepath.Join(t.TempDir(), "copy"), stop: func() {}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = f.open.Close() })
	return f, Config{URL: server.URL, File: f.file, Patience: time.Minute, Pause: time.Microsecond,
		Warn: func(text string) {
			if strings.Contains(text, "differs") {
				t.Error(text)
			}
		}, Told: func(u UpToDate) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			want, h := f.want(u.Sequence)
			got, err := os.ReadFile(f.file)
			if err != nil || !bytes.Equal(got, want) || h.Digest != u.Digest {
				t.Errorf("at %d: %v\n%s\nwant\n%s", u.Sequence, err, got, want)
			}
			f.told = got
			if !f.replaced() {
				t.Error("the file was written over, not replaced")
			}
			if f.left == 0 && u.Sequence == f.last() {
				f.stop()
			}
			return nil
		}}
}

// Whatever the proxy, the replicas and the stream do, and whenever the mirror is ended, the file is
// always one whole state of the lists, and in the end their last one.
func TestCopy(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if eventstest.FullRun() && !eventstest.RaceDetector {
		seeds = 12
	}
	for seed := range seeds {
		f, cfg := newFake(t, seed)
		f.left, f.faults, f.kill = 150, 20, 3
		victim := filepath.Join(t.TempDir(), "victim") // of a link where the next file is made
		require.NoError(t, errors.Join(os.WriteFile(victim, []byte("kept"), 0o600), os.Symlink(victim, f.file+".part")))
		runs := 0
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			f.mu.Lock() // waits for a request that has ended the last run
			done := f.left == 0 && f.told != nil && bytes.Equal(f.told, first(f.want(f.last())))
			f.stop, cfg.Once = cancel, f.rng.IntN(4) == 0
			f.mu.Unlock()
			if done {
				cancel()
				break
			}
			err := Run(ctx, cfg)
			cancel()
			var foreign *ForeignError // its first answer was that of the proxy
			if err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &foreign) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			runs++
		}
		if runs < 2 {
			t.Errorf("seed %d: %d runs", seed, runs)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
			t.Errorf("a link was followed: %s %v", text, err)
		}
	}
}

// replaced says whether the file is another one than the last time, which is kept open.
func (f *fake) replaced() bool {
	now, err := os.Open(f.file)
	if err != nil {
		return false
	}
	before := f.open
	f.open = now
	if before == nil {
		return true
	}
	defer before.Close()
	a, errA := before.Stat()
	b, errB := now.Stat()
	return errA == nil && errB == nil && !os.SameFile(a, b)
}

func first(file []byte, _ head) []byte { return file }

// A feed that never ends ends the mirror, before it has filled the memory.
func TestEndlessFeed(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/changes" {
			fmt.Fprintf(w, `{"epoch":"e","sequence":9000000,"oldest":0,"lastChange":9000000,"entries":{"scammers":7,"servers":0,"legit":0},"digest":"%032d"}`, 0)
			return
		}
		since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"epoch":"e","since":%d,"until":%d,"upToDate":false,"changes":[`, since, since+1000)
		for i := range int64(1000) {
			sep := ","
			if i == 0 {
				sep = ""
			}
			fmt.Fprintf(w, `%s{"seq":%d,"op":"set","list":"scammers","reportedAt":"2026-01-01T00:00:00.000Z","entry":{"_id":"e%d"}}`, sep, since+i+1, since+i)
		}
		fmt.Fprint(w, "]}")
		sent.Add(1000)
	}))
	t.Cleanup(server.Close)
	err := Run(t.Context(), Config{URL: server.URL, File: filepath.Join(t.TempDir(), "copy"), Warn: func(string) {}})
	require.ErrorIs(t, err, ErrDiffers)
	require.LessOrEqual(t, sent.Load(), int64(12_000))
}

// What answers, but is no registry, ends the mirror at once; a registry that is not ready does not.
func TestForeign(t *testing.T) {
	t.Parallel()
	for body, status := range map[string]int{
		"<html>hello</html>": 200, "{}": 200, "[]": 200, `{"error":"Nie znaleziono."}`: 404, "forbidden": 403, `{"error":"x"}`: 410,
		`{"epoch":"E","digest":"short"}`: 200,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		file := filepath.Join(t.TempDir(), "copy")
		var foreign *ForeignError
		if err := Run(t.Context(), Config{URL: server.URL, File: file, Patience: time.Minute}); !errors.As(err, &foreign) {
			t.Errorf("%d %s: %v", status, body, err)
		}
		server.Close()
		if left, _ := filepath.Glob(file + "*"); len(left) > 0 {
			t.Errorf("%s: left %v", body, left)
		}
	}
	// A proxy without a server, one that never answers, and a registry that is not ready.
	for body, patience := range map[string]time.Duration{"<html>": 50 * time.Millisecond, "": 50 * time.Millisecond, `{"error":"Trwa wczytywanie danych."}`: time.Minute} {
		asked, loading := 0, strings.HasPrefix(body, "{")
		ctx, cancel := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body == "" {
				<-r.Context().Done()
			}
			if asked++; asked > 20 && loading {
				cancel()
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, body)
		}))
		err := Run(ctx, Config{URL: server.URL, File: filepath.Join(t.TempDir(), "copy"), Patience: patience, Pause: time.Nanosecond, Warn: func(string) {}})
		cancel()
		server.Close()
		var unreached *UnreachedError
		if loading != errors.Is(err, context.Canceled) || loading == errors.As(err, &unreached) {
			t.Errorf("%q: %v after %d requests", body, err, asked)
		}
	}
}

// A copy that differs is rebuilt, once. A file or a state that is damaged, or does not fit the other,
// does not stay so.
func TestDiffers(t *testing.T) {
	t.Parallel()
	f, cfg := newFake(t, 1)
	f.left, cfg.Once = 40, true
	for f.left > 0 {
		require.NoError(t, Run(t.Context(), cfg))
	}
	c, err := openCopy(t.Context(), f.file)
	require.NoError(t, err)
	if c.state.Until == 0 || len(c.entries) == 0 {
		t.Fatal("the copy does not go on from its file")
	}
	forged := change{Op: "set", List: events.Legit, EntryID: "forged", ReportedAt: "x", Entry: json.RawMessage(`{"_id":"forged"}`)}
	c.apply(page{Until: c.state.Until, Changes: []change{forged}})
	require.NoError(t, errors.Join(c.write(), c.close()))
	var warned []string
	cfg.Warn = func(text string) { warned = append(warned, text) }
	f.told, err = os.ReadFile(f.file)
	require.NoError(t, err)
	if err := Run(t.Context(), cfg); err != nil || !strings.Contains(strings.Join(warned, "\n"), "differs") {
		t.Errorf("%v, warned of %q", err, warned)
	}
	whole := f.told
	for _, damage := range [][]byte{nil, []byte("no copy"), bytes.Repeat([]byte{0xff}, 1<<16), whole[:len(whole)-1], append(slices.Clone(whole), whole...),
		bytes.ReplaceAll(whole, []byte("za"), []byte("ze"))} {
		for _, path := range []string{f.file + ".mirror", f.file} {
			require.NoError(t, os.WriteFile(path, damage, 0o600))
			f.told, err = os.ReadFile(f.file)
			require.NoError(t, err)
			warned = nil
			if err := Run(t.Context(), cfg); err != nil || strings.Contains(strings.Join(warned, "\n"), "differs") {
				t.Errorf("%s: %.10q: %v, warned of %q", path, damage, err, warned)
			}
		}
	}
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/changes" {
			f.ServeHTTP(w, r)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		_, h := f.want(f.last())
		h.Digest = strings.Repeat("0", 32)
		_ = json.NewEncoder(w).Encode(h)
	}))
	defer liar.Close()
	cfg.URL = liar.URL
	if err := Run(t.Context(), cfg); !errors.Is(err, ErrDiffers) {
		t.Errorf("a server that says something else twice: %v", err)
	}
}

// One process keeps a copy, and a file that cannot be written is the file's error, which leaves the
// old one.
func TestOneCopy(t *testing.T) {
	t.Parallel()
	f, cfg := newFake(t, 1)
	cfg.Once = true
	c, err := openCopy(t.Context(), cfg.File)
	require.NoError(t, err)
	if err := Run(t.Context(), cfg); !errors.Is(err, ErrKept) {
		t.Error(err)
	}
	require.NoError(t, c.close())
	var disk *DiskError
	f.told = []byte("old")
	require.NoError(t, errors.Join(os.WriteFile(cfg.File, f.told, 0o600), os.MkdirAll(filepath.Join(cfg.File+".part", "full"), 0o700)))
	if err := Run(t.Context(), cfg); !errors.As(err, &disk) {
		t.Error(err)
	}
	old, err := os.ReadFile(cfg.File)
	require.NoError(t, err)
	require.Equal(t, "old", string(old))
	cfg.File = filepath.Join(t.TempDir(), "missing", "copy")
	if err := Run(t.Context(), cfg); !errors.As(err, &disk) {
		t.Error(err)
	}
	cfg.File = t.TempDir() // a directory in its place
	if err := Run(t.Context(), cfg); !errors.As(err, &disk) {
		t.Error(err)
	}
}
