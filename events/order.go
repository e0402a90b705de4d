package events

import "hash/maphash"

// order knows the highest sequence that was acknowledged for each subject of a run. A duplicate
// acknowledged below it was stored before an earlier message of the run. That happens because
// the broker does not forget ids in the order of their messages: after a restart it knows only
// those of messages it still has, not of what roll-ups and compaction have erased, and its
// window may end in the middle of what is published again.
//
// Comparing sequences, instead of noting what the run has stored as new, also finds what an
// earlier run has left in the wrong order when it was killed.
//
// Subjects are kept as 64-bit hashes. Two that look equal, one pair in millions of runs of ten
// million subjects, would only have a known message stored once more.
type order struct {
	seed    maphash.Seed
	highest map[uint64]uint64 // sequence by hash of the subject
}

func newOrder() order { return order{maphash.MakeSeed(), map[uint64]uint64{}} }

// outdated says that the acknowledged message is not after all that the run has of its subject.
func (o *order) outdated(subject string, a ack) bool {
	return a.Duplicate && a.Sequence < o.highest[maphash.String(o.seed, subject)]
}

// add notes an acknowledgement, of a batch too: its members' sequences are at most the one
// acknowledged, and nothing else is stored between them.
func (o *order) add(subject string, a ack) {
	key := maphash.String(o.seed, subject)
	o.highest[key] = max(o.highest[key], a.Sequence)
}
