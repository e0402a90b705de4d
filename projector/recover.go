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

// Known holds the latest states of one or more sources, for Recover to publish.
type Known struct {
	Sources []stream.Identity
	States  map[events.Subject]events.Data
}

// Add adds a whole snapshot or export. After an error k must not be used.
func (k *Known) Add(from io.Reader) error {
	if k.States == nil {
		k.States = map[events.Subject]events.Data{}
	}

	return snapshots.Read(from, func(h snapshots.Header) error {
		k.Sources = append(k.Sources, h.Identity)
		return nil
	}, func(_ uint64, e events.Event) error {
		subject := e.Data.Subject()
		if known := k.States[subject]; known == nil || events.Compare(e.Data, known) > 0 {
			k.States[subject] = e.Data
		}
		return nil
	})
}

// RecoverOptions are an operator's decisions.
type RecoverOptions struct {
	Create            bool   // make a missing stream
	Replicas, History int    // of a stream that is made
	Into              string // the epoch of a stream that is not related to the sources

	// Progress, if not nil, is called as states have been dealt with.
	Progress func(done, total int)
}

// RecoveryPlan describes the effect of Recover.
type RecoveryPlan struct {
	Missing  bool   // there is no stream
	Messages uint64 // in the stream
	Publish  int    // states that the stream lacks, or has with a smaller revision
	Known    int    // states that the stream has
	Newer    int    // states that the stream has with a greater revision
}

// PlanRecovery compares the known states with the stream, and changes nothing. It fails if Recover would
// refuse.
func PlanRecovery(ctx context.Context, js jetstream.JetStream, name string, k *Known, o RecoverOptions) (RecoveryPlan, error) {
	info, err := k.findTarget(ctx, js, name, o)
	if err != nil {
		return RecoveryPlan{}, err
	}

	if info == nil {
		return RecoveryPlan{Missing: true, Publish: len(k.States)}, nil
	}

	sum, err := k.publishStates(ctx, js, name, o, true)
	return RecoveryPlan{Messages: info.State.Msgs, Publish: sum.Sent, Known: sum.Known, Newer: sum.Stale}, err
}

// Recover publishes the known states that the stream lacks. First the stream gets a new epoch, which
// follows its own epoch and the sources' epochs: every server then reads it again, beside the model that it
// shows, and goes on by itself. Recover may be repeated.
func Recover(ctx context.Context, js jetstream.JetStream, name string, k *Known, o RecoverOptions) (publish.Summary, error) {
	info, err := k.findTarget(ctx, js, name, o)
	if err != nil {
		return publish.Summary{}, err
	}

	if info == nil {
		err = k.createTarget(ctx, js, name, o)
	} else {
		err = k.renewEpoch(ctx, js, info)
	}
	if err != nil {
		return publish.Summary{}, err
	}
	return k.publishStates(ctx, js, name, o, false)
}

// findTarget returns the stream's state, nil if it is missing and may be made, or why nothing may be
// published into it.
func (k *Known) findTarget(ctx context.Context, js jetstream.JetStream, name string, o RecoverOptions) (*jetstream.StreamInfo, error) {
	if slices.ContainsFunc(k.Sources, func(id stream.Identity) bool { return id.Demo }) {
		return nil, errors.New("the demonstration is not recovered: serve --demo makes it anew in an empty directory")
	}

	info, err := stream.Stream{JS: js, Name: name}.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if o.Create {
			return nil, nil
		}
		return nil, fmt.Errorf("the broker has no stream %s; create it with --create-stream, or correct --stream", name)
	}
	if err != nil {
		return nil, err
	}

	found := stream.IdentityOf(info)
	if found.Demo {
		return nil, fmt.Errorf("the stream %s is the demonstration's; name another with --stream or --nats-url", name)
	}
	if err := refuseStream(info.Config); err != nil {
		return nil, err
	}

	isRelated := slices.ContainsFunc(k.Sources, found.Related)
	if info.State.LastSeq == 0 || isRelated || o.Into == found.Epoch {
		return info, nil
	}

	var epochs []string // each once: two files may be of one epoch
	for _, source := range k.Sources {
		if !slices.Contains(epochs, source.Epoch) {
			epochs = append(epochs, source.Epoch)
		}
	}
	return nil, fmt.Errorf("the stream %s is another registry's: it has the epoch %s, %d messages and %d subjects, and the %d states to publish are of %s; "+
		"correct --nats-url or --stream, or join both with --into %s", name, found.Epoch, info.State.Msgs, info.State.NumSubjects,
		len(k.States), strings.Join(epochs, ", "), found.Epoch)
}

// createTarget makes the stream with a new epoch.
func (k *Known) createTarget(ctx context.Context, js jetstream.JetStream, name string, o RecoverOptions) error {
	epoch := events.NewEpoch()
	id := stream.Identity{Epoch: epoch, Follows: stream.Follow(epoch, k.Sources...)}
	_, err := js.CreateStream(ctx, stream.Config(name, max(1, o.Replicas), o.History, id))
	if err != nil {
		return fmt.Errorf("create stream %s: %w", name, natserr.Explain(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+name))
	}
	return nil
}

// renewEpoch gives the stream a new epoch.
func (k *Known) renewEpoch(ctx context.Context, js jetstream.JetStream, info *jetstream.StreamInfo) error {
	epoch := events.NewEpoch()
	followed := append([]stream.Identity{stream.IdentityOf(info)}, k.Sources...)
	cfg := info.Config
	cfg.Metadata = map[string]string{} // a copy, since info has the same map
	maps.Copy(cfg.Metadata, info.Config.Metadata)
	maps.DeleteFunc(cfg.Metadata, func(name, _ string) bool { return strings.HasPrefix(name, "_nats.") }) // the broker's own
	cfg.Metadata[events.MetadataEpoch] = epoch
	cfg.Metadata[events.MetadataFollows] = strings.Join(stream.Follow(epoch, followed...), " ")

	_, err := js.UpdateStream(ctx, cfg)
	if err != nil {
		return fmt.Errorf("give the stream %s a new epoch: %w; the key must allow that (deploy/nats/accounts.conf: emergency)", cfg.Name,
			natserr.Explain(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.UPDATE."+cfg.Name))
	}
	return nil
}

// publishStates publishes the states that win against the stream, or only counts them.
func (k *Known) publishStates(ctx context.Context, js jetstream.JetStream, name string, o RecoverOptions, dryRun bool) (publish.Summary, error) {
	all := make([]publish.Message, 0, len(k.States))
	for _, data := range k.States {
		all = append(all, publish.Message{Event: events.StateEvent(data)})
	}

	cfg := publish.Config{Stream: name, AnyRevision: true, DryRun: dryRun}
	if o.Progress != nil {
		cfg.Progress = func(sum publish.Summary) { o.Progress(sum.Done(), len(k.States)) }
	}

	sum, err := publish.New(js, cfg).PublishAll(ctx, all)
	if refused, is := errors.AsType[*publish.MessageError](err); is {
		err = refused.Err // the index means nothing to an operator
	}
	return sum, err
}
