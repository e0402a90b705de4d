package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Packed files and those with a byte order mark read like the plain text; others are named.
func TestReadInput(t *testing.T) {
	const plain = "line one\nline two\n"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte("\ufeff" + plain))
	require.NoError(t, errors.Join(err, z.Close()))
	for name, c := range map[string]struct{ content, problem string }{
		"plain":  {plain, ""},
		"gzip":   {zipped.String(), ""},
		"utf-16": {"\xff\xfel\x00", "UTF-16"},
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte(c.content), 0o600))
		var lines []string
		err := readInput(t.Context(), file, nil, func(_ int, text []byte, err error) error {
			lines = append(lines, string(text))
			return err
		})
		if c.problem != "" {
			require.ErrorContains(t, err, file+": ", name)
			require.ErrorContains(t, err, c.problem, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, strings.Fields("line_one line_two"), strings.Fields(strings.ReplaceAll(strings.Join(lines, "\n"), " ", "_")), name)
	}
}

// A run that ends does not wait for an input that is silent, standard input included.
func TestInputEndsWithItsContext(t *testing.T) {
	silent, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = write.Write([]byte("first line\n")) }()

	lines := 0
	err := readInput(ctx, "-", silent, func(int, []byte, error) error {
		lines++
		cancel()
		return nil
	})
	require.Error(t, err)
	require.Equal(t, 1, lines)
	write.Close() // the copying goroutine ends with its input (goleak in TestMain)
}
