package projector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
	"example.org/registry/snapshots"
)

// Known is what Recover publishes: the latest states of one or more sources.
type Known struct {
	Sources []stream.Identity
	States  map[events.Subject]events.Data
}

// Add joins a whole snapshot or export with what is known.
func (k *Known) Add(from io.Reader) error {
	joined := Known{States: map[events.Subject]events.Data{}}
	err := snapshots.Read(from, func(h snapshots.Header) error {
		joined.Sources = append(joined.Sources, h.Identity)
		return nil
	}, func(_ uint64, e events.Event) error {
		joined.States[e.Data.Subject()] = e.Data
		return nil
	})
	if err != nil {
		return err
	}

	if k.States == nil {
		k.States = map[events.Subject]events.Data{}
	}
	k.Sources = append(k.Sources, joined.Sources...)
	for subject, data := range joined.States {
		if has := k.States[subject]; has == nil || events.Compare(data, has) > 0 {
			k.States[subject] = data
		}
	}
	return nil
}

// RecoverOptions are an operator's decisions.
type RecoverOptions struct {
	Create            bool   // make a missing stream
	Replicas, History int    // of a stream that is made
	Into              string // the epoch of a stream that is not related to the sources
	// Progress, if not nil, is called as states have been dealt with.
	Progress func(done, total int)
}

// RecoveryPlan says what Recover would do.
type RecoveryPlan struct {
	Missing  bool            // there is no stream
	Stream   stream.Identity // of the stream, if there is one
	Messages uint64          // in the stream
	Publish  int             // states that the stream lacks, or has with a smaller revision
	Known    int             // states that the stream has
	Newer    int             // states that the stream has with a greater revision
}

// PlanRecovery compares what is known with the stream, and changes nothing. The error is that of
// Recover if it would refuse.
func PlanRecovery(ctx context.Context, js jetstream.JetStream, name string, k *Known, o RecoverOptions) (RecoveryPlan, error) {
	info, err := stream.Stream{JS: js, Name: name}.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return RecoveryPlan{Missing: true, Publish: len(k.States)}, k.checkMissing(name, o)
	}
	if err != nil {
		return RecoveryPlan{}, err
	}
	plan := RecoveryPlan{Stream: stream.IdentityOf(info), Messages: info.State.Msgs}
	if err := k.check(info, o); err != nil {
		return plan, err
	}
	sum, err := k.publish(ctx, js, name, o, true)
	plan.Publish, plan.Known, plan.Newer = sum.Sent, sum.Known, sum.Stale
	return plan, err
}

// Recover publishes what the stream lacks of what is known. First the stream gets a new epoch, which
// follows its own and those of the sources: every server then reads it again, beside what it shows,
// and goes on by itself. It may be repeated.
func Recover(ctx context.Context, js jetstream.JetStream, name string, k *Known, o RecoverOptions) (publish.Summary, error) {
	info, err := stream.Stream{JS: js, Name: name}.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		err = k.create(ctx, js, name, o)
	case err == nil:
		err = k.renew(ctx, js, info, o)
	}
	if err != nil {
		return publish.Summary{}, err
	}

	return k.publish(ctx, js, name, o, false)
}

// publish publishes what wins against the stream, or only counts it.
func (k *Known) publish(ctx context.Context, js jetstream.JetStream, name string, o RecoverOptions, dryRun bool) (publish.Summary, error) {
	cfg := publish.Config{Stream: name, AnyRevision: true, DryRun: dryRun}
	if o.Progress != nil {
		cfg.Progress = func(sum publish.Summary) { o.Progress(sum.Done(), len(k.States)) }
	}
	sum, err := publish.New(js, cfg).PublishAll(ctx, k.messages())
	if refused, is := errors.AsType[*publish.MessageError](err); is {
		err = refused.Err
	}
	return sum, err
}

