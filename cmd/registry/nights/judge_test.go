//go:build unix && !race

package nights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
)

// projection is the part of /projection that the judge and the operator read.
type projection struct {
	Checkpoint, SnapshotSequence uint64
	CaughtUp, Rewound            bool
	Digest                       string
	Unpublished                  *int
	Frozen, LastError            *string
}

// judge holds every server that runs against the ledger: what must never be, at once; what must come
// about, within patience.
func (n *night) judge() {
	n.await("judged", func() error {
		var c *content
		if n.hasBroker() {
			is := n.stream()
			c = &is
		}
		var errs []error
		for _, s := range n.servers {
			if s.Server != nil {
				if err := n.look(s, c); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// look judges one server. c is nil while the broker is away.
func (n *night) look(s *server, c *content) error {
	if s.Exited() {
		return n.lookAtTheEnd(s)
	}
	now, err := n.projection(s)
	if err != nil {
		return err
	}
	ready, err := registrytest.Ask(n.ctx, s.Admin+"/readyz", nil)
	if err != nil {
		return err
	}
	if ready.Status != http.StatusOK {
		switch {
		case now.LastError == nil:
			return fmt.Errorf("is not ready and does not say why: %s", ready.Body)
		case s.owes && (c == nil || !c.covers(s.memory)): // it waits for what it had
			return nil
		case c == nil: // and nothing saved
			return nil
		}
		return fmt.Errorf("is not ready: %s", *now.LastError)
	}
	shown, err := n.shown(s)
	if err != nil {
		return err
	}
	if less := s.known.lacking(shown); len(less) > 0 {
		n.fail("%s shows less than it has known: %s", s.name, strings.Join(less, "; "))
	}
	for _, d := range shown {
		if !n.ledger[text(d)] {
			n.fail("%s shows what is not of this registry: %s", s.name, text(d))
		}
	}
	if len(s.known) == 0 && len(s.stream) == 0 {
		s.histories = names{} // it has read nothing, and follows any stream
	}
	s.known.join(shown)
	if c == nil {
		return n.lookOnly(s, now)
	}
	return n.compare(s, c, now, shown)
}

// compare holds a server against its stream.
func (n *night) compare(s *server, c *content, now projection, shown states) error {
	strange := ""
	switch {
	case !c.exists, c.last == 0 && len(shown) > 0, len(c.states) == 0 && len(shown) > 0 && now.Frozen != nil:
		strange = "missing"
	case len(s.histories) > 0 && !s.histories.share(c.histories):
		strange = "foreign"
	}
	if frozen := deref(now.Frozen); frozen != strange {
		return fmt.Errorf("frozen is %q, want %q; %s", frozen, strange, deref(now.LastError))
	}
	if strange != "" {
		return n.lookOnly(s, now)
	}
	s.histories.add(c.histories)
	if less := c.states.lacking(shown); len(less) > 0 {
		return fmt.Errorf("lacks of its stream: %s", strings.Join(less, "; "))
	}
	unpublished := shown.lacking(c.states)
	switch {
	case now.Checkpoint != c.last || !now.CaughtUp: // after it: a rewind has not been noticed
		return fmt.Errorf("is at %d of %d", now.Checkpoint, c.last)
	case now.Unpublished == nil || *now.Unpublished != len(unpublished):
		return fmt.Errorf("unpublished is %s, want %d: %s", number(now.Unpublished), len(unpublished), strings.Join(unpublished, "; "))
	case len(unpublished) > 0 && now.LastError == nil:
		return errors.New("does not say that states are unpublished")
	case len(unpublished) == 0 && !now.Rewound && now.LastError != nil:
		return fmt.Errorf("complains: %s", *now.LastError)
	case now.SnapshotSequence != now.Checkpoint:
		return errors.New("has not saved everything")
	case len(c.displaced) > 0 && !now.Rewound:
		return fmt.Errorf("the last message is not the true state: %s", c.displaced)
	}
	s.owes, s.stream = false, c.times
	if err := n.lookOnly(s, now); err != nil {
		return err
	}
	var f feed
	if err := n.document(s.HTTP+"/api/changes", &f); err != nil {
		return err
	}
	if own := strings.Contains(f.Epoch, "~"); own || len(unpublished) == 0 && !now.Rewound {
		return n.reader.read(n.ctx, s.HTTP)
	}
	return nil
}

// lookOnly compares a server with itself: its lists with its states, and its own reader with its
// lists.
func (n *night) lookOnly(s *server, now projection) error {
	if now.Frozen != nil && now.LastError == nil {
		return errors.New("is frozen and does not say why")
	}
	if err := n.lists(s); err != nil {
		return err
	}
	return s.reader.read(n.ctx, s.HTTP)
}

// lists compares the lists with the states.
func (n *night) lists(s *server) error {
	var want, got []string
	shown, err := n.shown(s)
	if err != nil {
		return err
	}
	for _, d := range shown {
		if e, ok := d.(events.Entry); ok && (!e.List.Trusted() || e.Verified) {
			want = append(want, fmt.Sprint(e.List, " ", e.EntryID, " ", e.Name))
		}
	}
	for _, list := range events.Lists() {
		var doc struct {
			Data []struct {
				ID   string `json:"_id"`
				Name string
			}
		}
		if err := n.document(fmt.Sprint(s.HTTP, "/api/", list, "?limit=60"), &doc); err != nil {
			return err
		}
		for _, e := range doc.Data {
			got = append(got, fmt.Sprint(list, " ", e.ID, " ", e.Name))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the lists show %q, the states are %q", got, want)
	}
	return nil
}

// lookAtTheEnd judges a server that has ended by itself: only one that must not guess may.
func (n *night) lookAtTheEnd(s *server) error {
	if s.State().Exited() && len(s.histories) > 0 && !s.owes {
		n.fail("%s ended by itself: %s", s.name, s.Tail())
	}
	n.tell("%s has ended: %s", s.name, s.Tail())
	s.said, s.Server = s.Tail(), nil
	return nil
}

// shown returns the states of a server, as it exports them.
func (n *night) shown(s *server) (states, error) {
	a, err := registrytest.Ask(n.ctx, s.Admin+"/export", nil)
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("export: %d %s", a.Status, a.Body)
	}
	return parseStates(a.Body)
}

func parseStates(ndjson []byte) (states, error) {
	all := states{}
	for line := range bytes.Lines(ndjson) {
		if bytes.HasPrefix(line, []byte(`{"end":true`)) {
			continue
		}
		e, err := events.Decode(bytes.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		all.add(e.Data)
	}
	return all, nil
}

func (n *night) projection(s *server) (p projection, err error) {
	return p, n.document(s.Admin+"/projection", &p)
}

func (n *night) document(url string, into any) error {
	a, err := registrytest.Ask(n.ctx, url, nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, a.Status, a.Body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(a.Body, into)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(n *int) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
