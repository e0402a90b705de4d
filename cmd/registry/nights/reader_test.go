//go:build unix && !race

package nights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"

	"example.org/registry/cmd/registry/registrytest"
)

// reader keeps a copy of the lists by the feed, over servers and 410s.
type reader struct {
	epoch string
	since uint64
	lists map[string]json.RawMessage // entries by list and id
}

// feed is the document at /api/changes.
type feed struct {
	Epoch    string
	Sequence uint64
	Digest   string
}

// read brings the copy up to date from a server, and compares it with what the server's lists show.
func (r *reader) read(ctx context.Context, base string) error {
	var now feed
	client := registrytest.NewClient(true)
	defer client.CloseIdleConnections()
	if err := registrytest.Document(ctx, client, base+"/api/changes", &now); err != nil {
		return err
	}
	if r.epoch == "" {
		*r = reader{now.Epoch, 0, map[string]json.RawMessage{}}
	}
	for {
		page, err := r.page(ctx, client, base)
		if err != nil {
			return err
		}
		for _, c := range page.Changes {
			delete(r.lists, c.List+"/"+c.ID)
			if c.Op == "set" {
				var entry struct {
					ID string `json:"_id"`
				}
				if err := json.Unmarshal(c.Entry, &entry); err != nil {
					return err
				}
				r.lists[c.List+"/"+entry.ID] = c.Entry
			}
		}
		r.since = page.Until
		if page.UpToDate {
			break
		}
	}
	if got := r.digest(); got != now.Digest {
		return fmt.Errorf("a reader of the feed %s at %d has %d entries with the digest %s, the server's is %s", r.epoch, r.since, len(r.lists), got, now.Digest)
	}
	return nil
}

type page struct {
	Until    uint64
	UpToDate bool
	Changes  []struct {
		Op, List string
		ID       string `json:"_id"`
		Entry    json.RawMessage
	}
}

func (r *reader) page(ctx context.Context, client *http.Client, base string) (p page, err error) {
	a, err := registrytest.AskBy(ctx, client, fmt.Sprintf("%s/api/changes/%s?since=%d&limit=7", base, r.epoch, r.since), nil)
	switch {
	case err != nil:
		return p, err
	case a.Status == http.StatusGone: // the next reading begins with the feed's name of then
		was := r.epoch
		*r = reader{}
		return p, fmt.Errorf("the feed %s is gone", was)
	case a.Status != http.StatusOK:
		return p, fmt.Errorf("the feed answers %d to a reader of %s at %d: %s", a.Status, r.epoch, r.since, a.Body)
	}
	return p, json.Unmarshal(a.Body, &p)
}

// digest is computed as httpapi/CONTRACT.md#changes says.
func (r *reader) digest() string {
	var high, low uint64
	for key, entry := range r.lists {
		list := key[:len(key)-len("/e0")]
		sum := sha256.Sum256(append([]byte(list+"\n"), entry...))
		var carry uint64
		low, carry = bits.Add64(low, binary.BigEndian.Uint64(sum[8:]), 0)
		high, _ = bits.Add64(high, binary.BigEndian.Uint64(sum[:]), carry)
	}
	return fmt.Sprintf("%016x%016x", high, low)
}
