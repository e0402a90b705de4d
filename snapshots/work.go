package snapshots

import (
	"os"
	"runtime"
)

// Work says where and how hard archives are made, unpacked and exported.
type Work struct {
	// Dir is where temporary files go: as much as the store takes, and its packed form. Empty: the
	// system's directory for such. Each is removed when it is done with; after a crash the caller does.
	Dir string

	// Rest is how long the work rests for every moment that it has worked, so that readers keep the
	// processors. 0: never.
	Rest float64

	// Workers is the number of goroutines that decode. 0: one a processor.
	Workers int
}

func (w Work) workers() int {
	if w.Workers > 0 {
		return w.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// temporary makes an empty file.
func (w Work) temporary(pattern string) (*os.File, error) {
	if w.Dir != "" {
		if err := os.MkdirAll(w.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.CreateTemp(w.Dir, pattern)
}
