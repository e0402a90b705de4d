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
	// The end of ctx closes the file: nothing else ends a read of a silent pipe. AfterFunc returns the
	// function to defer, which calls this off.
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

// openInput opens a file, or standard input. Close interrupts a Read of the result. The goroutine that
// copies standard input may run until standard input ends: nothing waits for the goroutine, since a
// process cannot stop its own read of a silent pipe.
func openInput(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, stdin)
		writer.CloseWithError(err)
	}()
	return reader, nil
}
