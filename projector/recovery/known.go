package recovery

import (
	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Known is the true state of each subject among several sources.
type Known struct {
	At     readmodel.Checkpoint // of the source that followed a stream
	States map[events.Subject]readmodel.State
}

// Add adds what one more source knows.
func (k *Known) Add(s readmodel.State) {
	if k.States == nil {
		k.States = map[events.Subject]readmodel.State{}
	}
	subject := s.Data.Subject()
	if is, ok := k.States[subject]; !ok || events.Compare(s.Data, is.Data) > 0 {
		k.States[subject] = s
	}
}
