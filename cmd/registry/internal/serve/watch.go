package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/snapshots"
)

const (
	// placeEvery is how often the server looks whether its data directory is still in its place.
	placeEvery = time.Second
	// placeEnds bounds the stop of a server whose directory was taken away, which has nothing to save.
	placeEnds = time.Second
)

// place is the files that stand for the data directory, as they were at the start.
type place map[string]fs.FileInfo

// place returns the data directory, its lock and the embedded broker's directory as they are.
func (c Config) place() (place, error) {
	p := place{}
	names := []string{c.DataDir, snapshots.LockPath(c.DataDir)}
	if c.embedded() {
		names = append(names, c.brokerDir())
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		p[name] = info
	}
	return p, nil
}

// gone returns an error that matches errTakenAway if one of the files is no longer there, or another.
func (p place) gone() error {
	for name, was := range p {
		is, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !os.SameFile(was, is) {
			return fmt.Errorf("%s %w while the server ran: what was acknowledged since is lost; start it again where the data is", name, errTakenAway)
		}
	}
	return nil
}

var errTakenAway = errors.New("was taken away or replaced")

// watchPlace ends the server when the data directory is taken away or replaced: what is written into
// it would be lost at the next start.
func (s *server) watchPlace(ctx context.Context) error {
	at, err := s.cfg.place()
	for err == nil && pause.For(ctx, placeEvery) {
		err = at.gone()
	}
	if err != nil {
		s.taken <- err
	}
	return nil
}
