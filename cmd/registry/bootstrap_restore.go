package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/projector"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// restoreFirst restores the newest one that is good.
func (c *candidates) restoreFirst(ctx context.Context, path string) error {
	if c.info == nil {
		c.lost()
		return nil
	}
	slices.SortStableFunc(c.items, func(a, b bucket.Item) int { return cmp.Compare(b.Manifest.Sequence, a.Manifest.Sequence) })
	for _, item := range c.items {
		began := time.Now()
		err := c.restore(ctx, item, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.log.Warn("snapshot passed over: an older one or the whole stream does; registry snapshot create makes a good one",
				"name", item.Name, "reason", err.Error())
			continue
		}
		c.log.Info("starting from a snapshot", "name", item.Name, "sequence", item.Manifest.Sequence,
			"digest", item.Manifest.Digest, "took", time.Since(began).Round(time.Millisecond).String())
		return nil
	}
	return nil
}

// lost tells the operator of snapshots whose stream is gone: an empty one is about to be made.
func (c *candidates) lost() {
	for _, item := range c.items {
		if item.Manifest.Stream == c.stream {
			c.log.Error("the stream is missing, and there are snapshots of it: an empty one is made and served; "+
				"if it was lost, bring it back with registry export NAME | registry publish -", "name", item.Name)
			return
		}
	}
}

// restore makes the store out of one snapshot. It is refused by what its object says, and again by what
// the archive itself says.
func (c *candidates) restore(ctx context.Context, item bucket.Item, path string) error {
	if item.Bad != nil {
		return item.Bad
	}
	accept := func(m snapshots.Manifest) error { return c.accept(ctx, m) }
	if err := accept(item.Manifest); err != nil {
		return err
	}
	archive, err := c.bucket.Open(ctx, item)
	if err != nil {
		return err
	}
	_, _, err = snapshots.Restore(ctx, archive, snapshots.Restoring{Path: path, Accept: accept})
	return err
}

// accept says why a snapshot cannot be continued from this stream.
func (c *candidates) accept(ctx context.Context, m snapshots.Manifest) error {
	epoch, state := projector.EpochOf(c.info), c.info.State
	switch {
	case m.Stream != c.stream:
		return fmt.Errorf("it is of the stream %.64q", m.Stream)
	case m.StreamEpoch != epoch:
		return fmt.Errorf("it is of another stream of this name: its epoch is %.64q, not %.64q", m.StreamEpoch, epoch)
	case m.Sequence > state.LastSeq:
		return fmt.Errorf("it is at %d, and the stream ends at %d", m.Sequence, state.LastSeq)
	case m.Sequence+1 < state.FirstSeq:
		return fmt.Errorf("it is at %d, and the stream begins at %d: what was in between may be lost to it", m.Sequence, state.FirstSeq)
	}
	return c.acceptMessage(ctx, m)
}

// acceptMessage compares the message at the snapshot's sequence. That there is none proves nothing: newer ones
// of its subject push it out, unless the stream was made at another time than the snapshot's.
func (c *candidates) acceptMessage(ctx context.Context, m snapshots.Manifest) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	s, err := c.js.Stream(ctx, c.stream)
	if err != nil {
		return err
	}
	at, err := s.GetMsg(ctx, m.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return c.acceptCreated(m)
	}
	if err != nil {
		return err
	}
	if at.Header.Get(jetstream.MsgIDHeader) != m.MessageID || !at.Time.Equal(m.MessageTime) {
		return fmt.Errorf("the stream has another message at %d", m.Sequence)
	}
	return nil
}

// acceptCreated tells a stream that was made again with the old one's metadata.
func (c *candidates) acceptCreated(m snapshots.Manifest) error {
	if m.StreamCreated.IsZero() || m.StreamCreated.Equal(c.info.Created) {
		return nil
	}
	return fmt.Errorf("the stream was made again at %s, and has no message at %d", c.info.Created.UTC().Format(time.RFC3339), m.Sequence)
}
