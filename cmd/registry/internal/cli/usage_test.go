package cli

import (
	"bytes"
	"testing"
)

func TestNearest(t *testing.T) {
	serve := []string{"help", "demo", "http-addr", "admin-addr", "base-url", "data-dir", "nats-url", "snapshot-every", "snapshot-keep", "rate-limit", "site"}
	for name, want := range map[string]string{
		"port": "http-addr", "htpp-addr": "http-addr", "http-address": "http-addr", "data": "data-dir", "datadir": "data-dir", "every": "snapshot-every",
		"snapshots-every": "snapshot-every", "limit": "rate-limit", "sites": "site", "nats": "nats-url", "xyzzy": "", "a": "", "colour": "",
	} {
		if got := Nearest(name, serve); got != want {
			t.Errorf("--%s: --%s, want --%s", name, got, want)
		}
	}
	if got := Nearest("port", []string{"help", "admin-addr"}); got != "admin-addr" {
		t.Errorf("without --http-addr: --%s", got)
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"same", "same", 0}, {"ab", "ba", 2}} {
		if got := edits(c.a, c.b); got != c.want || edits(c.b, c.a) != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// A line takes the place of the bar, and the bar that of nothing.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	bar := barWriter{s}
	for _, step := range []func(){
		func() { _, _ = s.Write([]byte("one\n")) }, func() { _, _ = bar.Write([]byte("\rbar 1")) }, func() { _, _ = bar.Write([]byte("\rbar 2")) },
		func() { _, _ = s.Write([]byte("two\n")) }, func() { _, _ = s.Write([]byte("three\n")) }, s.Interrupted, func() { _, _ = s.Write([]byte("bye\n")) },
	} {
		step()
	}
	if want := "one\n\rbar 1\rbar 2\r\x1b[2Ktwo\nthree\n\r\x1b[2Kbye\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
