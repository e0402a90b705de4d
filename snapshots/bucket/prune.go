package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Prune erases all but the newest keep snapshots of this stream and epoch, and returns their names. Other names are
// left alone, whoever put them there. Callers hold the Lock.
func (b *Bucket) Prune(ctx context.Context, stream, epoch string, keep int) (gone []string, err error) {
	items, _, err := b.List(ctx) // the newest first
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(i Item) bool { return !ownName(i.Name, stream, epoch) })
	for _, item := range items[min(keep, len(items)):] {
		if err := b.erase(ctx, item); err != nil {
			return gone, fmt.Errorf("%s: %w", item.Name, err)
		}
		gone = append(gone, item.Name)
	}
	return gone, nil
}

// erase takes the name away and then the chunks. It leaves no trace in the stream.
func (b *Bucket) erase(ctx context.Context, item Item) error {
	s, err := b.stream(ctx)
	if err != nil {
		return err
	}
	subjects := []string{item.subject}
	if item.info.NUID != "" {
		subjects = append(subjects, chunkPrefix+item.info.NUID)
	}
	for _, subject := range subjects {
		if err := purge(ctx, s, subject); err != nil {
			return err
		}
	}
	return nil
}

func purge(ctx context.Context, s jetstream.Stream, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// Clean erases chunks that no name leads to and whose last is older than Config.OrphanAfter: what a put
// that was killed has left. It returns how many objects' there were. Callers hold the Lock.
func (b *Bucket) Clean(ctx context.Context) (cleaned int, err error) {
	items, _, err := b.List(ctx) // before the chunks are: what is put meanwhile is young
	if err != nil {
		return 0, err
	}
	named := map[string]bool{lockSubject: true}
	for _, i := range items {
		named[chunkPrefix+i.info.NUID] = true
	}
	s, err := b.stream(ctx)
	if err != nil {
		return 0, err
	}
	subjects, now, err := subjectsOf(ctx, s, chunkPrefix+">")
	if err != nil {
		return 0, err
	}
	for subject := range subjects {
		old, err := b.orphan(ctx, s, subject, now)
		if named[subject] || err == nil && !old {
			continue
		}
		if err == nil {
			err = purge(ctx, s, subject)
		}
		if err != nil {
			return cleaned, fmt.Errorf("chunks %s: %w", strings.TrimPrefix(subject, chunkPrefix), err)
		}
		cleaned++
	}
	return cleaned, nil
}

// orphan says whether the last chunk on subject is old enough to be nobody's.
func (b *Bucket) orphan(ctx context.Context, s jetstream.Stream, subject string, now time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil // gone
	}
	if err != nil {
		return false, err
	}
	return now.Sub(m.Time) >= b.cfg.OrphanAfter, nil
}
