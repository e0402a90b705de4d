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
	Day       time.Time // for Events
	// MayCreate is false if the data directory has a checkpoint. A missing stream has then been lost, and the
	// projector reports that.
	MayCreate bool
	Logger    *slog.Logger
}

// Import publishes the demonstration into an empty stream of its own, before the projector starts,
// so that the server catches up with all of it. If the stream is missing, Import creates it or, without
// cfg.MayCreate, does nothing. Events that the stream has are not sent, so an interrupted import goes on where it
// ended. A stream without the demonstration's mark belongs to a real registry and is an error.
func Import(ctx context.Context, cfg Config) error {
	exists, err := cfg.ensureStream(ctx)
	if err != nil || !exists {
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

// ensureStream creates the stream if it is missing and may be created. exists means that there is a stream now.
func (c Config) ensureStream(ctx context.Context) (exists bool, err error) {
	found, err := c.JetStream.Stream(ctx, c.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !c.MayCreate {
			return false, nil
		}
		found, err = c.JetStream.CreateStream(ctx, stream.Config(c.Stream, 1, c.History, stream.Identity{Demo: true}))
	}
	if err != nil {
		return false, fmt.Errorf("demonstration: %w", err)
	}

	if found.CachedInfo().Config.Metadata[events.MetadataDemo] != "true" {
		return false, fmt.Errorf("--demo: the stream %s in %s is not a demonstration's; choose another --data-dir", c.Stream, c.DataDir)
	}
	return true, nil
}
