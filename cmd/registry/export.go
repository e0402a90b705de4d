package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"example.org/registry/snapshots"
)

// exportCmd writes a whole content as events.
type exportCmd struct {
	Snapshot string `arg:"" optional:"" name:"NAME or FILE" help:"A file, if there is one of this name; else a snapshot in the object store. Without it: the running server's content."`
	adminFlags
	bucketFlags
}

// Help is what registry export --help says beyond the flags.
func (exportCmd) Help() string {
	return "One CloudEvent a line, in a fixed order, each with a new id: entries, view totals (also of entries that are not listed) and donations. " +
		"registry export … | registry publish --create-stream - into a new stream, then registry rebuild --accept-stream, is the way back when the stream is lost. " +
		"An export that cannot be finished ends with a line that publish refuses, and with status 1."
}

// Run writes nothing before everything has been proved.
func (c *exportCmd) Run(p *process) error {
	out := &counted{to: p.stdout}
	err := plainly(p.ctx, c.write(p, out))
	if err != nil && out.n > 0 {
		_, tellErr := io.WriteString(p.stdout, "\n"+snapshots.ExportFailed)
		err = errors.Join(err, tellErr)
	}
	return err
}

func (c *exportCmd) write(p *process, out io.Writer) error {
	if c.Snapshot != "" {
		return c.unpacked(p, c.Snapshot, func(path string, _ snapshots.Manifest) error {
			return snapshots.ExportFile(p.ctx, path, out)
		})
	}
	body, err := c.ask(p.ctx, http.MethodGet, "/export")
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(out, body); err != nil {
		return fmt.Errorf("export: cut short: %w", err)
	}
	return nil
}

// counted counts what is written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
