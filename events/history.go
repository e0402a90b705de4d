package events

import (
	"encoding/json"
	"errors"
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

// MaxHistoryName bounds the name of a history, in bytes. A longer epoch is not the name of a
// history that a marker can continue.
const MaxHistoryName = 256

// History is a marker: from its sequence on, the stream is the history Name. A server published it
// when it accepted a stream that did not continue the history Previous.
type History struct {
	Name     string `json:"history"`
	Previous string `json:"previous"`
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
	for _, name := range []string{h.Name, h.Previous} {
		if name == "" || len(name) > MaxHistoryName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("a history has a name of 1 to 256 visible ASCII characters")
		}
	}
	if h.Name == h.Previous {
		return errors.New("a history does not follow itself")
	}
	return nil
}
