package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// FuzzReadLines compares the reading with the obvious way: split, trim, drop blanks.
func FuzzReadLines(f *testing.F) {
	f.Add("a\nb")
	f.Add("\n \r\n\tx\r\n")
	f.Add(strings.Repeat("long ", 40_000))
	f.Fuzz(func(t *testing.T, content string) {
		var got []string
		err := readLines(strings.NewReader(content), func(number int, text []byte, err error) error {
			got = append(got, fmt.Sprintf("%d %q %v", number, text, err))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, naiveLines(content), got)
	})
}

func naiveLines(content string) []string {
	var out []string
	for i, l := range strings.Split(content, "\n") {
		text := bytes.TrimSpace([]byte(l))
		if len(l) > maxLine {
			out = append(out, fmt.Sprintf("%d %q %v", i+1, "", errLongLine))
		} else if len(text) > 0 {
			out = append(out, fmt.Sprintf("%d %q %v", i+1, text, error(nil)))
		}
	}
	return out
}

// The bound counts the line without its break, whatever the reader's buffer.
func TestLongestLine(t *testing.T) {
	for _, c := range []struct {
		size int
		end  string
		ok   bool
	}{{maxLine, "\n", true}, {maxLine, "", true}, {maxLine + 1, "\n", false}, {maxLine + 1, "", false}, {3 * maxLine, "\nx", false}} {
		var sizes []int
		var errs []error
		err := readLines(strings.NewReader(strings.Repeat("x", c.size)+c.end), func(_ int, text []byte, err error) error {
			sizes, errs = append(sizes, len(text)), append(errs, err)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, c.ok, errs[0] == nil, "%d bytes and %q", c.size, c.end)
		require.Equal(t, c.ok, sizes[0] == c.size, "%d bytes and %q", c.size, c.end)
	}
}

// Packed files and those with a byte order mark read like the plain text; others are named.
func TestOpenInput(t *testing.T) {
	const plain = "line one\nline two\n"
	var zipped, packed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte("\ufeff" + plain))
	require.NoError(t, errors.Join(err, z.Close()))
	w, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = w.Write([]byte(plain))
	require.NoError(t, errors.Join(err, w.Close()))
	for name, c := range map[string]struct{ content, problem string }{
		"plain":    {plain, ""},
		"mark":     {"\ufeff" + plain, ""},
		"gzip":     {zipped.String(), ""},
		"zstd":     {packed.String(), ""},
		"utf-16":   {"\xff\xfel\x00", "UTF-16"},
		"utf-16be": {"\xfe\xff\x00l", "UTF-16"},
		"zip":      {"PK\x03\x04", "ZIP"},
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte(c.content), 0o600))
		in, err := openInput(t.Context(), file, nil)
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem, name)
			continue
		}
		require.NoError(t, err, name)
		text, err := io.ReadAll(in)
		require.NoError(t, errors.Join(err, in.Close()), name)
		require.Equal(t, plain, string(text), name)
	}
}

// A run that ends does not wait for an input that is silent, standard input included.
func TestInputEndsWithItsContext(t *testing.T) {
	silent, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = write.Write([]byte("first line\n")) }()

	in, err := openInput(ctx, "-", silent)
	require.NoError(t, err)

	lines := 0
	err = readLines(in, func(int, []byte, error) error {
		lines++
		cancel()
		return nil
	})
	require.Error(t, err)
	require.Equal(t, 1, lines)
	write.Close() // the copying goroutine ends with its input (goleak in TestMain)
}
