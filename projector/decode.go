package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
)

// One worker decodes a chunk of messages. Chunks are small enough to keep all workers busy, and
// large enough that passing them on is cheap.
const (
	chunkMessages = 256
	chunkBytes    = 1 << 20
)

// chunk is a group of messages that one worker decodes. The worker sets records, histories and
// rejected before it closes done; the session reads them afterwards.
type chunk struct {
	messages  []leader.Delivery
	records   []readmodel.Record
	histories []beginning
	rejected  []rejection
	done      chan struct{}
}

// beginning is the marker of a history (events/CONTRACT.md#histories).
type beginning struct {
	events.History
	sequence uint64
}

// rejection is a rejected event: its copy, without the epoch of its stream, and the text that the
// log may contain (events/CONTRACT.md#rejection).
type rejection struct {
	rejected.Copy
	subject, reason string
}

// newRejection returns the rejection of m; plain is the reason for the log.
func newRejection(m *leader.Message, reason, plain string) rejection {
	return rejection{
		rejected.Copy{Sequence: m.Sequence, Subject: m.Subject, Reason: reason, Time: m.Time, Payload: m.Data, MessageID: shownID(m.ID)},
		events.MaskSubject(m.Subject, m.Data), plain}
}

// shownID returns a message's id for the header of a copy, or "" for one that no event may have: it
// may be as long as a message, and hold anything.
func shownID(id string) string {
	if !utf8.ValidString(id) || utf8.RuneCountInString(id) > 256 || strings.ContainsFunc(id, unicode.IsControl) {
		return ""
	}
	return id
}

// decodeChunks decodes chunks until ctx ends.
func decodeChunks(ctx context.Context, chunks <-chan *chunk, log *slog.Logger) {
	d := decoder{renderer: readmodel.NewRenderer(), log: log}
	for {
		select {
		case c := <-chunks:
			d.chunk(c)
			close(c.done)
		case <-ctx.Done():
			return
		}
	}
}

// decoder decodes events. One goroutine owns it, since its renderer needs that.
type decoder struct {
	renderer *readmodel.Renderer
	log      *slog.Logger
}

func (d *decoder) chunk(c *chunk) {
	c.records = make([]readmodel.Record, 0, len(c.messages))
	for i := range c.messages {
		m := &c.messages[i].Message
		if m.Subject == events.HistorySubject {
			if h, err := events.DecodeHistory(m.Data); err == nil {
				c.histories = append(c.histories, beginning{h, m.Sequence})
				continue
			}
		}
		r, err := d.record(m)
		if err != nil {
			c.rejected = append(c.rejected, newRejection(m, err.Error(), plainReason(err)))
			continue
		}
		c.records = append(c.records, r)
	}
}

// record decodes and renders one event. A panic or error of a library costs only this event
// (promise 8).
func (d *decoder) record(m *leader.Message) (r readmodel.Record, err error) {
	defer func() {
		if v := recover(); v != nil {
			d.renderer = readmodel.NewRenderer() // the old one may be in an inconsistent state
			subject := events.MaskSubject(m.Subject, m.Data)
			what := v
			if subject != m.Subject {
				what = fmt.Sprintf("a %T", v) // v may quote the event
			}
			d.log.Error("event caused a panic; rejected", "seq", m.Sequence, "subject", subject,
				"panic", what, "stack", string(debug.Stack()))
			err = errors.New("internal: " + headerText(fmt.Sprint(v)))
		}
	}()
	e, err := m.Event()
	if err != nil {
		return readmodel.Record{}, err
	}
	return d.renderer.Render(m.Sequence, e.Data), nil
}

// plainReason returns err, an error of record, in a form for the log.
func plainReason(err error) string {
	if bad, ok := errors.AsType[*events.Error](err); ok {
		return bad.Plain()
	}
	return "internal: a panic"
}

// headerText shortens and cleans a text for a header of at most 200 bytes.
func headerText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 180)], "")
}
