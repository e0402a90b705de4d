package readmodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.org/registry/events"
)

// rangeSays returns the bits of an id in its range, read as the contract tells a client to.
func rangeSays(t rapid.TB, v *View, id string) byte {
	sum := sha256.Sum256([]byte("registry-id-v1\n" + id))
	digits := hex.EncodeToString(sum[:])
	n, _ := strconv.ParseUint(digits[:3], 16, 12)
	body := string(v.Ranges().Append(nil, int(n)))
	last, lines, found := "", 0, byte(0)
	for line := range strings.Lines(body) {
		if len(line) != 30 || line[26] != ':' || line <= last {
			t.Fatalf("range %s: line %q after %q", digits[:3], line, last)
		}
		last = line
		lines++
		if line[:26] == digits[3:29] {
			bits, err := strconv.ParseUint(line[27:29], 16, 8)
			if err != nil {
				t.Fatalf("the bits of line %q: %v", line, err)
			}
			found = byte(bits)
		}
	}
	if lines != v.Ranges().NumLines() || len(body) != 30*lines {
		t.Fatalf("range %s has %d lines, want %d", digits[:3], lines, v.Ranges().NumLines())
	}
	return found
}

// says returns the bits of an id by the twin's check, including a trusted person next to a fraud.
func (w *twin) says(id string) (bits byte) {
	for _, e := range w.entries {
		if e.ChatID != id {
			continue
		}
		switch {
		case e.List == events.Scammers && e.Verified:
			bits |= 0x01
		case e.List == events.Scammers:
			bits |= 0x02
		case e.List == events.Servers && e.Verified:
			bits |= 0x04
		case e.List == events.Servers:
			bits |= 0x08
		case e.Verified:
			bits |= 0x10
		}
	}
	return bits
}

// A range says of every id what a check says, and it and its tag are the same in every model of the
// content. The tag changes when the range does, and only then.
func TestRangesAreChecks(t *testing.T) {
	ids := []string{"100", "1001", "ab", "AB", "x_y", "10", "", "nobody"}
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		before := map[int][2]string{}
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			p.batch(t)
			v, rebuilt := p.model.View(), New()
			rebuilt.BeginBulk()
			for i, d := range p.log {
				rebuilt.Apply([]Record{p.renderer.Render(uint64(i+1), d)}, uint64(i+1))
			}
			again := rebuilt.EndBulk()
			for _, id := range ids {
				if got, want := rangeSays(t, v, id), p.twin.says(id); got != want {
					t.Fatalf("%q: %02x, a check says %02x", id, got, want)
				}
				n := int(chatKey(id) >> (64 - rangeBits))
				body := v.Ranges().Append(nil, n)
				if !bytes.Equal(body, again.Ranges().Append(nil, n)) || v.Ranges().Tag(n) != again.Ranges().Tag(n) {
					t.Fatalf("range %03x is another one after a rebuild", n)
				}
				now := [2]string{string(body), v.Ranges().Tag(n)}
				if was, known := before[n]; known && (was[0] == now[0]) != (was[1] == now[1]) {
					t.Fatalf("range %03x: tags %s and %s, bodies\n%s\n%s", n, was[1], now[1], was[0], now[0])
				}
				before[n] = now
			}
		}
	})
}

// All ranges have as many lines as the contract says for the fullest.
func TestRangeLines(t *testing.T) {
	for most, want := range map[int]int{0: 32, 32: 32, 33: 48, 48: 48, 49: 64, 65: 96, 96: 96, 97: 128, 129: 192, 193: 256, 300: 384} {
		if got := rangeLines(most); got != want {
			t.Errorf("%d ids: %d lines, want %d", most, got, want)
		}
	}
	m, r := New(), NewRenderer()
	var crowd []string // of one range
	for i := 0; len(crowd) < 40; i++ {
		if id := fmt.Sprintf("9%d", i); chatKey(id)>>(64-rangeBits) == 7 {
			crowd = append(crowd, id)
		}
	}
	for i, id := range crowd {
		e := events.Entry{Revision: 1, List: events.Servers, EntryID: "e" + id, ChatID: id, Name: "x", ReportID: "r", ReportedAt: time.Unix(0, 0)}
		v := viewOf(m.Apply([]Record{r.Render(uint64(i+1), e)}, uint64(i+1)))
		want := 32
		if i >= 32 {
			want = 48
		}
		if v.Ranges().NumLines() != want || len(v.Ranges().Append(nil, 7)) != 30*want || len(v.Ranges().Append(nil, 8)) != 30*want || rangeSays(t, v, id) != 0x08 {
			t.Fatalf("%d ids: %d lines, want %d", i+1, v.Ranges().NumLines(), want)
		}
	}
	for i, id := range crowd[:20] {
		seq := uint64(100 + i)
		m.Apply([]Record{r.Render(seq, events.Delisting{Revision: 1, List: events.Servers, EntryID: "e" + id})}, seq)
	}
	if n := m.View().Ranges().NumLines(); n != 32 {
		t.Errorf("after 20 were delisted: %d lines, want 32", n)
	}
}

// A range as the contract shows it.
func TestRangeOfNobody(t *testing.T) {
	sum := sha256.Sum256([]byte("abcpad0"))
	if filler := hex.EncodeToString(sum[:])[:26] + ":00\n"; !strings.Contains(string(New().View().Ranges().Append(nil, 0xabc)), filler) {
		t.Errorf("no line %q", filler)
	}
}

func BenchmarkRange(b *testing.B) {
	m, r := New(), NewRenderer()
	m.BeginBulk()
	for i := range 100_000 {
		id := fmt.Sprintf("9%017d", i)
		m.Apply([]Record{r.Render(uint64(i+1), events.Entry{Revision: 1, List: events.Scammers, EntryID: id, ChatID: id, Name: "x", ReportID: "r", ReportedAt: time.Unix(0, 0)})}, uint64(i+1))
	}
	v := m.EndBulk()
	for b.Loop() {
		v.Ranges().Append(nil, 7)
	}
}
