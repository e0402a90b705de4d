package projector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// maxRetained bounds the messages of a subject that are looked at. A stream that keeps all has
// more; one good message among the first decides.
const maxRetained = 1000

// scan examines the subjects of the copies that earlier processes made.
func (s *subjects) scan(ctx context.Context, r *rejecter) error {
	sequences, err := copies(ctx, r)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, seq := range sequences {
		m, err := getMessage(ctx, r.cfg.Conn, r.cfg.Stream, seq, "")
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // newer ones have pushed it out
		}
		if err != nil {
			return fmt.Errorf("rejected event %d: %w", seq, err)
		}
		found[m.subject] = true
	}
	for subject := range maps.All(found) {
		s.examine(ctx, r, subject)
	}
	return nil
}

// copies lists the sequences of the rejected events of this stream that have copies.
func copies(ctx context.Context, r *rejecter) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, events.RejectedStream)
	if err != nil {
		return nil, err
	}
	prefix := events.RejectedPrefix + token(r.epoch) + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	var sequences []uint64
	for subject := range maps.All(info.State.Subjects) {
		if seq, err := strconv.ParseUint(strings.TrimPrefix(subject, prefix), 10, 64); err == nil {
			sequences = append(sequences, seq)
		}
	}
	slices.Sort(sequences)
	return sequences, nil
}

// examineAll examines the subjects of a batch of rejected events.
func (s *subjects) examineAll(ctx context.Context, r *rejecter, batch []rejection) {
	seen := map[string]bool{}
	for _, x := range batch {
		if !seen[x.subject] {
			seen[x.subject] = true
			s.examine(ctx, r, x.subject)
		}
	}
}

// examine looks at what the stream still has of subject. When the stream does not answer the question
// is open, and the subject not listed: the next rejection or start asks again.
func (s *subjects) examine(ctx context.Context, r *rejecter, subject string) {
	if _, err := events.ParseSubject(subject); err != nil {
		return
	}
	if !s.mark(subject) {
		return
	}
	valid, err := hasValid(ctx, r, subject)
	if valid || err != nil {
		s.clear(subject)
		return
	}
	s.list(subject)
}

// hasValid reads the retained messages of subject until it finds a valid one. A subject without
// any message counts as valid: nothing of it was rejected.
func hasValid(ctx context.Context, r *rejecter, subject string) (bool, error) {
	d := decoder{renderer: readmodel.NewRenderer(), log: r.log}
	seq := uint64(1)
	for n := range maxRetained {
		m, err := getMessage(ctx, r.cfg.Conn, r.cfg.Stream, seq, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return n == 0, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := d.one(&message{subject: m.subject, data: m.data, seq: m.seq}); err == nil {
			return true, nil
		}
		seq = m.seq + 1
	}
	return false, nil
}
