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
	Day       time.Time // whose events are published, as by Events
	// MayCreate is false if the data directory has a checkpoint: a missing stream has then been
	// lost, which the projector reports.
	MayCreate bool
	Logger    *slog.Logger
}

// Import publishes the demonstration into an empty stream of its own, before the projector starts,
// so that the server catches up with all of it. It creates a missing stream. What the stream has already is
// not sent, so an interrupted import goes on where it ended. A stream without the demonstration's mark belongs
// to a real registry and is an error.
func Import(ctx context.Context, cfg Config) error {
	found, err := cfg.findStream(ctx)
	if err != nil || found == nil {
		return err
	}
	all, err := Events(cfg.Day)
	if err != nil {
		return err
	}

	messages := make([]publish.Message, len(all))
	for i, e := range all {
		messages[i] = publish.Message{Event: e}
	}
	sum, err := publish.New(cfg.JetStream, publish.Config{Stream: cfg.Stream}).PublishAll(ctx, messages)
	if err != nil {
		return fmt.Errorf("demonstration: %w", err)
	}

	if sum.Sent > 0 {
		cfg.Logger.Info("demonstration registry published", "events", sum.Sent, "last_seq", sum.LastSequence)
	}
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
