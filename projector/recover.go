package projector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// Recovery publishes known states into a stream that has lost them. The operator sets the exported fields.
type Recovery struct {
	JetStream jetstream.JetStream // Add does not need it
	Stream    string

	Create            bool   // create a missing stream
	Replicas, History int    // of a stream that is created
	Into              string // epoch of a stream that may be joined although no source is related to it

	// Progress, if not nil, is called while states are published: total is the number of states, and done of them
	// are published or need not be.
	Progress func(done, total int)

	sources []stream.Identity
	states  map[events.Subject]events.Data // the latest state of each subject in the sources
}

// Add adds a whole snapshot or export as a source. After an error r must not be used.
func (r *Recovery) Add(from io.Reader) error {
	if r.states == nil {
		r.states = map[events.Subject]events.Data{}
	}

	h, err := snapshots.Read(from, func(_ uint64, e events.Event) error {
		subject := e.Data.Subject()
		if known := r.states[subject]; known == nil || events.Compare(e.Data, known) > 0 {
			r.states[subject] = e.Data
		}
		return nil
	})
	if err != nil {
		return err
	}
	if h.Demo {
		return errors.New("the demonstration is not recovered: serve --demo makes it anew in an empty directory")
	}

	r.sources = append(r.sources, h.Identity)
	return nil
}

// Plan compares the known states with the stream, and changes nothing: sum.Sent counts the states that Run would
// publish. Plan fails if Run would refuse. info is nil if there is no stream.
func (r *Recovery) Plan(ctx context.Context) (info *jetstream.StreamInfo, sum publish.Summary, err error) {
	info, exists, err := r.findStream(ctx)
	if err != nil {
		return nil, sum, err
	}

	if !exists {
		return nil, publish.Summary{Sent: len(r.states)}, nil
	}
	sum, err = r.publishStates(ctx, true) // a dry run
	return info, sum, err
}

// Run publishes the known states that the stream lacks. First the stream gets a new epoch, which follows the
// stream's old epoch and the sources' epochs. The new epoch makes every server read the stream again, while the
// server shows its model. Run may be repeated.
func (r *Recovery) Run(ctx context.Context) (publish.Summary, error) {
	info, exists, err := r.findStream(ctx)
	if err != nil {
		return publish.Summary{}, err
	}

	if exists {
		err = r.renewEpoch(ctx, info)
	} else {
		err = r.createStream(ctx)
	}
	if err != nil {
		return publish.Summary{}, err
	}
	return r.publishStates(ctx, false) // no dry run
}

// findStream returns the stream's state. exists is false if the stream is missing and may be created. If nothing may be
// published into the stream, the error says why.
func (r *Recovery) findStream(ctx context.Context) (info *jetstream.StreamInfo, exists bool, err error) {
	info, err = stream.Stream{JS: r.JetStream, Name: r.Stream}.Info(ctx)
	if err == nil {
		return info, true, r.checkStream(info)
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, false, err
	}
	if !r.Create {
		return nil, false, fmt.Errorf("the broker has no stream %s; create it with --create-stream, or correct --stream", r.Stream)
	}
	return nil, false, nil
}

// checkStream returns why nothing may be published into the stream, or nil.
func (r *Recovery) checkStream(info *jetstream.StreamInfo) error {
	found := stream.IdentityOf(info)
	if found.Demo {
		return fmt.Errorf("the stream %s is the demonstration's; name another with --stream or --nats-url", r.Stream)
	}
	if err := refuseStream(info.Config); err != nil {
		return err
	}

	isRelated := slices.ContainsFunc(r.sources, found.Related)
	if info.State.LastSeq == 0 || isRelated || r.Into == found.Epoch {
		return nil
	}

	// Refuse. The error has each epoch once, since two sources may be of the same one.
	var epochs []string
	for _, source := range r.sources {
		if !slices.Contains(epochs, source.Epoch) {
			epochs = append(epochs, source.Epoch)
		}
	}
	return fmt.Errorf("the stream %s is another registry's: it has the epoch %s, %d messages and %d subjects, and the %d states to publish are of %s; "+
		"correct --nats-url or --stream, or join both with --into %s", r.Stream, found.Epoch, info.State.Msgs, info.State.NumSubjects,
		len(r.states), strings.Join(epochs, ", "), found.Epoch)
}

// createStream creates the stream with a new epoch, which follows the sources' epochs.
func (r *Recovery) createStream(ctx context.Context) error {
	epoch := events.NewEpoch()
	id := stream.Identity{Epoch: epoch, Follows: stream.Follow(epoch, r.sources...)}
	err := stream.Stream{JS: r.JetStream, Name: r.Stream}.Create(ctx, stream.Config(r.Stream, r.Replicas, r.History, id))
	if err != nil {
		return fmt.Errorf("create stream %s: %w", r.Stream, err)
	}
	return nil
}

// renewEpoch gives the stream a new epoch, which follows the stream's old epoch and the sources' epochs.
func (r *Recovery) renewEpoch(ctx context.Context, info *jetstream.StreamInfo) error {
	epoch := events.NewEpoch()
	followed := append([]stream.Identity{stream.IdentityOf(info)}, r.sources...)

	// Keep the other metadata, without the broker's own (_nats.).
	cfg := info.Config
	cfg.Metadata = map[string]string{} // another map, since info.Config has the old one
	maps.Copy(cfg.Metadata, info.Config.Metadata)
	maps.DeleteFunc(cfg.Metadata, func(name, _ string) bool { return strings.HasPrefix(name, "_nats.") })
	cfg.Metadata[events.MetadataEpoch] = epoch
	cfg.Metadata[events.MetadataFollows] = strings.Join(stream.Follow(epoch, followed...), " ")

	_, err := r.JetStream.UpdateStream(ctx, cfg)
	if err != nil {
		return fmt.Errorf("give the stream %s a new epoch: %w; the key must allow that (deploy/nats/accounts.conf: emergency)", cfg.Name,
			natserr.Explain(r.JetStream.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.UPDATE."+cfg.Name))
	}
	return nil
}

// publishStates hands all known states to PublishAll, which publishes those greater than the stream's. A dry run only
// counts these.
func (r *Recovery) publishStates(ctx context.Context, dryRun bool) (publish.Summary, error) {
	all := make([]publish.Message, 0, len(r.states))
	for _, data := range r.states {
		all = append(all, publish.Message{Event: events.StateEvent(data)})
	}

	cfg := publish.Config{Stream: r.Stream, AnyRevision: true, DryRun: dryRun}
	if r.Progress != nil {
		cfg.Progress = func(sum publish.Summary) { r.Progress(sum.Done(), len(r.states)) }
	}

	sum, err := publish.New(r.JetStream, cfg).PublishAll(ctx, all)
	if refused, isRefused := errors.AsType[*publish.MessageError](err); isRefused {
		err = refused.Err // the index means nothing to an operator
	}
	return sum, err
}
