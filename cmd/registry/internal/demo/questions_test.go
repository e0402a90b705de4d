package demo

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/ranked"
)

// TestQuestions: what people who were cheated type finds, in the demonstration, who cheats so.
func TestQuestions(t *testing.T) {
	model := newModel(t)
	model.NameFeed("epoch")
	engine := &ranked.Engine{Dir: t.TempDir()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		engine.Run(ctx, model)
	}()
	t.Cleanup(func() { cancel(); <-done })
	eventstest.Until(t, func() bool { return engine.Sequence() == model.View().Sequence() })

	for _, c := range []struct {
		question, finds string
	}{
		{"nie wysłał paczki po blik", "paczki nie wysłał"},
		{"udaje admina", "Udaje admina"},
		{"wyłudził kod blik", "kodem BLIK"},
		{"zablokował mnie po przelewie", "przelewem"},
		{"kupiłem nitro i mnie zablokował", "Sprzedaje Nitro"},
		{"fałszywe rozdanie nagród", "rozdanie"},
		{"wygrałem nagrodę i kazał zapłacić za wysyłkę", "każe zapłacić"},
		{"wysłał pustą paczkę", "Wysłał pustą paczkę"},
		{"pusta paczka zamiast telefonu", "telefon po gwarancji"},
		{"podrobiony numer przesyłki", "podrobiony numer przesyłki"},
		{"udawał kupującego i wysłał link do płatności", "Udaje kupującego"},
		{"poprosił o numer karty i kod z smsa", "numer karty i kod z SMS-a"},
		{"podmienił przedmiot przy wymianie", "Podmienia przedmiot"},
		{"zagłosuj na drużynę", "zagłosowanie na drużynę"},
		{"podszył się pod mojego znajomego i prosił o pożyczkę", "kont znajomych ofiary"},
		{"grozi zablokowaniem konta", "grozi zablokowaniem konta"},
		{"odmówił zwrotu", "odmówił"},
		{"zamówiłem grafikę i nie oddał pracy", "zamówienia na grafiki"},
		{"wbijanie poziomów zmienił hasło", "wbijanie poziomów"},
		{"sprzedaje kradzione konta", "kradzione konta"},
		{"serwer inwestycyjny wypłaty wstrzymane", "wypłaty wstrzymane"},
		{"kod paysafecard kaucja", "kod paysafecard"},
		{"ktoś mnie zescamował na skiny", "zescamował"},
		{"dostałem bana bo nie zapłaciłem", "dostać bana"},
		{"kurier odbierze przedmiot potwierdź płatność", "kurier odbierze"},
	} {
		page, err := engine.Search(t.Context(), model.View(), readmodel.RankedQuery{Words: c.question, Limit: 3})
		require.NoError(t, err)
		var found []string
		for _, h := range page.Hits {
			_, reason := h.Row.Text()
			found = append(found, reason)
		}
		if !strings.Contains(strings.Join(found, "\n"), c.finds) {
			t.Errorf("%q finds %d, first %q; want %q", c.question, page.Total, found, c.finds)
		}
	}
}
