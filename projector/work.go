package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// A chunk of messages goes to one worker. Small enough to keep all of them busy, large enough to
// make the hand-over cheap.
const (
	chunkMessages = 64
	chunkBytes    = 1 << 20
)

// job is a chunk on its way through the workers. The worker writes records and rejected before it
// closes done; the session reads them after.
type job struct {
	messages []message
	records  []readmodel.Record
	rejected []rejection
	done     chan struct{}
}

// rejection is one event that is not applied.
type rejection struct {
	subject string
	seq     uint64
	time    time.Time
	reason  string // one line, at most 200 bytes
	data    []byte
}

// cut takes the next chunk off messages.
func cut(messages []message) (chunk, rest []message) {
	bytes := 0
	for n := range messages {
		bytes += len(messages[n].data)
		if n == chunkMessages || n > 0 && bytes > chunkBytes {
			return messages[:n], messages[n:]
		}
	}
	return messages, nil
}

// work is one worker.
func (p *Projector) work(ctx context.Context) {
	d := decoder{renderer: readmodel.NewRenderer(), log: p.log}
	for {
		select {
		case j := <-p.jobs:
			d.do(j)
			close(j.done)
		case <-ctx.Done():
			return
		}
	}
}

// decoder belongs to one goroutine, as its renderer must.
type decoder struct {
	renderer *readmodel.Renderer
	log      *slog.Logger
}

func (d *decoder) do(j *job) {
	j.records = make([]readmodel.Record, 0, len(j.messages))
	for i := range j.messages {
		m := &j.messages[i]
		r, err := d.one(m)
		if err != nil {
			j.rejected = append(j.rejected, rejection{m.subject, m.seq, m.time, err.Error(), m.data})
			continue
		}
		j.records = append(j.records, r)
	}
}

// one decodes and renders one event. Whatever it makes the libraries do costs this event only
// (promise 8).
func (d *decoder) one(m *message) (r readmodel.Record, err error) {
	defer func() {
		if v := recover(); v != nil {
			d.renderer = readmodel.NewRenderer() // the old one may have been left half-way
			d.log.Error("event caused a panic; rejected", "seq", m.seq, "subject", m.subject,
				"panic", v, "stack", string(debug.Stack()))
			err = errors.New("internal: " + oneLine(fmt.Sprint(v)))
		}
	}()
	e, err := events.DecodeMessage(m.subject, m.data)
	if err != nil {
		return readmodel.Record{}, err
	}
	return d.renderer.Render(m.seq, e.Data), nil
}

// oneLine makes any text fit a header of at most 200 bytes.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 180)], "")
}
