//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// play is traffic from the beginning to the end, and rounds of trouble with a quiet point after each.
func (s *stage) play(ctx context.Context) error {
	s.began = time.Now()
	group, inner := errgroup.WithContext(ctx)
	traffic, stop := context.WithCancel(inner)
	group.Go(func() error { return s.backend.run(traffic, s.cfg.rate) })
	for n := range readerCount {
		group.Go(func() error { s.readers.run(traffic, n, s.cfg.reads, s.cfg.seed); return nil })
	}
	group.Go(func() error {
		defer stop()
		for round := 1; time.Since(s.began) < s.cfg.length || len(s.samples) < leastSamples; round++ {
			if err := s.round(inner, round); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(group.Wait(), ctx.Err())
}

// round is three quarters trouble, and as much time as it takes for the quiet point.
func (s *stage) round(ctx context.Context, n int) error {
	end := s.began.Add(time.Duration(n)*s.cfg.every - s.cfg.every/4)
	if least := time.Now().Add(s.cfg.every / 4); end.Before(least) {
		end = least
	}
	if err := s.trouble(ctx, end); err != nil {
		return err
	}
	if _, over := s.living.process.over(); over {
		return s.living.died()
	}
	return s.quiet(ctx, n)
}

// trouble is everything at once until a moment; what was broken is whole again when it returns.
func (s *stage) trouble(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, all := range []func(context.Context) error{s.misfortunes, s.kills, s.operate, s.attack} {
		group.Go(func() error { return all(ctx) })
	}
	return group.Wait()
}
