package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInputEndsWithItsContext: a run that ends does not wait for a silent input, standard input included.
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
