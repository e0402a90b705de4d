package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/snapshots"
)

// maxLine bounds a line of publish's input, in bytes.
const maxLine = 1 << 20

// readInput calls visit with each line of a file, or of standard input, which may be packed. Reading
// ends with ctx.
func readInput(ctx context.Context, name string, stdin io.Reader, visit func(number int, text []byte, err error) error) error {
	file, err := openInput(name, stdin)
	if err != nil {
		return cli.FileError("FILE", name, err)
	}
	defer file.Close()
	// A read of a silent pipe ends with ctx.
	defer context.AfterFunc(ctx, func() { _ = file.Close() })()

	text, err := snapshots.Unpack(file)
	if err == nil {
		err = snapshots.ReadLines(text, maxLine, visit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, cli.WithoutPath(err))
	}
	return nil
}

// openInput opens a file, or standard input, whose Close interrupts a Read. The goroutine that copies
// standard input ends with it: nothing waits for it, since a process cannot stop its own read of a
// silent pipe.
func openInput(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, stdin)
		in.CloseWithError(err)
	}()
	return out, nil
}