// messages returns what is known as events, by subject.
func (k *Known) messages() []publish.Message {
	all := make([]publish.Message, 0, len(k.States))
	for _, data := range k.States {
		all = append(all, publish.Message{Event: events.StateEvent(data)})
	}
	slices.SortFunc(all, func(a, b publish.Message) int {
		return strings.Compare(a.Event.Data.Subject().String(), b.Event.Data.Subject().String())
	})
	return all
}

// checkMissing returns why a missing stream is not made.
func (k *Known) checkMissing(name string, o RecoverOptions) error {
	if err := k.refuseDemo(); err != nil {
		return err
	}
	if !o.Create {
		return fmt.Errorf("the broker has no stream %s; create it with --create-stream, or correct --stream", name)
	}
	return nil
}

func (k *Known) refuseDemo() error {
	if slices.ContainsFunc(k.Sources, func(id stream.Identity) bool { return id.Demo }) {
		return errors.New("the demonstration is not recovered: serve --demo makes it anew in an empty directory")
	}
	return nil
}

// check returns why nothing may be published into a stream. It is refused if it has messages and
// nothing in common with the sources.
func (k *Known) check(info *jetstream.StreamInfo, o RecoverOptions) error {
	found := stream.IdentityOf(info)
	if found.Demo {
		return fmt.Errorf("the stream %s is the demonstration's; name another with --stream or --nats-url", info.Config.Name)
	}
	if err := k.refuseDemo(); err != nil {
		return err
	}
	if err := refuseStream(info.Config); err != nil {
		return err
	}
	related := slices.ContainsFunc(k.Sources, found.Related)
	if info.State.LastSeq == 0 || related || o.Into == found.Epoch {
		return nil
	}
	epochs := make([]string, 0, len(k.Sources))
	for _, source := range k.Sources {
		epochs = append(epochs, source.Epoch)
	}
	return fmt.Errorf("the stream %s is another registry's: it has the epoch %s, %d messages and %d subjects, and the %d states to publish are of %s; "+
		"correct --nats-url or --stream, or join both with --into %s", info.Config.Name, found.Epoch, info.State.Msgs, info.State.NumSubjects,
		len(k.States), strings.Join(epochs, ", "), found.Epoch)
}

func (k *Known) create(ctx context.Context, js jetstream.JetStream, name string, o RecoverOptions) error {
	if err := k.checkMissing(name, o); err != nil {
		return err
	}
	epoch := events.NewEpoch()
	cfg := stream.Config(name, max(1, o.Replicas), o.History, stream.Identity{Epoch: epoch, Follows: stream.Follow(epoch, k.Sources...)})
	_, err := js.CreateStream(ctx, cfg)
	if err != nil {
		return fmt.Errorf("create stream %s: %w", name, natserr.Explain(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+name))
	}
	return nil
}

// renew gives the stream a new epoch.
func (k *Known) renew(ctx context.Context, js jetstream.JetStream, info *jetstream.StreamInfo, o RecoverOptions) error {
	if err := k.check(info, o); err != nil {
		return err
	}
	epoch := events.NewEpoch()
	sides := append([]stream.Identity{stream.IdentityOf(info)}, k.Sources...)
	cfg := info.Config
	cfg.Metadata = cloneWith(cfg.Metadata, map[string]string{
		events.MetadataEpoch:   epoch,
		events.MetadataFollows: strings.Join(stream.Follow(epoch, sides...), " "),
	})
	_, err := js.UpdateStream(ctx, cfg)
	if err != nil {
		return fmt.Errorf("give the stream %s a new epoch: %w; the key must allow that (deploy/nats/accounts.conf: emergency)", info.Config.Name,
			natserr.Explain(js.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.UPDATE."+info.Config.Name))
	}
	return nil
}

// cloneWith returns a copy of a stream's metadata with some changes. The broker adds metadata of its
// own, which it refuses to be given.
func cloneWith(metadata, changes map[string]string) map[string]string {
	changed := map[string]string{}
	for name, value := range metadata {
		if !strings.HasPrefix(name, "_nats.") {
			changed[name] = value
		}
	}
	for name, value := range changes {
		changed[name] = value
	}
	return changed
}
