package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// unusable is an error that ends Run: the operator must do something.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// ensure returns the stream's state, after creating it when there is none and nothing is
// known of one.
func (p *Projector) ensure(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := StreamInfo(ctx, p.js, p.cfg.Stream)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, err
	}
	if at := p.checkpoint(); at.Sequence > 0 || at.Stream.Epoch != "" || p.cfg.ReadOnly {
		return nil, p.isMissing()
	}
	cfg := events.StreamConfig(p.cfg.Stream, p.cfg.Replicas, p.cfg.History, events.NewEpoch())
	if p.cfg.Demo {
		cfg.Metadata[events.MetadataDemo] = "true"
	}
	s, err := p.createStream(ctx, cfg)
	if err != nil {
		return nil, p.cannotCreate(ctx, err)
	}
	p.log.Info("stream created", "epoch", cfg.Metadata[events.MetadataEpoch],
		"replicas", cfg.Replicas, "history", p.cfg.History)
	return s.CachedInfo(), nil
}

func (p *Projector) createStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := p.js.CreateStream(ctx, cfg)
	return s, Reason(events.Refusal(p.cfg.Conn, err, jetstream.DefaultAPIPrefix+"STREAM.CREATE."+cfg.Name))
}

// The broker's codes for replicas without a cluster, for more of them than the cluster has nodes up, and for
// subjects that another stream has.
const (
	errReplicas jetstream.ErrorCode = 10074
	errNoPeers  jetstream.ErrorCode = 10005
	errOverlap  jetstream.ErrorCode = 10065
)

// cannotCreate tells what only the operator can change from what may pass.
func (p *Projector) cannotCreate(ctx context.Context, err error) error {
	var api *jetstream.APIError
	only := errors.As(err, &api) && (api.Code == 400 || api.ErrorCode == errReplicas) &&
		api.ErrorCode != jetstream.JSErrCodeStreamNameInUse
	err = fmt.Errorf("create stream %s: %w", p.cfg.Stream, err)
	if !only {
		return err
	}
	switch api.ErrorCode {
	case errNoPeers: // a cluster that is being started looks like this, and its nodes come
		return fmt.Errorf("waiting for nodes of the broker's cluster: too few are up for %d replicas of the stream; "+
			"if no more will come, lower --stream-replicas: %w", p.cfg.Replicas, err)
	case errOverlap:
		return unusable{fmt.Errorf("%w: %s", err, p.whoHolds(ctx))}
	case errReplicas:
		return unusable{fmt.Errorf("%w; lower --stream-replicas, or name a cluster with --nats-url", err)}
	}
	return unusable{fmt.Errorf("%w; change what the broker names, here or there", err)}
}

// whoHolds names a stream that has subjects of the registry's, and the remedies.
func (p *Projector) whoHolds(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name, err := p.js.StreamNameBySubject(ctx, events.StreamSubjects)
	if err != nil { // gone again, or of an account that may not ask
		return fmt.Sprintf("name the stream that holds %s with --stream, or remove it", events.StreamSubjects)
	}
	return fmt.Sprintf("stream %[1]s holds %[2]s or part of it; if %[1]s is the registry's, start with --stream %[1]s, "+
		"else remove it or take these subjects from it", name, events.StreamSubjects)
}

// identify keeps which stream this is, when nothing was known of one before.
func (p *Projector) identify(info *jetstream.StreamInfo) {
	at := p.checkpoint()
	if at.Stream.Epoch != "" {
		return
	}
	at.Stream = identityOf(info, events.MetadataEpoch)
	p.setCheckpoint(at)
}

// recreated keeps when a stream was made that has just been found to be ours, which changes when it is
// restored into a cluster.
func (p *Projector) recreated(info *jetstream.StreamInfo) {
	at := p.checkpoint()
	if created := info.Created.UTC(); !created.Equal(at.Stream.Created) {
		at.Stream.Created = created
		p.setCheckpoint(at)
	}
}

func (p *Projector) setCheckpoint(at readmodel.Checkpoint) {
	p.at.Store(&at)
	p.status.update(func(s *Progress) {
		s.Checkpoint, s.Epoch, s.Created = at.Sequence, at.Stream.Epoch, at.Stream.Created
	})
}
