package snapshots

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// readAll is Read, and returns what it read.
func readAll(from io.Reader) (h Header, states map[string]State, err error) {
	states = map[string]State{}
	h, err = Read(from, func(sequence uint64, e events.Event) error {
		line, err := EncodeState(e.Data)
		states[e.Data.Subject().String()] = State{sequence, line}
		return err
	})
	return h, states, err
}

// A snapshot holds the states of its store, and a store restored from it the same, position included.
func TestWriteAndRestore(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 300)
	c := Commit{Meta: s.Meta(), Lacking: []events.Subject{donation(10).Subject()}}
	require.NoError(t, s.Save(c))
	text := written(t, s)
	_, states, err := readAll(bytes.NewReader(text))
	require.NoError(t, err)
	var packed, zipped bytes.Buffer
	_, err = writePacked(t.Context(), s, &packed)
	require.NoError(t, err)
	require.Less(t, packed.Len(), len(text)/4)
	zip := gzip.NewWriter(&zipped)
	_, err = zip.Write(text)
	require.NoError(t, err)
	require.NoError(t, zip.Close())

	for name, from := range map[string]io.Reader{
		"text": bytes.NewReader(text), "zstd": &packed, "gzip": &zipped, "with a mark": io.MultiReader(strings.NewReader("\ufeff"), bytes.NewReader(text)),
		"in bytes": iotest.OneByteReader(bytes.NewReader(text)), "with blank lines": strings.NewReader(strings.ReplaceAll(string(text), "\n", "\r\n\n")),
	} {
		path := filepath.Join(t.TempDir(), "registry.db")
		h, err := Restore(t.Context(), from, path)
		require.NoError(t, err, name)
		require.Equal(t, s.Meta(), h.Meta, name)
		require.Equal(t, m.View().NumSubjects(), h.Count, name)
		restored, model := mustOpen(t, path)
		require.Equal(t, s.Meta(), restored.Meta(), name)
		require.Equal(t, m.Digest(), model.Digest(), name)
		require.Equal(t, []string{"registry.donations.d10"}, lacking(model), name)
		_, again, err := readAll(bytes.NewReader(written(t, restored)))
		require.NoError(t, err, name)
		require.Equal(t, states, again, name)
	}
}

// The lines are CloudEvents of the contract; a lacking state has no sequence.
func TestLines(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	c := feed(m, events.Views{List: events.Legit, EntryID: "a", Views: 3, Revision: 1}, donation(1))
	c.States[donation(1).Subject()] = State{0, c.States[donation(1).Subject()].Line}
	require.NoError(t, s.Save(c))
	lines := strings.Split(string(written(t, s)), "\n")
	require.Len(t, lines, 5)
	require.Regexp(t, `^{"specversion":"1.0","id":"epoch-1@2/begun","source":"urn:registry:export","type":"registry.snapshot.begun","time":"[^"]+","datacontenttype":"application/json",`+
		`"data":{"stream":"REGISTRY","epoch":"epoch-1","follows":\["epoch-0"\],"checkpoint":2,"marks":\[.*\],"complete":true,"digest":"[0-9a-f]{32}","count":2,"time":"[^"]+"}}$`, lines[0])
	require.Equal(t, `{"sequence":"1","specversion":"1.0","id":"registry.views.legit.a@1","source":"urn:registry:export","type":"registry.views.counted",`+
		`"datacontenttype":"application/json","data":{"list":"legit","entryId":"a","revision":1,"views":3}}`, lines[1])
	require.True(t, strings.HasPrefix(lines[2], `{"specversion":"1.0","id":"registry.donations.d1@2",`), lines[2])
	require.Regexp(t, `"type":"registry.snapshot.ended",.*"data":{"count":2,"digest":"[0-9a-f]{32}"}}$`, lines[3])
	for i, frame := range []bool{true, false, false, true, false} {
		require.Equal(t, frame, IsFrame([]byte(lines[i])), i)
	}
	require.False(t, IsFrame([]byte(`{"type":"registry.entry.listed","data":{"reason":"\"registry.snapshot.begun\""}}`)))
}

