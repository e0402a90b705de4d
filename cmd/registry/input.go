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

// checkInputs checks every file before anything is sent, so that a mistyped fifth name is not found
// after four files have been published.
func checkInputs(files []string) error {
	standard := false
	for _, name := range files {
		if name == "-" {
			if standard {
				return cli.Usagef("FILE: standard input (-) is given twice")
			}
			standard = true
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return cli.Unreadable("FILE", name, err)
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory: name the files in it", name)
		}
		if !info.Mode().IsRegular() {
			continue // opening a pipe and closing it again would end its writer
		}
		f, err := os.Open(name)
		if err != nil {
			return cli.Unreadable("FILE", name, err)
		}
		f.Close()
	}
	return nil
}

// readInput calls visit with each line of a file, or of standard input, which may be packed. Reading
// ends with ctx.
func readInput(ctx context.Context, name string, stdin io.Reader, visit func(number int, text []byte, err error) error) error {
	var file io.ReadCloser
	if name == "-" {
		file = closable(stdin)
	} else {
		f, err := os.Open(name)
		if err != nil {
			return cli.Unreadable("FILE", name, err)
		}
		file = f
	}
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer func() {
		stop()
		_ = file.Close()
	}()

	text, err := snapshots.Unpack(file)
	if err == nil {
		err = snapshots.ReadLines(text, maxLine, visit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// closable makes a reader whose Close interrupts a Read, which standard input does not do. Its
// goroutine ends with the input: nothing waits for it, since a process cannot stop its own read of a
// silent pipe.
func closable(in io.Reader) io.ReadCloser {
	out, copied := io.Pipe()
	go func() {
		_, err := io.Copy(copied, in)
		copied.CloseWithError(err)
	}()
	return out
}
