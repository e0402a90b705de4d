package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/projector/recovery"
	"example.org/registry/readmodel"
)

// tombstonesCmd writes what was removed, without names.
type tombstonesCmd struct {
	Snapshot string `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's."`
	Output   string `placeholder:"FILE" help:"Replace this file in one step, once everything is written. What it knew of the same history stays in it; a file of another registry is refused. -: standard output."`
	cli.AdminFlags
	bucketFlags
}

// Help returns the help beyond the flags.
func (tombstonesCmd) Help() string {
	return "One CloudEvent a line for everything that was removed: entries that have left their list, trusted persons whose trust was withdrawn, and donations, each with its revision " +
		"and time. The last line says how many there are, and of which history. " +
		"It has no names, so keep it beside snapshot files and renew it often: registry recover SNAPSHOT --tombstones FILE then accuses nobody again whose appeal has " +
		"succeeded since. A file without its last line is refused."
}

// tombstonesFailed ends incomplete output.
const tombstonesFailed = "# tombstones failed: this is not everything\n"

// Run writes nothing before a snapshot has been verified.
func (c *tombstonesCmd) Run(p *process) error {
	if !toFile(c.Output) {
		return endWith(p, tombstonesFailed, c.write)
	}
	if err := replaceable("--output", c.Output); err != nil {
		return err
	}
	older, err := readTombstones("--output", c.Output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	exists := err == nil
	return cli.Interrupted(p.ctx, replaceFile("--output", c.Output, func(f *os.File) error {
		t, err := c.removals(p)
		if err == nil && exists {
			err = t.Add(older)
		}
		if err != nil {
			return fmt.Errorf("--output: %s stays as it is: %w", cli.Printable(c.Output), err)
		}
		return t.Write(f)
	}))
}

func (c *tombstonesCmd) write(p *process, out io.Writer) error {
	if c.Snapshot == "" {
		return copyAnswer(p, c.AdminFlags, http.MethodGet, "/tombstones", out)
	}
	t, err := c.removals(p)
	if err != nil {
		return err
	}
	return t.Write(out)
}

// removals returns the removals that the running server or the snapshot knows.
func (c *tombstonesCmd) removals(p *process) (t recovery.Tombstones, err error) {
	if c.Snapshot == "" {
		return serverTombstones(p, c.AdminFlags)
	}
	err = c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		r, err := open()
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		t = recovery.Tombstones{Histories: r.Manifest.Histories, Time: r.Manifest.Time}
		err = r.EachState(ctx, func(s readmodel.State) {
			if gone := recovery.Withdrawal(s.Data); gone != nil {
				t.Removals = append(t.Removals, gone)
			}
		})
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		return nil
	})
	return t, err
}

// serverTombstones returns the removals that the running server knows.
func serverTombstones(p *process, f cli.AdminFlags) (recovery.Tombstones, error) {
	body, err := f.Ask(p.ctx, http.MethodGet, "/tombstones")
	if err != nil {
		return recovery.Tombstones{}, err
	}
	defer body.Close()
	t, err := recovery.ReadTombstones(body)
	if err != nil {
		return t, fmt.Errorf("the running server's tombstones: %w", err)
	}
	return t, nil
}

// readTombstones reads a file that registry tombstones wrote.
func readTombstones(flag, path string) (recovery.Tombstones, error) {
	f, err := os.Open(path)
	if err != nil {
		return recovery.Tombstones{}, cli.Unreadable(flag, path, err)
	}
	defer f.Close()
	t, err := recovery.ReadTombstones(f)
	if err != nil {
		return t, fmt.Errorf("%s: %s: %w; give a file that registry tombstones wrote to its end", flag, cli.Printable(path), err)
	}
	return t, nil
}

// copyAnswer writes a response of the running server to out.
func copyAnswer(p *process, f cli.AdminFlags, method, path string, out io.Writer) error {
	body, err := f.Ask(p.ctx, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(out, body); err != nil {
		return fmt.Errorf("%s: cut short: %w", path[1:], err)
	}
	return nil
}

// endWith runs write. If write fails after some output, line marks the output as incomplete.
func endWith(p *process, line string, write func(*process, io.Writer) error) error {
	out := &counted{to: p.stdout}
	err := cli.Interrupted(p.ctx, write(p, out))
	if err != nil && out.n > 0 {
		_, tellErr := io.WriteString(p.stdout, "\n"+line)
		err = errors.Join(err, tellErr)
	}
	return err
}

// counted counts the bytes written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
