package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

// An answer that was kept is true: whatever is asked, how often, in what
// encoding and with what in between, an answer is what the model says at that moment.
func TestKeptAnswersAreTrue(t *testing.T) {
	f := serve(t)
	f.public.bodies.SetMaximum(64 << 10) // so small that answers are forgotten, too
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				f.apply(drawChange(t))
			}
			encodings := rapid.SampledFrom([]string{"", "gzip"}).Draw(t, "encoding")
			target, want := drawQuery(t, f.model.View())
			a := f.get(outer, target, "Accept-Encoding", encodings)
			if a.status != http.StatusOK || a.body != want {
				t.Fatalf("%s\n got %s\nwant %s", target, a.body, want)
			}
		}
	})
}

func drawChange(t *rapid.T) events.Data {
	e := rapid.SampledFrom(apitest.People()).Draw(t, "of")
	switch d := e.(type) {
	case events.Entry:
		d.Name = fmt.Sprint("Nowy ", rapid.IntRange(0, 5).Draw(t, "name"))
		return d
	case events.Views:
		d.Views = rapid.Int64Range(0, 500).Draw(t, "views")
		return d
	}
	return e
}

func drawQuery(t *rapid.T, v *readmodel.View) (target, want string) {
	ctx := context.Background()
	word := rapid.SampledFrom([]string{"", "nowy", "konto", "a"}).Draw(t, "search")
	if word != "" && rapid.Bool().Draw(t, "check") {
		found, _ := v.Check(ctx, readmodel.CheckQuery{Search: word})
		return "/api/check?search=" + word, string(appendCheck(nil, found))
	}
	list := rapid.SampledFrom([]events.List{events.Scammers, events.Legit}).Draw(t, "list")
	q := readmodel.ListQuery{List: list, Search: word, Limit: rapid.SampledFrom([]int{1, 30}).Draw(t, "limit")}
	order := "newest"
	if rapid.Bool().Draw(t, "popular") {
		q.Sort, order = readmodel.Popular, "popular"
	}
	page, _ := v.List(ctx, q)
	return fmt.Sprintf("/api/%s?search=%s&sort=%s&limit=%d", list, word, order, q.Limit), string(appendPage(nil, page))
}
