package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/httpapi/mirror"
)

// mirrorCmd maintains a copy of another registry's lists.
type mirrorCmd struct {
	URL  cli.URL `arg:"" name:"URL" help:"Public address of the registry, such as https://registry.example."`
	File string  `arg:"" name:"FILE" help:"File that holds the copy. What the command needs to go on stands beside it, in FILE.mirror."`
	Once bool    `help:"End as soon as the copy is up to date."`
}

// Help returns the help beyond the flags.
func (mirrorCmd) Help() string {
	return "Copies what the lists of a registry show, by its public feed of changes, and keeps the copy up to date until it is stopped. FILE has one entry a line, as JSON: list, " +
		"reportedAt, and entry as the lists show it; by list, then by _id. FILE is replaced in one step, and only by a copy whose counts and digest are the server's. A large " +
		"file is replaced less often. After an interruption of any kind the same command goes on where it was. It waits while the registry cannot be reached; " +
		"if the registry has another stream, it begins a new copy. Exit status 1 if no registry answers at URL, if nothing is reached within 10 s of the start, or if a copy still differs after it was " +
		"fetched anew."
}

// Run prints a line each time FILE has been replaced. Without --once a signal ends it with status
// 0.
func (c *mirrorCmd) Run(p *process) error {
	for _, path := range []string{c.File, c.File + ".mirror"} {
		if err := replaceable("FILE", path); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Dir(c.File)); err != nil {
		return cli.Unwritable("FILE", c.File, err)
	}
	err := mirror.Run(p.ctx, mirror.Config{
		URL: string(c.URL), File: c.File, Once: c.Once,
		Told: func(u mirror.UpToDate) error {
			_, err := fmt.Fprintf(p.stdout, "up to date at sequence %d: %s; counts and digest %s are the server's\n", u.Sequence, u.Entries, u.Digest)
			return err
		},
		Warn: func(text string) { fmt.Fprintln(p.stderr, cli.Printable(text)) },
	})
	return c.explain(p, err)
}

// explain adds the remedy to an error.
func (c *mirrorCmd) explain(p *process, err error) error {
	var foreign *mirror.ForeignError
	var unreached *mirror.UnreachedError
	var disk *mirror.DiskError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &disk):
		return cli.Unwritable("FILE", c.File, disk.Err)
	case p.ctx.Err() != nil && !c.Once:
		return nil
	case p.ctx.Err() != nil:
		return errors.New("interrupted: the same command goes on from here")
	case errors.As(err, &foreign):
		return fmt.Errorf("URL: %s is not a registry with a feed of changes: %w; correct the address", c.URL, foreign.Err)
	case errors.As(err, &unreached):
		return fmt.Errorf("URL: %s: not reached within %s: %w; correct the address, or start again once the registry answers", c.URL, unreached.Within, unreached.Err)
	case errors.Is(err, mirror.ErrKept):
		return fmt.Errorf("FILE: %s: %w; stop that one, or name another file", cli.Printable(c.File), err)
	case errors.Is(err, mirror.ErrDiffers):
		return fmt.Errorf("%w; FILE is as it was; if replicas of different versions answer at %s, start again once all have the same", err, c.URL)
	}
	return err
}
