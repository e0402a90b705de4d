package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/recovery"
	"example.org/registry/events"
	"example.org/registry/httpapi/admin"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// tombstonesCmd writes which entries no list may show, without names.
type tombstonesCmd struct {
	Snapshot string `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's."`
	Output   string `placeholder:"FILE" help:"Replace this file in one step, once everything is written. -: standard output."`
	cli.AdminFlags
	bucketFlags
}

// Help returns the help beyond the flags.
func (tombstonesCmd) Help() string {
	return "One line of JSON for each entry that has left its list and has not been listed again: list, entryId, and the stream sequence and time of the delisting. " +
		"Trusted persons whose trust was withdrawn are among them. The last line says how many there are, and up to which sequence of which history. " +
		"It has no names, so keep it beside snapshot files and renew it often: registry recover SNAPSHOT --tombstones FILE then accuses nobody again whose appeal has " +
		"succeeded since. A file without its last line is refused."
}

// tombstonesFailed ends incomplete output.
const tombstonesFailed = "# tombstones failed: this is not everything\n"

// Run writes nothing before a snapshot has been verified.
func (c *tombstonesCmd) Run(p *process) error {
	if toFile(c.Output) {
		return cli.Interrupted(p.ctx, replaceFile("--output", c.Output, func(f *os.File) error { return c.write(p, f) }))
	}
	return endWith(p, tombstonesFailed, c.write)
}

func (c *tombstonesCmd) write(p *process, out io.Writer) error {
	if c.Snapshot == "" {
		return copyAnswer(p, c.AdminFlags, "/tombstones", out)
	}
	return c.read(p, c.Snapshot, func(ctx context.Context, open opener) error {
		r, err := open()
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		all, err := snapshots.Withdrawn(ctx, r)
		if err != nil {
			return unusable(c.Snapshot, err)
		}
		m := r.Manifest
		return admin.WriteTombstones(out, admin.Tombstones{All: all, Epoch: m.HistoryName(), Sequence: m.Sequence, Time: m.MessageTime})
	})
}

// tombstonesEnd is the last line of registry tombstones. Without it a file may be incomplete, and
// an entry that it lacks would be taken for a listed one.
type tombstonesEnd struct {
	End      bool      `json:"end"`
	Count    int       `json:"count"`
	Epoch    string    `json:"epoch"` // name of the history that the sequences belong to
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
}

// readTombstones reads the output of registry tombstones. The error names the line.
func readTombstones(path string) (w recovery.Withdrawals, err error) {
	f, err := os.Open(path)
	if err != nil {
		return w, cli.Unreadable("--tombstones", path, err)
	}
	defer f.Close()
	wrong := func(n int, err error) error {
		return fmt.Errorf("--tombstones: %s:%d: %w; give a file that registry tombstones wrote to its end", cli.Printable(path), n, err)
	}
	lines, n, ended := bufio.NewScanner(f), 0, false
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if ended {
			return w, wrong(n, errors.New("a line after the end"))
		}
		var end tombstonesEnd
		if json.Unmarshal(lines.Bytes(), &end) == nil && end.End {
			if end.Count != len(w.All) || end.Epoch == "" {
				return w, wrong(n, fmt.Errorf("the end of %d lines of a history, after %d", end.Count, len(w.All)))
			}
			w.History, w.Sequence, ended = end.Epoch, end.Sequence, true
			continue
		}
		t, err := parseTombstone(lines.Bytes())
		if err != nil {
			return w, wrong(n, err)
		}
		w.All = append(w.All, t)
	}
	if err := lines.Err(); err != nil {
		return w, cli.Unreadable("--tombstones", path, err)
	}
	if !ended {
		return w, wrong(n, errors.New("its end is missing"))
	}
	return w, nil
}

// parseTombstone reads one line.
func parseTombstone(line []byte) (readmodel.Tombstone, error) {
	var read struct {
		List     *events.List `json:"list"`
		EntryID  *string      `json:"entryId"`
		Sequence *uint64      `json:"sequence"`
		Time     *time.Time   `json:"time"`
		Hidden   bool         `json:"hidden"`
	}
	if err := json.Unmarshal(line, &read); err != nil {
		return readmodel.Tombstone{}, errors.New("not a tombstone")
	}
	if read.List == nil || read.EntryID == nil || read.Sequence == nil || read.Time == nil {
		return readmodel.Tombstone{}, errors.New("not a tombstone: list, entryId, sequence and time are required")
	}
	t := readmodel.Tombstone{List: *read.List, EntryID: *read.EntryID, Sequence: *read.Sequence, Time: read.Time.UTC(), Hidden: read.Hidden}
	if _, ok := t.List.Index(); !ok || !events.IsID(t.EntryID) {
		return readmodel.Tombstone{}, errors.New("not a tombstone: no such list or entryId")
	}
	return t, nil
}

// copyAnswer writes a response of the running server to out.
func copyAnswer(p *process, f cli.AdminFlags, path string, out io.Writer) error {
	body, err := f.Ask(p.ctx, http.MethodGet, path)
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
