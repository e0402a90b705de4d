package demo

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func mustEvents(t testing.TB) []events.Event {
	t.Helper()
	all, err := Events(time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC))
	require.NoError(t, err)
	return all
}

// Every event must pass the contract, with ids of its own and no placeholder left in a text.
func TestDemoEventsAreValid(t *testing.T) {
	ids := map[string]bool{}
	for _, e := range mustEvents(t) {
		if err := events.Validate(e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if ids[e.ID] {
			t.Fatalf("id %s twice", e.ID)
		}
		ids[e.ID] = true
		if entry, ok := e.Data.(events.Entry); ok && strings.ContainsAny(entry.Reason, "{}") {
			t.Errorf("placeholder left in %q", entry.Reason)
		}
	}
}

// A 64-bit number can become somebody's id one day; more than that cannot, nor can one that begins with
// a zero, and one of the year 2083 will not soon.
func TestDemoChatIDsBelongToNobody(t *testing.T) {
	limit, late := new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(9_100_000_000_000_000_000)
	lengths := map[int]int{}
	for _, e := range mustEvents(t) {
		entry, ok := e.Data.(events.Entry)
		if !ok {
			continue
		}
		lengths[len(entry.ChatID)]++
		id, ok := new(big.Int).SetString(entry.ChatID, 10)
		switch {
		case !ok, len(entry.ChatID) < 17, len(entry.ChatID) > 20,
			len(entry.ChatID) < 19 && entry.ChatID[0] != '0', len(entry.ChatID) == 19 && id.Cmp(late) < 0, len(entry.ChatID) == 20 && id.Cmp(limit) <= 0:
			t.Fatalf("chat id %s may be somebody's", entry.ChatID)
		}
	}
	if len(lengths) != 4 {
		t.Errorf("lengths of chat ids: %v", lengths)
	}
}

// newModel returns the read model of the demonstration, made without broker and disk.
func newModel(t testing.TB) *readmodel.Model {
	t.Helper()
	renderer := readmodel.NewRenderer()
	model := readmodel.New()
	var records []readmodel.Record
	for i, e := range mustEvents(t) {
		records = append(records, renderer.Render(uint64(i+1), e.Data))
	}
	model.Apply(records, uint64(len(records)))
	return model
}

func TestDemoShowsSomethingOfEverything(t *testing.T) {
	v := newModel(t).View()
	total := 0
	for _, list := range events.Lists() {
		n := v.NumEntries(list)
		if total += n; n < 10 {
			t.Errorf("%d entries of %s", n, list)
		}
	}
	if total < 1980 || total > 2060 {
		t.Errorf("%d entries shown, about 2 000 are promised", total)
	}
	for name, query := range map[string]readmodel.ListQuery{
		"risk":           {List: events.Scammers, Status: readmodel.StatusRisk, Limit: 1},
		"verified":       {List: events.Servers, Status: readmodel.StatusVerified, Limit: 1},
		"with proofs":    {List: events.Scammers, Proofs: readmodel.ProofsWith, Limit: 1},
		"private proofs": {List: events.Scammers, Proofs: readmodel.ProofsPrivate, Limit: 1},
		"search":         {List: events.Scammers, Search: "paysafecard", Limit: 1},
	} {
		page, err := v.List(t.Context(), query)
		if err != nil || page.Total < 10 {
			t.Errorf("%s: %d entries, %v", name, page.Total, err)
		}
	}
}

// The ready line offers this check as one that finds somebody.
func TestDemoCheckFindsSomebody(t *testing.T) {
	result, err := newModel(t).View().Check(t.Context(), readmodel.CheckQuery{Search: Search})
	if err != nil || len(result.Groups) == 0 {
		t.Errorf("nobody is found by %q: %v", Search, err)
	}
}
