package recovery

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
)

const inFlight = 256 // events that wait for their acknowledgments

// Publish begins p's new history, if there is one, after which p begins none; then it publishes what
// the stream lacks. conflicts counts where somebody else has published since p was made: compare again.
// done, if not nil, is called after each event, one call at a time.
func Publish(ctx context.Context, s leader.Stream, p *Plan, done func()) (published, conflicts int, err error) {
	if p.Begins {
		if _, err := lineage.Begin(ctx, s, p.history, p.last); natserr.IsConflict(err) {
			return 0, 1, nil
		} else if err != nil {
			return 0, 0, err
		}
		p.Begins = false
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, c := range p.Changes {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			e := events.StateEvent(c.Data)
			e.ID = events.NewEventID() // the broker drops an id that it has stored within two minutes, though the stream may have lost that
			payload, err := events.Encode(e)
			if err == nil {
				_, err = s.PublishAfter(ctx, c.Data.Subject().String(), payload, e.ID, c.Last)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				published++
			case natserr.IsConflict(err):
				conflicts++
			default:
				err = natserr.PermissionError(s.JS.Conn(), err, "") // the connection's last error may be about another subject
				return fmt.Errorf("publish on %s: %w", c.Data.Subject().Masked(), err)
			}
			if done != nil {
				done()
			}
			return nil
		})
	}
	err = group.Wait()
	return published, conflicts, err
}
