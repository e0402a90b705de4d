package main

import (
	"fmt"
	"io"
	"os"
)

// input is one FILE argument of publish.
type input struct {
	name  string // as messages show it
	size  int64  // bytes, if sized: of a pipe it cannot be known
	sized bool
	open  func() (io.ReadCloser, error)
}

// openInputs looks at every file before anything is read or sent: a name mistyped as the
// fifth argument must not be found out after four files have been published.
func openInputs(files []string, stdin io.Reader) ([]input, error) {
	var inputs []input
	standard := false
	for _, name := range files {
		if name == "-" {
			if standard {
				return nil, usagef("FILE: standard input (-) is given twice")
			}
			standard = true
			inputs = append(inputs, input{name: "-", open: func() (io.ReadCloser, error) { return closable(stdin), nil }})
			continue
		}
		in, err := fileInput(name)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// closable makes a reader that Close interrupts in the middle of a Read, which standard input
// does not have. The goroutine that copies ends with its input; if the run ends earlier, it is
// the one that nobody waits for, because a process cannot stop its own read of a silent pipe.
func closable(in io.Reader) io.ReadCloser {
	out, copied := io.Pipe()
	go func() {
		_, err := io.Copy(copied, in)
		copied.CloseWithError(err)
	}()
	return out
}

func fileInput(name string) (input, error) {
	info, err := os.Stat(name)
	if err != nil {
		return input{}, unreadable("FILE", name, err)
	}
	if info.IsDir() {
		return input{}, fmt.Errorf("%s is a directory: name the files in it", name)
	}
	in := input{name: name, open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if !info.Mode().IsRegular() {
		return in, nil // opening a pipe and closing it again would end its writer
	}
	f, err := os.Open(name)
	if err != nil {
		return input{}, unreadable("FILE", name, err)
	}
	in.size, in.sized = info.Size(), true
	return in, f.Close()
}

// totalSize is 0 when the size of any input cannot be known.
func totalSize(inputs []input) int64 {
	var total int64
	for _, in := range inputs {
		if !in.sized {
			return 0
		}
		total += in.size
	}
	return total
}
