package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// A client that folds the pages of the feed, cut anywhere, from two replicas and over a restart of one,
// has what the lists show, and the server's digest proves it.
func TestFeedFolds(t *testing.T) {
	t.Parallel()
	first := startProgram(t)
	first.fill(200, 21)
	second := startProgram(t, "--nats-url="+first.NATS)
	random := rand.New(rand.NewPCG(21, 0))

	var summary struct{ Epoch, Digest string }
	first.get("/api/changes", &summary)
	copied, since := map[string]string{}, uint64(0) // entries by list and _id
	page := func(from *program) (upToDate bool) {
		var page struct {
			Until    uint64
			UpToDate bool
			Changes  []struct {
				List  string
				ID    string `json:"_id"`
				Entry json.RawMessage
			}
		}
		from.get(fmt.Sprintf("/api/changes/%s?since=%d&limit=%d", summary.Epoch, since, 1+random.IntN(9)), &page)
		for _, c := range page.Changes {
			if c.Entry == nil {
				delete(copied, c.List+"/"+c.ID)
				continue
			}
			copied[c.List+"/"+idOf(t, c.Entry)] = string(c.Entry)
		}
		since = page.Until
		return page.UpToDate
	}

	more := eventstest.Events(300, 21)[200:]
	for n, e := range more {
		_, err := first.publisher().PublishAll(t.Context(), []publish.Message{{Event: e}})
		require.NoError(t, err)
		page([]*program{first, second}[random.IntN(2)])
		if n == len(more)/2 {
			second.stop()
			second.start()
		}
	}
	first.applied(300)
	for !page(first) || since < 300 {
	}

	sum, shown := new(big.Int), 0
	for _, l := range events.Lists() {
		for skip, hasMore := 0, true; hasMore; skip += 60 {
			var list struct {
				Data    []json.RawMessage
				HasMore bool
			}
			first.get(fmt.Sprintf("/api/%s?limit=60&skip=%d", l, skip), &list)
			hasMore, shown = list.HasMore, shown+len(list.Data)
			for _, entry := range list.Data {
				require.Equal(t, string(entry), copied[string(l)+"/"+idOf(t, entry)])
				hash := sha256.Sum256([]byte(string(l) + "\n" + string(entry)))
				sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
			}
		}
	}
	first.get("/api/changes", &summary)
	require.Equal(t, shown, len(copied))
	require.Equal(t, summary.Digest, hex.EncodeToString(sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128)).FillBytes(make([]byte, 16))))
}

func idOf(t *testing.T, entry json.RawMessage) string {
	t.Helper()
	var named struct {
		ID string `json:"_id"`
	}
	require.NoError(t, json.Unmarshal(entry, &named))
	return named.ID
}
