package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// A list, a type or a status that is declared is in its table, in the order of declaration.
func TestTablesAreComplete(t *testing.T) {
	declared := constants(t)
	lists, types, statuses := events.Lists(), events.Types(), events.DonationStatuses()
	if want := texts(lists[:]); !slices.Equal(declared["List"], want) {
		t.Errorf("Lists has %v, declared are %v", want, declared["List"])
	}
	if want := texts(types[:]); !slices.Equal(declared["Type"], want) {
		t.Errorf("Types has %v, declared are %v", want, declared["Type"])
	}
	if want := texts(statuses[:]); !slices.Equal(declared["DonationStatus"], want) {
		t.Errorf("DonationStatuses has %v, declared are %v", want, declared["DonationStatus"])
	}
	for i, l := range lists {
		if got, ok := l.Index(); got != i || !ok {
			t.Errorf("%s has the index %d, %t", l, got, ok)
		}
	}
	if i, ok := events.List("frauds").Index(); ok {
		t.Error("an unknown list has the index", i)
	}
}

// The texts of errors name every list and status.
func TestErrorsNameTheTables(t *testing.T) {
	_, err := events.Decode([]byte(strings.Replace(viewsJSON, `"servers"`, `"frauds"`, 1)))
	for _, l := range events.Lists() {
		if err == nil || !strings.Contains(err.Error(), string(l)) {
			t.Errorf("%v does not name %s", err, l)
		}
	}
	_, err = events.Decode([]byte(strings.Replace(donationJSON, `"pending"`, `"lost"`, 1)))
	for _, s := range events.DonationStatuses() {
		if err == nil || !strings.Contains(err.Error(), string(s)) {
			t.Errorf("%v does not name %s", err, s)
		}
	}
}

func texts[S ~string](all []S) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}

// constants are the values of the package's typed string constants, by the type's name, in the
// order of declaration.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	require.NoError(t, err)
	out := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		typ, named := spec.Type.(*ast.Ident)
		if !named || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			out[typ.Name] = append(out[typ.Name], text)
		}
		return true
	})
	return out
}

func TestNewEventIDIsAnID(t *testing.T) {
	a, b := events.NewEventID(), events.NewEventID()
	if a == b {
		t.Error("the same id twice:", a)
	}
	e := eventstest.Events(1, 1)[0]
	e.ID = a
	require.NoError(t, events.Validate(e))
}