// Whatever was changed in a snapshot, it is refused, and nothing is restored.
func TestChangedSnapshots(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 10)
	text := string(written(t, s))
	lines := strings.SplitAfter(text, "\n")
	first, last := lines[0], lines[len(lines)-2]
	body := strings.Join(lines[1:len(lines)-2], "")
	other, m := newStore(t)
	require.NoError(t, other.Save(feed(m, donation(99))))
	foreign := strings.SplitAfter(string(written(t, other)), "\n")

	for name, test := range map[string]struct{ text, why string }{
		"empty":                {"", "not a snapshot"},
		"another file":         {"hello\n" + text, "not a snapshot"},
		"events alone":         {body, "not a snapshot"},
		"cut at a line":        {first + body, "its last line is missing"},
		"cut in a line":        {text[:len(text)/2], "line "},
		"a state is missing":   {first + strings.Join(lines[2:], ""), "states, not"},
		"a state more":         {first + body + foreign[1] + last, "more than the"},
		"twice":                {first + lines[1] + body + last, "out of order"},
		"out of order":         {first + lines[2] + lines[1] + strings.Join(lines[3:], ""), "out of order"},
		"another name":         {strings.Replace(text, `"name":"`, `"name":"X`, 1), "the digest of the states is"},
		"another revision":     {strings.Replace(text, `"revision":`, `"revision":1`, 1), "the digest of the states is"},
		"no event":             {first + "{}\n" + body + last, "line 2: "},
		"a sequence of words":  {strings.Replace(text, `"sequence":"`, `"sequence":"x`, 1), "sequence: not a number"},
		"two first lines":      {first + first + body + last, "a second first line"},
		"more after the last":  {text + lines[1], "more after the last line"},
		"another last line":    {first + body + foreign[len(foreign)-2], "states, not"},
		"a long line":          {first + strings.Repeat("x", 1<<20) + "\n" + body + last, "line too long"},
		"no epoch":             {strings.Replace(text, `"epoch":"epoch-1"`, `"epoch":""`, 1), "names no stream and epoch"},
		"an epoch of two":      {strings.Replace(text, `"epoch":"epoch-1"`, `"epoch":"a b"`, 1), "names no stream and epoch"},
		"a count of less":      {strings.Replace(text, `"count":`, `"count":-1`, 1), "out of bounds"},
		"UTF-16":               {"\xff\xfe{\x00", "save it as UTF-8"},
		"zstd that is none":    {"\x28\xb5\x2f\xfd....", ""},
		"gzip of another text": {"\x1f\x8b......", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "registry.db")
			_, err := Restore(t.Context(), strings.NewReader(test.text), path)
			require.ErrorContains(t, err, test.why)
			left, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Empty(t, left, "files beside the store")
		})
	}
	_, _, err := readAll(strings.NewReader(first + body))
	require.ErrorIs(t, err, ErrIncomplete)

	var packed bytes.Buffer
	_, err = writePacked(t.Context(), s, &packed)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(eventstest.Seed(), 3))
	want, _, err := readAll(strings.NewReader(text))
	require.NoError(t, err)
	for range 200 {
		b := bytes.Clone(packed.Bytes())
		b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		if h, _, err := readAll(bytes.NewReader(b)); err == nil {
			require.Equal(t, want.Digest, h.Digest)
		}
	}
}

// A restore replaces a store in one step, and one that fails or is canceled leaves it.
func TestRestoreReplaces(t *testing.T) {
	t.Parallel()
	s, m := filled(t, 10)
	text := written(t, s)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	old, before := newStore(t)
	require.NoError(t, old.Save(feed(before, donation(3))))
	path := old.path
	require.NoError(t, old.Close())
	_, err := Restore(t.Context(), bytes.NewReader(text[:len(text)-10]), path)
	require.Error(t, err)
	_, err = Restore(canceled, bytes.NewReader(text), path)
	require.ErrorIs(t, err, context.Canceled)
	old, loaded := mustOpen(t, path)
	require.Equal(t, before.Digest(), loaded.Digest())
	require.NoError(t, old.Close())

	_, err = Restore(t.Context(), bytes.NewReader(text), path)
	require.NoError(t, err)
	_, loaded = mustOpen(t, path)
	require.Equal(t, m.Digest(), loaded.Digest())
}

func TestReadLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"none":              {"", ""},
		"without an end":    {"a\nb", "1a 2b "},
		"ends of Windows":   {"a\r\nb\r\n", "1a 2b "},
		"blank ones":        {"\n \na\n\n\nb\n", "3a 6b "},
		"the longest":       {strings.Repeat("x", 10) + "\r\na", "1xxxxxxxxxx 2a "},
		"a longer one":      {strings.Repeat("x", 11) + "\na", "1! 2a "},
		"one much too long": {strings.Repeat("x", 200_000) + "\na", "1! 2a "},
		"a long blank one":  {strings.Repeat(" ", 11) + "\na", "1! 2a "},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			err := ReadLines(iotest.HalfReader(strings.NewReader(test.text)), 10, func(number int, text []byte, err error) error {
				if err != nil {
					require.ErrorIs(t, err, ErrLongLine)
					text = []byte("!")
				}
				fmt.Fprintf(&got, "%d%s ", number, text)
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, test.want, got.String())
		})
	}
	broken := io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(os.ErrClosed))
	require.ErrorIs(t, ReadLines(broken, 10, func(int, []byte, error) error { return nil }), os.ErrClosed)
}

// Whatever bytes come, Read does not panic, and what it accepts it reads again from what is written of it.
func FuzzRead(f *testing.F) {
	s, m, err := Open(context.Background(), filepath.Join(f.TempDir(), "registry.db"))
	require.NoError(f, err)
	defer s.Close()
	require.NoError(f, s.Save(feed(m, sample(3)...)))
	var packed bytes.Buffer
	_, err = writePacked(context.Background(), s, &packed)
	require.NoError(f, err)
	f.Add(written(f, s))
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		h, states, err := readAll(bytes.NewReader(text))
		if err != nil {
			return
		}
		require.Len(t, states, h.Count)
		path := filepath.Join(t.TempDir(), "registry.db")
		_, err = Restore(t.Context(), bytes.NewReader(text), path)
		require.NoError(t, err)
		restored, _ := mustOpen(t, path)
		_, again, err := readAll(bytes.NewReader(written(t, restored)))
		require.NoError(t, err)
		require.Equal(t, states, again)
	})
}
