package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/internal/bounds"
)

func TestBatchParameters(t *testing.T) {
	many := make([]string, bounds.MaxBatch+1)
	for i := range many {
		many[i] = fmt.Sprintf("1%019d", i)
	}
	for raw, want := range map[string][]batchResult{
		"ids=7":                                 {{asked: "7", id: "7"}},
		"x=1&ids=+7,%3C@8%3E,%209":              {{asked: "7", id: "7"}, {asked: "<@8>", id: "8"}, {asked: " 9", id: "9"}},
		"ids=https://discord.com/users/5,nulls": {{asked: "https://discord.com/users/5", id: "5"}, {asked: "nulls", id: "nulls"}},
		"ids=" + strings.Repeat("x", 64) + ",y": {{asked: strings.Repeat("x", 64), id: strings.Repeat("x", 64)}, {asked: "y", id: "y"}},
	} {
		if got, err := parseBatch(raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.80q: %v %v, want %v", raw, got, err, want)
		}
	}
	if got, err := parseBatch("ids=" + strings.Join(many[:bounds.MaxBatch], ",")); err != nil || len(got) != bounds.MaxBatch {
		t.Errorf("100 ids: %d, %v", len(got), err)
	}
	for raw, want := range map[string]string{
		"": "missing ids", "ids=": "missing ids", "ids=%20": "missing ids", "id=7": "missing ids",
		"ids=,": "ids", "ids=7,": "ids", "ids=,7": "ids", "ids=7,,8": "ids", "ids=7,%20,8": "ids",
		"ids=7,7": "ids", "ids=7,%3C@7%3E": "ids", "ids=7,%207": "ids", "ids=7&ids=8": "ids",
		"ids=undefined": "ids", "ids=7,Null": "ids", "ids=7,+None+,8": "ids", "ids=7,a.b": "ids", "ids=7,8%E2%80%8B": "ids", "ids=%FF": "ids", "ids=7%00": "ids",
		"ids=" + strings.Repeat("x", 65): "ids", "ids=7,%3C@" + strings.Repeat("1", 65) + "%3E": "ids",
		"ids=" + strings.Join(many, ","):                "ids",
		"ids=" + strings.Repeat("x", bounds.MaxQuery-3): "query", "ids=%zz": "query",
	} {
		_, err := parseBatch(raw)
		if got := wrong(t, err); got != want {
			t.Errorf("%.80q: %q, want %q", raw, got, want)
		}
	}
}

// A batch says of every id what a check says of it, at one state, and may be asked like a check.
func TestBatchIsChecks(t *testing.T) {
	f := serve(t)
	ids := []string{"nobody", "300000000000000002"}
	for _, l := range []string{"scammers", "servers", "legit"} {
		var page struct{ Data []struct{ ID string } }
		require.NoError(t, json.Unmarshal([]byte(f.get(t, "/api/"+l).body), &page))
		for _, e := range page.Data {
			if !slices.Contains(ids, e.ID) {
				ids = append(ids, e.ID)
			}
		}
	}
	target := "/api/check/batch?ids=" + strings.Join(ids, ",")
	a := f.get(t, target)
	var got struct {
		Results []struct {
			ID      string
			Results json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Results) != len(ids) {
		t.Fatalf("%v: %s", err, a.body)
	}
	for i, id := range ids {
		check := f.get(t, "/api/check?id="+id).body
		if r := got.Results[i]; r.ID != id || `{"results":`+string(r.Results)+`}` != check {
			t.Errorf("%s: %s, a check says %s", id, r.Results, check)
		}
	}
	if c := a.header.Get("Cache-Control"); c != "private, max-age=10" || a.header.Get("Registry-Sequence") != apitest.Sequence(0) {
		t.Errorf("%v", a.header)
	}
}
