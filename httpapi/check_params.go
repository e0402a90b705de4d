package httpapi

import "example.org/registry/readmodel"

// The parameters of a check, in the order of the contract's table.
const (
	checkID = iota
	checkSearch
	numCheckParams
)

// parseCheck reads the query string of a check: id or search, or either of them as people paste
// it. It is a pure function. In its result one of ID and Search is set.
func parseCheck(raw string) (readmodel.CheckQuery, error) {
	names, values := [numCheckParams]string{"id", "search"}, [numCheckParams]value{}
	if err := scanQuery(raw, names[:], values[:]); err != nil {
		return readmodel.CheckQuery{}, err
	}
	p := params{names: names[:], values: values[:]}
	id, _ := p.pasted(checkID, maxID)
	search, isID := p.pasted(checkSearch, maxSearch)
	switch {
	case p.err != nil:
		return readmodel.CheckQuery{}, p.err
	case id != "":
		return readmodel.CheckQuery{ID: id}, nil
	case search == "":
		return readmodel.CheckQuery{}, missing("search")
	case isID:
		return readmodel.CheckQuery{ID: search}, nil
	}
	return readmodel.CheckQuery{Search: search}, nil
}

// pasted is parameter i, or the chat id in it; the bound counts what is left of it then.
func (p *params) pasted(i, limit int) (text string, isID bool) {
	text = p.raw(i)
	if id, ok := pastedID(text); ok {
		text, isID, limit = id, true, maxID
	}
	if longer(text, limit) {
		p.refuse(i)
	}
	return text, isID
}
