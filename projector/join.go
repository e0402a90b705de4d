package projector

import (
	"context"
	"slices"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// joining is a request of Join to the session.
type joining struct {
	records []readmodel.Record
	done    chan error // holds one
}

// Join adds states that are known from elsewhere: those that win against the model's are true from
// then on, and lacking in the stream until a message with them comes. Any goroutine may call it while
// Run runs; it waits for the session.
func (p *Projector) Join(ctx context.Context, states []events.Data) error {
	j := joining{done: make(chan error, 1)}
	renderer := readmodel.NewRenderer()
	for _, d := range states {
		j.records = append(j.records, renderer.Render(0, d))
	}
	select {
	case p.joins <- j:
		return <-j.done // the session is not waiting for anything but the disk
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join serves a request of Join.
func (p *Projector) join(ctx context.Context, j joining) error {
	p.withModel(func(m *readmodel.Model) {
		lost := map[events.Subject]bool{}
		_, losses := m.Apply(j.records, 0)
		for _, l := range losses {
			lost[l.Record.Subject] = true
		}
		j.records = slices.DeleteFunc(j.records, func(r readmodel.Record) bool { return lost[r.Subject] || !m.Lacks(r.Subject) })
	})
	err := p.save(ctx, j.records)
	j.done <- err
	return err
}
