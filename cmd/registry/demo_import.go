package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// importDemo publishes the demonstration registry into an empty stream, before the projector
// starts: what the server then catches up with is the whole of it. saved is the data directory's
// checkpoint.
func (s *server) importDemo(ctx context.Context, nc *nats.Conn, saved readmodel.Checkpoint) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("demonstration: %w", err)
	}
	all, err := demoEvents()
	if err != nil {
		return err
	}
	stream, err := s.demoStream(ctx, js, saved)
	if err != nil || stream == nil {
		return err
	}
	wanted, err := wantsDemo(ctx, stream, all)
	if err != nil || !wanted {
		return err
	}
	sum, err := publishDemo(ctx, js, string(s.flags.Stream), all)
	if err != nil {
		return fmt.Errorf("demonstration: %w", err)
	}
	s.log.Info("demonstration registry published", "events", len(all), "last_seq", sum.LastSequence)
	return nil
}

// demoStream finds the marked stream, or makes it where the data directory is new. An unmarked one
// belongs to a real registry, be it empty. nil: there is none although the data directory has a
// checkpoint, which the projector will report.
func (s *server) demoStream(ctx context.Context, js jetstream.JetStream, saved readmodel.Checkpoint) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, string(s.flags.Stream))
	switch {
	case err == nil && stream.CachedInfo().Config.Metadata[events.MetadataDemo] != "true":
		return nil, fmt.Errorf("--demo: the stream %s in %s is not a demonstration's; choose another --data-dir", s.flags.Stream, s.flags.dataDir())
	case err == nil:
		return stream, nil
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("demonstration: %w", err)
	case saved != readmodel.Checkpoint{}:
		return nil, nil
	}
	cfg := events.StreamConfig(string(s.flags.Stream), 1, s.flags.StreamHistory, events.NewEpoch())
	cfg.Metadata[events.MetadataDemo] = "true"
	if stream, err = js.CreateStream(ctx, cfg); err != nil {
		return nil, fmt.Errorf("demonstration: %w", err)
	}
	return stream, nil
}

// wantsDemo is true for a stream that never held a message, and for one whose import was
// interrupted, however often: it has messages, but none on the demonstration's last subject.
func wantsDemo(ctx context.Context, stream jetstream.Stream, all []events.Event) (bool, error) {
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return state.LastSeq == 0, nil // else somebody has purged it
	}
	_, err := stream.GetLastMsgForSubject(ctx, all[len(all)-1].Data.Subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("demonstration: %w", err)
	}
	return false, nil
}

// publishDemo publishes the last event by itself, when everything before it is stored: it is the
// mark of a finished import.
func publishDemo(ctx context.Context, js jetstream.JetStream, stream string, all []events.Event) (events.Summary, error) {
	messages := make([]events.Message, len(all))
	for i, e := range all {
		messages[i] = events.Message{Event: e}
	}
	run, mark := events.NewPublisher(js, events.PublisherConfig{Stream: stream}).NewRun(), len(all)-1
	if sum, err := run.PublishAll(ctx, messages[:mark]); err != nil {
		return sum, err
	}
	return run.PublishAll(ctx, messages[mark:])
}
