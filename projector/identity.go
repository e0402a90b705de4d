package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// notOurs says that the stream is not the one that the model was made from, or not as it must be.
type notOurs struct {
	sentence string
	kind     wrong
}

// wrong is what is wrong with a stream. The zero value is that it is another one, or unusable.
type wrong int

const (
	wrongStream wrong = iota
	missing
	shorter  // it ends before the checkpoint: it may yet grow back
	regrown  // it did, and has no message at the checkpoint
	replaced // it has another message at the checkpoint
	healed   // nothing is, any more
)

// mayThaw says that the stream only looks shorter than it was.
func (n notOurs) mayThaw() bool { return n.kind == shorter || n.kind == regrown }

func (n notOurs) Error() string { return n.sentence }

// verify compares the stream with the checkpoint: its epoch, its length, the message at the
// checkpoint. The error is a notOurs, or says that the broker did not answer.
func (p *Projector) verify(ctx context.Context) error {
	info, err := StreamInfo(ctx, p.js, p.cfg.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return p.isMissing()
	}
	if err != nil {
		return err
	}
	at := p.checkpoint()
	if err := compare(info, at); err != nil {
		return err
	}
	return p.compareMessage(ctx, at, info)
}

// compare looks at what the stream says of itself.
func compare(info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	epoch := identityOf(info, events.MetadataEpoch).Epoch
	switch {
	case at.Stream.Epoch != "" && at.Stream.Epoch != epoch:
		return notOurs{sentence: fmt.Sprintf("The stream %s is another one: its epoch is %s, not %s.",
			info.Config.Name, epoch, at.Stream.Epoch)}
	case info.State.LastSeq < at.Sequence:
		return notOurs{kind: shorter, sentence: fmt.Sprintf("The stream %s ends at %d, before the checkpoint %d.",
			info.Config.Name, info.State.LastSeq, at.Sequence)}
	}
	return nil
}

// compareMessage looks at the message at the checkpoint, which alone can tell a stream that lost its
// tail and has grown past the checkpoint since. That there is none proves nothing, since newer messages of
// its subject push it out, unless the stream was made at another time (then it may be a new one with the
// old one's metadata) or was seen to be wrong before.
func (p *Projector) compareMessage(ctx context.Context, at readmodel.Checkpoint, info *jetstream.StreamInfo) error {
	if at.Sequence == 0 {
		return nil
	}
	m, err := getMessage(ctx, p.cfg.Conn, p.cfg.Stream, at.Sequence, "")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return unproved(info, at)
	}
	if err != nil {
		return err
	}
	if m.id == at.MessageID && m.time.Equal(at.MessageTime) {
		return nil
	}
	return notOurs{kind: replaced, sentence: fmt.Sprintf("The stream %s holds another message at the checkpoint %d.", p.cfg.Stream, at.Sequence)}
}

// unproved judges a stream without a message at the checkpoint. When it was made is changed by a restore into a
// cluster, too: so that counts only here.
func unproved(info *jetstream.StreamInfo, at readmodel.Checkpoint) error {
	switch {
	case !at.Stream.Created.IsZero() && !info.Created.Equal(at.Stream.Created):
		return notOurs{sentence: fmt.Sprintf("The stream %s was made again at %s and has no message at the checkpoint %d.",
			info.Config.Name, info.Created.UTC().Format(time.RFC3339), at.Sequence)}
	case at.Doubted:
		return notOurs{kind: regrown, sentence: fmt.Sprintf("The stream %s looked wrong before and has no message at the "+
			"checkpoint %d that would prove it right.", info.Config.Name, at.Sequence)}
	}
	return nil
}

func (p *Projector) isMissing() error {
	return notOurs{kind: missing, sentence: "The stream " + p.cfg.Stream + " is missing."}
}

func cannotBeUsed(err unusable) notOurs {
	return notOurs{sentence: "The stream cannot be used: " + err.Error() + "."}
}
