package recovery

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The same states in any order, with repetitions, split in any way over the stream, a file, a
// snapshot and the stores of replicas, with the last five messages of a subject kept, the eraser and
// the put-back running between any two steps: once what the stream lacks is published, every replica,
// old, restarted or new, has the same content (events/CONTRACT.md#revisions).
func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &union{t: t, renderer: readmodel.NewRenderer(), file: States{}}
		w.replicas = []*replica{w.newReplica(), w.newReplica(), w.newReplica()}
		w.all = rapid.SliceOfN(someState(), 1, 30).Draw(t, "states")
		w.left = slices.Clone(w.all)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(*rapid.T) {
				if d := w.next(); d != nil {
					w.publish(d)
				}
			},
			"publish again": func(t *rapid.T) { w.publish(rapid.SampledFrom(w.all).Draw(t, "again")) },
			"keep in the file": func(*rapid.T) {
				if d := w.next(); d != nil {
					w.file.Add(readmodel.State{Data: d})
				}
			},
			"read":     func(t *rapid.T) { w.read(w.some(t)) },
			"restart":  func(t *rapid.T) { w.restart(w.some(t)) },
			"new":      func(*rapid.T) { w.replicas[2] = w.newReplica() },
			"snapshot": func(*rapid.T) { w.snapshot = maps.Clone(w.replicas[1].store) },
			"erase":    func(*rapid.T) { w.read(w.replicas[0]); w.erase() },
			"put back": func(*rapid.T) { w.read(w.replicas[0]); w.putBack() },
		})
		for d := w.next(); d != nil; d = w.next() {
			w.publish(d)
		}
		w.recover()
		for _, r := range w.replicas {
			w.read(r)
			w.same(r.model)
		}
		fresh := w.newReplica()
		w.read(fresh)
		w.same(fresh.model)
	})
}

// someState draws a state of one of five subjects.
func someState() *rapid.Generator[events.Data] {
	return rapid.Custom(func(t *rapid.T) events.Data {
		revision, at := rapid.Int64Range(1, 5).Draw(t, "revision"), time.UnixMilli(rapid.Int64Range(1, 3).Draw(t, "time")).UTC()
		list := rapid.SampledFrom([]events.List{events.Scammers, events.Legit}).Draw(t, "list")
		id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			return events.Delisting{List: list, EntryID: id, Revision: revision}
		case 3:
			return events.Views{List: events.Scammers, EntryID: "a", Revision: revision, Views: at.UnixMilli()}
		case 4:
			return events.DonationRemoval{DonationID: "d", Revision: revision}
		case 5:
			return events.Donation{DonationID: "d", Status: "pending", Amount: "1", Currency: "PLN", Confirmations: at.UnixMilli(), CreatedAt: at, UpdatedAt: at, Revision: revision}
		}
		return events.Entry{List: list, EntryID: id, ChatID: "1", Name: "x", Reason: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "reason"),
			Verified: rapid.Bool().Draw(t, "verified"), ReportID: "r", ReportedAt: at, Revision: revision}
	})
}

// union is the states and where they are.
type union struct {
	t         *rapid.T
	renderer  *readmodel.Renderer
	all, left []events.Data
	end       uint64
	stream    []readmodel.State
	file      States
	snapshot  map[events.Subject]stored
	replicas  []*replica
}

// replica is a model with its store, as far as it has read the stream.
type replica struct {
	model *readmodel.Model
	store map[events.Subject]stored
	at    uint64
}

// stored is a record as a store has it.
type stored struct {
	value []byte
	data  events.Data
}

func (w *union) newReplica() *replica { return w.load(map[events.Subject]stored{}, 0) }

// load makes a replica of a store.
func (w *union) load(store map[events.Subject]stored, at uint64) *replica {
	r := &replica{readmodel.New(), store, at}
	for k, s := range store {
		record, err := w.renderer.DecodeRecord(k, events.IsRemoval(s.data), s.value, false)
		require.NoError(w.t, err)
		r.model.Apply([]readmodel.Record{record}, at)
	}
	return r
}

func (w *union) some(t *rapid.T) *replica { return rapid.SampledFrom(w.replicas).Draw(t, "replica") }

func (w *union) next() events.Data {
	if len(w.left) == 0 {
		return nil
	}
	d := w.left[0]
	w.left = w.left[1:]
	return d
}

// publish adds a message. A server has read the messages that the stream then drops.
func (w *union) publish(d events.Data) {
	of := func(s readmodel.State) bool { return s.Data.Subject() == d.Subject() }
	w.end++
	w.stream = append(w.stream, readmodel.State{Sequence: w.end, Data: d})
	for n := len(slices.DeleteFunc(slices.Clone(w.stream), func(s readmodel.State) bool { return !of(s) })); n > events.DefaultHistory; n-- {
		w.read(w.replicas[0])
		i := slices.IndexFunc(w.stream, of)
		w.stream = slices.Delete(w.stream, i, i+1)
	}
}

func (w *union) read(r *replica) {
	for _, s := range w.stream {
		if s.Sequence <= r.at {
			continue
		}
		record := w.renderer.Render(s.Sequence, s.Data)
		if _, lost := r.model.Apply([]readmodel.Record{record}, s.Sequence); len(lost) == 0 {
			r.store[record.Subject] = stored{record.AppendValue(nil), s.Data}
		}
	}
	r.at = w.end
}

func (w *union) restart(r *replica) { *r = *w.load(r.store, r.at) }

// last returns the last message of each subject.
func (w *union) last() map[events.Subject]readmodel.State {
	last := map[events.Subject]readmodel.State{}
	for _, s := range w.stream {
		last[s.Data.Subject()] = s
	}
	return last
}

// erase drops what is before each removal that is the last message, as far as it is smaller.
func (w *union) erase() {
	last := w.last()
	w.stream = slices.DeleteFunc(w.stream, func(s readmodel.State) bool {
		l := last[s.Data.Subject()]
		return s.Sequence < l.Sequence && events.IsRemoval(l.Data) && events.Compare(s.Data, l.Data) <= 0
	})
}

// putBack publishes the states that the first replica knows where the last message is another.
func (w *union) putBack() {
	for k, l := range w.last() {
		if known := w.replicas[0].store[k].data; events.Compare(known, l.Data) != 0 {
			w.publish(known)
		}
	}
}

// recover publishes what the stream lacks of everything that is known.
func (w *union) recover() {
	known := w.file
	for _, store := range []map[events.Subject]stored{w.snapshot, w.replicas[0].store, w.replicas[1].store, w.replicas[2].store} {
		for _, s := range store {
			known.Add(readmodel.State{Data: s.data})
		}
	}
	has := States{}
	for _, s := range w.stream {
		has.Add(s)
	}
	lacks, _ := Wins(maps.Values(known), has.Data)
	for _, s := range lacks {
		w.publish(s.Data)
	}
}

// same compares a model with one that has all states in the order in which they were drawn.
func (w *union) same(m *readmodel.Model) {
	w.t.Helper()
	twin := readmodel.New()
	for i, d := range w.all {
		twin.Apply([]readmodel.Record{w.renderer.Render(uint64(i+1), d)}, uint64(i+1))
	}
	if m.Digest() != twin.Digest() {
		w.t.Fatalf("digest %s, want %s", m.Digest(), twin.Digest())
	}
}
