package projector

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	// minPart is how many messages are worth a goroutine.
	minPart = 64

	// maxMarks is how many of the last messages recognize the stream.
	maxMarks = 16
)

// decoded is what a message carries: a record and its line, or the reason to reject it.
type decoded struct {
	record readmodel.Record
	line   []byte // as registry export writes it
	err    error
}

// decodeAll decodes and renders messages on all CPUs.
func decodeAll(messages []stream.Message, log *slog.Logger) []decoded {
	all := make([]decoded, len(messages))
	size := max(minPart, len(messages)/runtime.GOMAXPROCS(0)+1)
	var group errgroup.Group
	for from := 0; from < len(messages); from += size {
		group.Go(func() error {
			d := decoder{renderer: readmodel.NewRenderer(), log: log}
			for i := from; i < min(from+size, len(messages)); i++ {
				all[i] = d.decode(&messages[i])
			}
			return nil
		})
	}
	_ = group.Wait() // no part returns an error
	return all
}

// decoder decodes events. One goroutine owns it, since its renderer needs that.
type decoder struct {
	renderer *readmodel.Renderer
	log      *slog.Logger
}

// decode decodes and renders one event. A panic or error of a library costs only this event.
func (d *decoder) decode(m *stream.Message) (is decoded) {
	defer func() {
		if v := recover(); v != nil {
			d.renderer = readmodel.NewRenderer() // the old one may be in an inconsistent state
			subject := events.MaskSubject(m.Subject, m.Data)
			d.log.Error("event caused a panic; rejected", "seq", m.Sequence, "subject", subject,
				"panic", fmt.Sprintf("a %T", v), "stack", string(debug.Stack()))
			is = decoded{err: errors.New("internal: " + headerText(fmt.Sprint(v)))}
		}
	}()

	e, err := m.Event()
	if err != nil {
		return decoded{err: err}
	}
	line, err := events.Encode(events.StateEvent(e.Data))
	if err != nil {
		return decoded{err: err}
	}
	return decoded{record: d.renderer.Render(m.Sequence, e.Data), line: line}
}

// plainReason returns an error of decode in a form for the log: without text from the event.
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

// apply applies messages, after which everything up to a sequence has been read.
func (p *Projector) apply(messages []stream.Message, upTo uint64) {
	if upTo <= p.meta.Sequence {
		return
	}
	items := decodeAll(messages, p.log)
	records := make([]readmodel.Record, 0, len(items))
	for _, item := range items {
		if item.err == nil {
			records = append(records, item.record)
		}
	}

	// Model and position change together.
	p.mu.Lock()
	_, lost := p.cfg.Model.Apply(records, upTo)
	p.meta.Sequence, p.meta.Marks = upTo, appendMarks(p.meta.Marks, messages)
	p.mu.Unlock()

	losses := make(map[uint64]readmodel.Loss, len(lost))
	for _, loss := range lost {
		losses[loss.Record.Sequence] = loss
	}
	for i := range messages {
		m, item := &messages[i], &items[i]
		loss, loses := losses[m.Sequence]
		if item.err == nil && !loses {
			p.pending.addState(m, item)
			continue
		}
		p.pending.addDisplaced(m)
		if reason, plain := p.rejectReason(item, loss); reason != "" {
			p.reject(m, reason, plain)
		} else {
			p.counts.superseded++
		}
	}
	p.counts.applied += uint64(len(messages))
	p.moved = time.Now()
	p.change()
	p.show(nil)
}

// rejectReason returns why an event that does not count is rejected, also in a form for the log, or "".
// A removal that is read again says nothing new: the backend has published a greater revision since.
func (p *Projector) rejectReason(item *decoded, loss readmodel.Loss) (reason, plain string) {
	if item.err != nil {
		return item.err.Error(), plainReason(item.err)
	}
	if p.reading {
		return "", ""
	}
	if loss.Conflict {
		reason = fmt.Sprintf("revision %d has another state", loss.Known)
	}
	if loss.Unheeded {
		reason = fmt.Sprintf("known revision %d", loss.Known)
		if p.phase == caughtUp || p.cfg.Meta.Sequence > 0 { // otherwise another server has said so
			p.counts.unheeded++
		}
	}
	return reason, reason
}

// reject adds an event to those that are copied, and logs it unless there were too many.
func (p *Projector) reject(m *stream.Message, reason, plain string) {
	p.counts.rejected++
	p.logRejection(m, plain)
	if p.cfg.ReadOnly {
		return
	}
	p.pending.rejected = append(p.pending.rejected, rejection{message: *m, reason: reason})
	p.pending.rejectedBytes += len(m.Data)
}

func (p *Projector) logRejection(m *stream.Message, plain string) {
	subject := events.MaskSubject(m.Subject, m.Data)
	if m.Sequence <= p.cfg.LoggedUpTo || p.cfg.ReadOnly {
		p.log.Debug("event rejected", "seq", m.Sequence, "subject", subject, "reason", plain)
		return
	}
	if !p.lines.Allow() {
		p.unlogged++
		return
	}
	log := p.log
	if p.unlogged > 0 {
		log, p.unlogged = log.With("unlogged", p.unlogged), 0
	}
	log.Warn("event rejected", "seq", m.Sequence, "subject", subject, "reason", plain)
}

// appendMarks returns the last marks of those that were there and of messages after them.
func appendMarks(marks []snapshots.Mark, messages []stream.Message) []snapshots.Mark {
	all := slices.Clone(marks)
	for _, m := range messages[max(0, len(messages)-maxMarks):] {
		all = append(all, snapshots.Mark{Sequence: m.Sequence, Time: m.Time.UTC()})
	}
	return all[max(0, len(all)-maxMarks):]
}
