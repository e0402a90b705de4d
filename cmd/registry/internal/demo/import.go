package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
)

// Config configures Import.
type Config struct {
	JetStream jetstream.JetStream
	Stream    string
	History   int       // messages kept for each subject in a created stream; 0 keeps all
	DataDir   string    // for the error that names it
	Day       time.Time // of the demonstration; as for Events
	// MayCreate is false if the data directory has a checkpoint: a missing stream has then been
	// lost, which the projector reports.
	MayCreate bool
	Logger    *slog.Logger
}

// Import publishes the demonstration into an empty stream of its own, before the projector starts,
// so that the server catches up with all of it. It creates a missing stream, finishes an interrupted
// import, repeats the import of another day, and leaves a complete one alone. A stream without the
// demonstration's mark belongs to a real registry and is an error.
func Import(ctx context.Context, cfg Config) error {
	stream, err := cfg.findStream(ctx)
	if err != nil || stream == nil {
		return err
	}
	all, err := Events(cfg.Day)
	if err != nil {
		return err
	}

	// An import that ended early, or of another day, is made again from its beginning.
	wanted, err := isIncomplete(ctx, stream, all)
	if err != nil || !wanted {
		return err
	}
	sum, err := cfg.publish(ctx, all)
	if err != nil {
		return fmt.Errorf("demonstration: %w", err)
	}
	cfg.Logger.Info("demonstration registry published", "events", len(all), "last_seq", sum.LastSequence)
	return nil
}

// findStream finds or creates the stream. It returns nil if there is none and it must not be created.
func (c Config) findStream(ctx context.Context) (jetstream.Stream, error) {
	found, err := c.JetStream.Stream(ctx, c.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !c.MayCreate {
			return nil, nil
		}
		found, err = c.JetStream.CreateStream(ctx, stream.Config(c.Stream, 1, c.History, stream.Identity{Demo: true}))
	}
	if err != nil {
		return nil, fmt.Errorf("demonstration: %w", err)
	}

	if found.CachedInfo().Config.Metadata[events.MetadataDemo] != "true" {
		return nil, fmt.Errorf("--demo: the stream %s in %s is not a demonstration's; choose another --data-dir", c.Stream, c.DataDir)
	}
	return found, nil
}

// isIncomplete reports whether the stream never held a message, or its import was interrupted or is
// another day's: then the last message on the subject of the last event is not that event.
func isIncomplete(ctx context.Context, stream jetstream.Stream, all []events.Event) (bool, error) {
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return state.LastSeq == 0, nil // otherwise it was purged
	}

	last := all[len(all)-1]
	msg, err := stream.GetLastMsgForSubject(ctx, last.Data.Subject().String())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("demonstration: %w", err)
	}
	published, err := events.DecodeMessage(msg.Subject, msg.Data)
	return err != nil || published.ID != last.ID, nil
}

// publish sends the last event separately once everything before it is stored, since it marks a
// complete import.
func (c Config) publish(ctx context.Context, all []events.Event) (publish.Summary, error) {
	messages := make([]publish.Message, len(all))
	for i, e := range all {
		messages[i] = publish.Message{Event: e}
	}

	p := publish.New(c.JetStream, publish.Config{Stream: c.Stream})
	mark := len(all) - 1
	if sum, err := p.PublishAll(ctx, messages[:mark]); err != nil {
		return sum, err
	}
	return p.PublishAll(ctx, messages[mark:])
}
