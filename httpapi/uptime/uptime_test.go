package uptime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func someDay() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

// What is remembered of a day is the sum of its rounds; a mean is that of answers.
func TestDays(t *testing.T) {
	r := NewRecorder(Config{})
	at := someDay()
	r.Record(at, []Check{{"database", true, 10 * time.Millisecond}, {"chat", false, time.Second}})
	r.Record(at.Add(30*time.Second), []Check{{"database", false, 0}}) // of the same minute
	r.Record(at.Add(time.Minute), []Check{{"database", true, 20 * time.Millisecond}, {"chat", true, 4 * time.Millisecond}})
	r.Record(at.Add(24*time.Hour), []Check{{"database", false, time.Second}})
	now := at.Add(25 * time.Hour)
	database, chat := r.Of("database", now), r.Of("chat", now)
	for _, c := range []struct {
		got, want Day
	}{
		{database.Days[88], Day{someDay().Truncate(24 * time.Hour), 2, 0, 15 * time.Millisecond}},
		{database.Days[89], Day{someDay().Truncate(24*time.Hour).AddDate(0, 0, 1), 1, 1, 0}},
		{chat.Days[88], Day{someDay().Truncate(24 * time.Hour), 2, 1, 4 * time.Millisecond}},
		{chat.Days[87], Day{Start: someDay().Truncate(24*time.Hour).AddDate(0, 0, -1)}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
	if want := (Incident{From: at.Add(24 * time.Hour)}); database.Last != want {
		t.Errorf("%+v goes on, want %+v", database.Last, want)
	}
	if want := (Incident{at, at.Add(time.Minute)}); chat.Last != want {
		t.Errorf("%+v, want %+v", chat.Last, want)
	}
	if old := r.Of("chat", now.AddDate(0, 0, Days)); old.Last != (Incident{}) || old.Days[0].Checks != 0 {
		t.Errorf("after %d days: %+v", Days, old)
	}
}

// Whatever happens, the memory stays small, and what was stored is what is read.
func TestBoundedAndStored(t *testing.T) {
	cfg := Config{Path: filepath.Join(t.TempDir(), "status.json")}
	rapid.Check(t, func(t *rapid.T) {
		_ = os.Remove(cfg.Path)
		r, at := NewRecorder(cfg), someDay()
		for range rapid.IntRange(1, 250).Draw(t, "rounds") {
			at = at.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "minutes")) * time.Minute)
			var round []Check
			for _, id := range []string{"a", "b"} {
				round = append(round, Check{id, rapid.Bool().Draw(t, "ok"), time.Duration(rapid.IntRange(0, 6000).Draw(t, "ms")) * time.Millisecond})
			}
			r.Record(at, round)
		}
		r.save()
		stored, err := os.ReadFile(cfg.Path)
		if err != nil || len(stored) > 2*Days*60+500 {
			t.Fatalf("%d bytes, %v", len(stored), err)
		}
		again := NewRecorder(cfg)
		for _, id := range []string{"a", "b", "c"} {
			was, is := r.Of(id, at), again.Of(id, at)
			if was.Last != is.Last || len(is.Days) != Days {
				t.Fatalf("%+v, want %+v", is, was)
			}
			for i := range is.Days {
				if is.Days[i] != was.Days[i] {
					t.Fatalf("%+v, want %+v", is.Days[i], was.Days[i])
				}
			}
		}
	})
}

// A recorder asks every minute, and saves now and then and at the end.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.json")
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := NewRecorder(Config{Path: path})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, func(context.Context) { asked++; r.Record(time.Now(), []Check{{"database", true, 0}}) })
		}()
		saved := func(want int) {
			t.Helper()
			if stored, err := os.ReadFile(path); err != nil || !bytes.Contains(stored, fmt.Appendf(nil, `"checks":%d,`, want)) {
				t.Errorf("saved: %s, %v, want %d checks", stored, err, want)
			}
		}
		time.Sleep(11*time.Minute + 2*time.Second)
		synctest.Wait()
		if asked != 11 {
			t.Errorf("in 11 minutes: asked %d times", asked)
		}
		saved(10)
		cancel()
		<-done
		saved(11)
	})
}

// What cannot be read or saved costs the history alone, and is said once.
func TestTrouble(t *testing.T) {
	for _, bad := range []string{"{", `{"version":2}`, `{"version":1,"components":{"a":null}}`, `{"version":1,"components":{"a":{"days":{"x":{}}}}}`,
		`{"version":1,"components":{"a":{"days":{"2026-11-22":{"checks":1,"failures":2}}}}}`, strings.Repeat(" ", maxStored+1)} {
		var log bytes.Buffer
		path := filepath.Join(t.TempDir(), "status.json")
		if err := errors.Join(os.WriteFile(path, []byte(bad), 0o600), os.Mkdir(path+".new", 0o700)); err != nil { // in the way
			t.Fatal(err)
		}
		require.NoError(t, os.WriteFile(filepath.Join(path+".new", "file"), nil, 0o600))
		r := NewRecorder(Config{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.Record(someDay(), []Check{{"a", true, 0}})
		r.save()
		r.save()
		if r.Of("a", someDay()).Days[Days-1].Checks != 1 {
			t.Errorf("%.60s: nothing is counted any more", bad)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 {
			t.Errorf("%.60s: logged %s", bad, log.String())
		}
	}
}

// FuzzParse: no stored value does harm.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"components":{"database":{"days":{"2026-11-22":{"checks":3,"failures":1,"ms":20}},"last":{"from":"2026-11-22T10:00:00Z"}}}}`))
	f.Add([]byte(`{"version":1,"components":{"a":{"days":{},"last":{"to":"2026-11-22T10:00:00Z"}}}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		h, err := parse(stored)
		if err != nil {
			return
		}
		for id := range h.Components {
			h.add(someDay(), []Check{{id, false, 0}})
			if c := h.component(id, someDay()); len(c.Days) != Days {
				t.Errorf("%d days", len(c.Days))
			}
		}
	})
}

// TestStoredForm fails when what is stored has another form: then raise version, and write the new
// form here.
func TestStoredForm(t *testing.T) {
	const want = `{"version":1,"components":{"database":{"days":{"2026-11-22":{"checks":2,"failures":1,"ms":20}},` +
		`"last":{"from":"2026-11-22T10:00:00Z","to":"2026-11-22T10:01:00Z"}}}}`
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	h := newHistory()
	h.add(at, []Check{{"database", false, 0}})
	h.add(at.Add(time.Minute), []Check{{"database", true, 20 * time.Millisecond}})
	got, err := json.Marshal(h)
	if err != nil || string(got) != want {
		t.Errorf("stored is %s, %v\nwant %s", got, err, want)
	}
	if _, err := parse([]byte(want)); err != nil {
		t.Error(err)
	}
}
