package events

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// HistorySubject carries the markers that begin histories (events/CONTRACT.md#histories). Backends
// do not publish on it.
const HistorySubject = "registry.history"

// TypeHistoryBegun is the CloudEvents type of a marker. It is not one of Types: it changes no
// state.
const TypeHistoryBegun = "registry.history.begun"

// HistorySource is the source of markers.
const HistorySource = "urn:registry:history"

const (
	// MaxHistoryName bounds the name of a history, in bytes. A longer epoch is not the name of a
	// history that a marker can continue.
	MaxHistoryName = 256

	// MaxFollows bounds the histories that one history follows.
	MaxFollows = 1000
)

// The kinds of a history.
const (
	HistoryNew  = "new"  // the stream did not hold what it follows, and recover has published that
	HistoryFork = "fork" // a copy for tests, which shares no earlier history with anybody
)

// History is a marker: from its sequence on, the stream is the history Name.
type History struct {
	Name     string   `json:"history"`
	Follows  []string `json:"follows"` // every history whose states it has
	Kind     string   `json:"kind"`
	Revision int64    `json:"revision"` // of two markers, the one with the greater is newer
}

// Names returns the histories that a reader of the marker belongs to, h first.
func (h History) Names() []string {
	if h.Kind == HistoryFork {
		return []string{h.Name}
	}
	return append([]string{h.Name}, h.Follows...)
}

// marker is a History as a CloudEvent.
type marker struct {
	SpecVersion string  `json:"specversion"`
	ID          string  `json:"id"`
	Source      string  `json:"source"`
	Type        string  `json:"type"`
	ContentType string  `json:"datacontenttype,omitempty"`
	Data        History `json:"data"`
}

// EncodeHistory returns a marker's payload. The event's id is the name of the history.
func EncodeHistory(h History) ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if h.Follows == nil {
		h.Follows = []string{}
	}
	return json.Marshal(marker{"1.0", h.Name, HistorySource, TypeHistoryBegun, "application/json", h})
}

// DecodeHistory reads a message on HistorySubject.
func DecodeHistory(payload []byte) (History, error) {
	if len(payload) > MaxPayload {
		return History{}, errors.New("a marker of a history is shorter")
	}
	var m marker
	if err := json.Unmarshal(payload, &m); err != nil {
		return History{}, errors.New("not the JSON of a history's marker")
	}
	if m.SpecVersion != "1.0" || m.Type != TypeHistoryBegun {
		return History{}, errors.New("only " + TypeHistoryBegun + " belongs on " + HistorySubject)
	}
	return m.Data, m.Data.check()
}

func (h History) check() error {
	switch {
	case !IsHistoryName(h.Name) || slices.ContainsFunc(h.Follows, func(name string) bool { return !IsHistoryName(name) }):
		return errors.New("a history has a name of 1 to 256 visible ASCII characters")
	case slices.Contains(h.Follows, h.Name):
		return errors.New("a history does not follow itself")
	case len(h.Follows) > MaxFollows:
		return errors.New("a history follows at most 1000 others")
	case h.Kind != HistoryNew && h.Kind != HistoryFork:
		return errors.New("a history is new or a fork")
	case h.Revision < 1 || h.Revision > MaxRevision:
		return errors.New("a history has a revision from 1 to 7289654399999")
	}
	return nil
}

// IsHistoryName reports whether a history may have the name.
func IsHistoryName(name string) bool {
	return name != "" && len(name) <= MaxHistoryName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}
