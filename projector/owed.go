package projector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// Unknown is never clean: a data directory that has held more than its store holds is not ready until
// as much is known again (cmd/registry/CONTRACT.md#snapshots).

// owesStream returns why a missing stream must not be made, or "". It ends a debt that is accepted.
func (p *Projector) owesStream() string {
	if p.owed == nil {
		return ""
	}
	name := cmp.Or(p.owed.HistoryName(), "unknown")
	if p.cfg.AcceptLoss == name {
		p.owed = nil
		return ""
	}
	return fmt.Sprintf("This data directory has held %s, and its store and the stream %s are lost. registry recover or registry snapshot restore "+
		"bring it back; --accept-loss %s starts without.", owedSubjects(p.owed), p.cfg.Stream, name)
}

func owedSubjects(o *readmodel.Owed) string {
	if o.Unknown {
		return "a registry"
	}
	return fmt.Sprintf("%d subjects", o.Subjects)
}

// paid reports whether what is known may be served. It is called at the stream's end.
func (p *Projector) paid(ctx context.Context) bool {
	if p.owed == nil {
		return true
	}
	what, err := p.debt(ctx)
	switch {
	case err != nil:
		p.recheck(err) // the next session asks again
		return false
	case what != "":
		if p.tracker.setTrouble(troubleOwed, what) {
			p.log.Error("not ready: this data directory has held more than is known now", "reason", what)
		}
		return false
	}
	p.owed = nil
	p.tracker.setTrouble(troubleOwed, "")
	return true
}

// debt returns what is still owed, as a sentence, or "".
func (p *Projector) debt(ctx context.Context) (string, error) {
	o := p.owed
	info, err := p.stream.Info(ctx)
	if err != nil {
		return "", err
	}
	marker, _, err := lineage.Newest(ctx, p.stream, math.MaxUint64)
	if err != nil {
		return "", err
	}
	id := lineage.Of(info)
	recovered := marker.Sequence > 0 && !slices.Contains(o.Histories, marker.Name) &&
		(lineage.Share(o.Histories, marker.Follows) || o.Unknown && marker.Revision > o.HistoryRevision)
	if recovered || p.cfg.AcceptLoss == id.StreamEpoch {
		return "", nil
	}
	_, rewound, err := lineage.Prove(ctx, p.stream, info, o.Checkpoint)
	if err != nil {
		return "", err
	}
	has := p.cfg.Model.View().NumSubjects()
	if !o.Unknown && !rewound && has >= o.Subjects && lineage.Share(o.Histories, marker.Names(id)) {
		return "", nil
	}
	return fmt.Sprintf("This data directory has held %s up to %d, and %d are known now. registry recover or registry snapshot restore bring back "+
		"the rest; --accept-loss %s starts without.", owedSubjects(o), o.Sequence, has, id.StreamEpoch), nil
}
