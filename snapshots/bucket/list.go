package bucket

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/snapshots"
)

// Item is one object of the bucket.
type Item struct {
	Name  string
	Time  time.Time // when it was complete, by the broker's clock
	Bytes uint64

	// Manifest is what was said of the archive when it was put; Bad is why there is none, or why
	// this program cannot use the archive.
	Manifest snapshots.Manifest
	Bad      error

	info    jetstream.ObjectInfo
	subject string
}

// List is every snapshot, the newest first, and the broker's time. Nothing that is still being put is
// among them.
func (b *Bucket) List(ctx context.Context) ([]Item, time.Time, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	subjects, now, err := subjectsOf(ctx, s, namePrefix+">")
	if err != nil {
		return nil, now, err
	}
	var items []Item
	for subject := range subjects {
		item, err := b.item(ctx, s, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // pruned in the meantime
		}
		if err != nil {
			return nil, now, err
		}
		if !item.info.Deleted {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	return items, now, nil
}

// subjectsOf lists the subjects that the filter matches, with the number of their messages.
func subjectsOf(ctx context.Context, s jetstream.Stream, filter string) (map[string]uint64, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, time.Time{}, err
	}
	return info.State.Subjects, info.TimeStamp, nil
}

func (b *Bucket) item(ctx context.Context, s jetstream.Stream, subject string) (Item, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return Item{}, err
	}
	item := Item{Time: m.Time, subject: subject}
	if err := json.Unmarshal(m.Data, &item.info); err != nil {
		name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(subject, namePrefix))
		item.Name, item.Bad = string(name), fmt.Errorf("not an object: %w", err)
		return item, nil
	}
	item.Name, item.Bytes = item.info.Name, item.info.Size
	item.Manifest, item.Bad = snapshots.ParseManifest([]byte(item.info.Metadata[manifestLabel]))
	return item, nil
}

// Find is the snapshot of this name; ErrUnknown when there is none.
func (b *Bucket) Find(ctx context.Context, name string) (Item, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return Item{}, err
	}
	item, err := b.item(ctx, s, namePrefix+base64.URLEncoding.EncodeToString([]byte(name)))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && item.info.Deleted {
		return Item{}, ErrUnknown
	}
	return item, err
}
