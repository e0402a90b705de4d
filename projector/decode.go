package projector

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// minPart is the least number of messages that is worth a goroutine of its own.
const minPart = 64

// decoded is the content of a message: a record and its line, or the reason to reject it.
type decoded struct {
	record readmodel.Record
	line   []byte // as registry export writes it
	err    error  // an *events.Error
}

var errPanic = &events.Error{Field: "event", Problem: "internal: a panic, which the log of the server describes"}

// decodeAll decodes and renders messages on all CPUs.
func decodeAll(messages []stream.Message, log *slog.Logger) []decoded {
	all := make([]decoded, len(messages))
	partSize := max(minPart, len(messages)/runtime.GOMAXPROCS(0)+1)
	var group errgroup.Group
	for from := 0; from < len(messages); from += partSize {
		group.Go(func() error {
			d := decoder{renderer: readmodel.NewRenderer(), log: log}
			for i := from; i < min(from+partSize, len(messages)); i++ {
				all[i] = d.decode(&messages[i])
			}
			return nil
		})
	}

	_ = group.Wait() // no part returns an error
	return all
}

// decoder decodes events. One goroutine owns it, as it owns the renderer.
type decoder struct {
	renderer *readmodel.Renderer
	log      *slog.Logger
}

// decode decodes and renders one event. If a library panics, only this event is rejected.
func (d *decoder) decode(m *stream.Message) (result decoded) {
	defer func() {
		if v := recover(); v != nil {
			d.renderer = readmodel.NewRenderer() // the old one may be in an inconsistent state
			d.log.Error("event caused a panic; rejected", "seq", m.Sequence, "subject", events.MaskSubject(m.Subject, m.Data),
				"panic", fmt.Sprintf("a %T", v), "stack", string(debug.Stack()))
			result = decoded{err: errPanic}
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
