package httpapi

import (
	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The bounds of the parameters (seed, limits; API contract, check and donations).
const (
	maxSearch    = 100 // code points
	maxID        = 64  // code points
	maxSkip      = 20000
	maxLimit     = 60
	defaultLimit = 30
)

// The parameters of a list, in the order of the seed's table, which is the order of checking.
const (
	listSearch = iota
	listID
	listSort
	listStatus
	listProofs
	listSkip
	listLimit
	numListParams
)

func listParams() [numListParams]string {
	return [...]string{"search", "id", "sort", "status", "proofs", "skip", "limit"}
}

// parseList reads the query string of a list. It is a pure function.
func parseList(list events.List, raw string) (readmodel.ListQuery, error) {
	q := readmodel.ListQuery{List: list, Limit: defaultLimit}
	if raw == "" {
		return q, nil
	}
	names, values := listParams(), [numListParams]value{}
	if err := scanQuery(raw, names[:], values[:]); err != nil {
		return q, err
	}
	p := params{names: names[:], values: values[:]}
	q.Search = p.text(listSearch, maxSearch)
	q.ID = p.text(listID, maxID)
	q.Sort = choice(&p, listSort, sortOf)
	q.Status = choice(&p, listStatus, statusOf)
	q.Proofs = choice(&p, listProofs, proofsOf)
	q.Skip = p.number(listSkip, 0, maxSkip, 0)
	q.Limit = p.number(listLimit, 1, maxLimit, defaultLimit)
	return q, p.err
}

func sortOf(s string) (readmodel.Sort, bool) {
	switch s {
	case "newest":
		return readmodel.Newest, true
	case "oldest":
		return readmodel.Oldest, true
	case "popular":
		return readmodel.Popular, true
	case "popular_asc":
		return readmodel.PopularAsc, true
	case "az":
		return readmodel.AZ, true
	case "za":
		return readmodel.ZA, true
	}
	return 0, false
}

func statusOf(s string) (readmodel.Status, bool) {
	switch s {
	case "all":
		return readmodel.StatusAll, true
	case "verified":
		return readmodel.StatusVerified, true
	case "risk":
		return readmodel.StatusRisk, true
	}
	return 0, false
}

func proofsOf(s string) (readmodel.Proofs, bool) {
	switch s {
	case "all":
		return readmodel.ProofsAll, true
	case "with":
		return readmodel.ProofsWith, true
	case "private":
		return readmodel.ProofsPrivate, true
	}
	return 0, false
}

// plainID says whether s is [A-Za-z0-9_-]{1,64}.
func plainID(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}
