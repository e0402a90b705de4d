package demo

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/readmodel/ranked"
)

// index is the index of ranked search over the demonstration.
type index struct {
	*ranked.Searcher
	view *readmodel.View
}

// rankedIndex makes the index, which lives until the test ends.
func rankedIndex(t *testing.T) index {
	t.Helper()
	renderer, model := readmodel.NewRenderer(), readmodel.New()
	var records []readmodel.Record
	for i, e := range mustEvents(t) {
		records = append(records, renderer.Render(uint64(i+1), e.Data))
	}
	view, _ := model.Apply(records, uint64(len(records)))
	engine := &ranked.Engine{Dir: t.TempDir(), Pacer: &indexing.Pacer{Busy: func() bool { return false }}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		engine.Run(ctx, model, ranked.Identity{StreamEpoch: "epoch", DataSet: "data set"})
	}()
	t.Cleanup(func() { cancel(); <-done })
	eventstest.Until(t, func() bool { return engine.Sequence() == view.Sequence() })
	searcher := engine.Acquire()
	t.Cleanup(searcher.Release)
	return index{searcher, view}
}

// TestQuestions: what people who were cheated type finds, in the demonstration, who cheats so. The
// first answers have the words; relaxed tells that they lack one.
func TestQuestions(t *testing.T) {
	index := rankedIndex(t)
	for _, c := range []struct {
		question, finds string
		relaxed         bool
	}{
		{"koleś sprzedał mi konto i potem je odzyskał", "a potem je odzyskuje", true},
		{"nie wysłał paczki po blik", "paczki nie wysłał", false},
		{"udaje admina", "Udaje admina", false},
		{"wyłudził kod blik", "kodem BLIK", false},
		{"wziął zaliczkę i zniknął", "Bierze zaliczki", true},
		{"zablokował mnie po przelewie", "przelewem", false},
		{"kupiłem nitro i mnie zablokował", "Sprzedaje Nitro", false},
		{"fałszywe rozdanie nagród", "rozdanie", false},
		{"wygrałem nagrodę i kazał zapłacić za wysyłkę", "każe zapłacić", false},
		{"wysłał pustą paczkę", "Wysłał pustą paczkę", false},
		{"pusta paczka zamiast telefonu", "telefon po gwarancji", false},
		{"podrobiony numer przesyłki", "podrobiony numer przesyłki", false},
		{"udawał kupującego i wysłał link do płatności", "Udaje kupującego", false},
		{"poprosił o numer karty i kod z smsa", "numer karty i kod z SMS-a", false},
		{"zeskanowałem kod qr i straciłem konto", "Zeskanowanie loguje oszusta", true},
		{"ktoś pożyczył pieniądze i nie oddał", "Pożycza drobne kwoty", true},
		{"obiecał podwojenie pieniędzy", "podwojenie wpłaty", true},
		{"inwestycja w krypto wypłata podatek", "podatek", true},
		{"podmienił przedmiot przy wymianie", "Podmienia przedmiot", false},
		{"middleman ukradł skiny", "Middleman", true},
		{"oddałem skórki pośrednikowi i zniknął", "oddać skórki", true},
		{"plik z wirusem ukradł hasła", "kradnie hasła", true},
		{"zagłosuj na drużynę", "zagłosowanie na drużynę", false},
		{"podszył się pod mojego znajomego i prosił o pożyczkę", "kont znajomych ofiary", false},
		{"grozi zablokowaniem konta", "grozi zablokowaniem konta", false},
		{"prosi o kod logowania", "kodu logowania", true},
		{"odmówił zwrotu", "odmówił", false},
		{"zamówiłem grafikę i nie oddał pracy", "zamówienia na grafiki", false},
		{"wbijanie poziomów zmienił hasło", "wbijanie poziomów", false},
		{"serwer usuwa opinie", "usuwane", true},
		{"sprzedaje kradzione konta", "kradzione konta", false},
		{"serwer inwestycyjny wypłaty wstrzymane", "wypłaty wstrzymane", false},
		{"kod paysafecard kaucja", "kod paysafecard", false},
		{"ktoś mnie zescamował na skiny", "zescamował", false},
		{"dostałem bana bo nie zapłaciłem", "dostać bana", false},
		{"kurier odbierze przedmiot potwierdź płatność", "kurier odbierze", false},
	} {
		page, err := index.Search(t.Context(), index.view, readmodel.RankedQuery{Words: c.question, Limit: 3})
		require.NoError(t, err)
		var found []string
		for _, h := range page.Hits {
			_, reason, _ := h.Row.Text()
			found = append(found, reason)
		}
		if page.Relaxed != c.relaxed || !strings.Contains(strings.Join(found, "\n"), c.finds) {
			t.Errorf("%q finds %d (relaxed %v), first %q; want %q", c.question, page.Total, page.Relaxed, found, c.finds)
		}
	}
}
