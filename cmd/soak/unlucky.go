//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// kills ends the unlucky replica at random moments, damages what it has saved, and starts it again, until ctx ends.
func (s *stage) kills(ctx context.Context) error {
	for pause(ctx, between(s.killRNG, 200*time.Millisecond, max(s.cfg.every/10, 400*time.Millisecond))) {
		if _, over := s.unlucky.process.over(); over {
			return s.unlucky.died()
		}
		s.unlucky.process.end(os.Kill)
		s.report.count("kills")
		if err := s.damage(s.killRNG); err != nil {
			return err
		}
		if err := s.unlucky.start(); err != nil {
			return err
		}
	}
	return nil
}

// damage does something to the store of the replica that was killed, one time in two.
func (s *stage) damage(rng *rand.Rand) error {
	store := filepath.Join(s.unlucky.data, "registry.db")
	aside, err := filepath.Glob(store + ".damaged-*") // set aside before
	for _, file := range aside {
		err = errors.Join(err, os.Remove(file))
	}
	switch rng.IntN(4) {
	case 0:
		s.report.count("bytes flipped")
		err = errors.Join(err, flip(store, rng))
	case 1:
		s.report.count("stores deleted")
		err = errors.Join(err, os.Remove(store))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was killed before it had one
	}
	return err
}

// flip changes a byte of a file.
func flip(name string, rng *rand.Rand) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	at, one := rng.Int64N(info.Size()), make([]byte, 1)
	if _, err := f.ReadAt(one, at); err != nil {
		return err
	}
	one[0] ^= 1 << rng.IntN(8)
	_, err = f.WriteAt(one, at)
	return err
}
