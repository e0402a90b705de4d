package projector

import (
	"context"
	"maps"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Purge erases the copies under subject, or of events that were on subject, which may have wildcards (CheckPattern),
// and returns how many there were. The events stay in their stream: who replays it finds and copies them again.
func (r *Rejected) Purge(ctx context.Context, subject string) (n uint64, err error) {
	defer func() { err = r.explained(err) }()
	stream, err := r.copies(ctx)
	if err != nil || stream == nil {
		return 0, err
	}
	if strings.HasPrefix(subject, events.RejectedPrefix) {
		return purge(ctx, stream, subject)
	}
	copies, err := r.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, x := range copies {
		if !matches(x.Subject, subject) {
			continue
		}
		erased, err := purge(ctx, stream, x.subject)
		if err != nil {
			return n, err
		}
		n += erased
	}
	return n, nil
}

// purge erases what is under a subject, wildcards included, and counts it before.
func purge(ctx context.Context, stream jetstream.Stream, subject string) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*requestTimeout)
	defer cancel()
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	for count := range maps.Values(info.State.Subjects) {
		n += count
	}
	return n, stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}
