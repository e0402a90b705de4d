package site

import (
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Every list has words and a page of its own, which the navigation and the first page lead to.
func TestEveryListHasAPage(t *testing.T) {
	w := newWorld(t, full())
	first := w.check(t, readmodel.CheckQuery{})
	taken := map[string]events.List{}
	for _, l := range events.Lists() {
		words := wordsOf(l)
		for _, own := range []string{words.Path, words.Title, words.Noun.many} {
			if of, other := taken[own]; other {
				t.Errorf("%s has the words of %s: %s", l, of, own)
			}
			taken[own] = l
		}
		if words.Path != "/"+string(l) {
			t.Errorf("%s is at %s", l, words.Path)
		}
		if !strings.Contains(first, `<li><a href="`+words.Path+`">`+words.Noun.count(0)) {
			t.Errorf("the first page does not count %s", l)
		}
		if page := w.list(t, readmodel.ListQuery{List: l}); !strings.Contains(page, `<a href="`+words.Path+`" aria-current="page">`) {
			t.Errorf("%s is not in the navigation", l)
		}
	}
}
