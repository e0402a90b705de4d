//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// quiet holds all traffic up, waits until both replicas have everything, compares, and takes a sample.
func (s *stage) quiet(ctx context.Context, n int) error {
	began := time.Now()
	s.backend.calm.Lock()
	defer s.backend.calm.Unlock()
	s.readers.hangUp()
	if err := s.agree(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	if err := s.rejected(ctx, s.compareRNG); err != nil {
		return err
	}
	x, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if err := s.saveProfile(ctx, n); err != nil {
		return err
	}
	for _, r := range []*replica{s.living, s.unlucky} {
		if err := s.asAcknowledged(ctx, r); err != nil {
			return err
		}
	}
	s.samples = append(s.samples, x)
	s.tell(n, x, took)
	return nil
}

// measure takes a sample of the living replica, as it is and after a rebuild. The checkpoint moves on where a rejected
// event was published again.
func (s *stage) measure(ctx context.Context) (x sample, err error) {
	old, err := s.use(ctx)
	if err != nil {
		return x, err
	}
	if _, err := s.command(ctx, s.living, "rebuild", "--yes"); err != nil {
		return x, err
	}
	s.report.count("rebuild")
	if err := s.tidy(); err != nil {
		return x, err
	}
	if x, err = s.use(ctx); err != nil {
		return x, err
	}
	x.fresh, x.heap = x.heap, old.heap
	x.after = time.Since(s.began)
	return x, nil
}

// use is what the living replica uses when all that it can remember of the readers' questions is remembered.
func (s *stage) use(ctx context.Context) (x sample, err error) {
	if _, err := s.living.settled(ctx, s.backend.last.Load()); err != nil {
		return x, err
	}
	if err := s.readers.fill(ctx); err != nil {
		return x, err
	}
	heap, err := liveHeap(ctx, s.living)
	if err != nil {
		return x, err
	}
	x, err = usage(ctx, s.living)
	x.heap = heap
	return x, err
}

// saveProfile leaves the heap's profile among what --keep keeps, for the comparison of two rounds: go tool pprof -base.
func (s *stage) saveProfile(ctx context.Context, n int) error {
	a, err := ask(ctx, s.living.Admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("heap-%03d.pb.gz", n)), a.body, 0o600)
}

func (s *stage) tell(n int, x sample, took time.Duration) {
	s.report.say("%3d  %6s  %d events, %d reads, %d kills, %d rebuilds, agreed in %.1fs; %.0f goroutines, %.0f descriptors, live heap %s (%s after a rebuild), resident %s",
		n, x.after.Round(time.Second), s.backend.acked.Load(), s.readers.answered.Load(), s.report.counted("kills"), s.report.counted("rebuild"),
		took.Seconds(), x.goroutines, x.descriptors, megabytes(x.heap), megabytes(x.fresh), megabytes(x.resident))
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.2f MB", bytes/1e6) }
