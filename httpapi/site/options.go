package site

import "example.org/registry/readmodel"

// option is a choice in a form.
type option struct {
	Value, Text string
	Chosen      bool
}

// The parameters' values in the order of their constants in readmodel.
func sortNames() []string {
	return []string{"newest", "oldest", "popular", "popular_asc", "az", "za"}
}
func statusNames() []string { return []string{"all", "verified", "risk"} }
func proofsNames() []string { return []string{"all", "with", "private"} }

func sortOptions(chosen readmodel.Sort) []option {
	return options(sortNames(), int(chosen), "Najnowsze", "Najstarsze", "Popularne", "Mało popularne",
		"Od A do Ż", "Od Ż do A")
}

func statusOptions(chosen readmodel.Status) []option {
	return options(statusNames(), int(chosen), "Wszystkie", "Zweryfikowane", "Lista ryzyka")
}

func proofsOptions(chosen readmodel.Proofs) []option {
	return options(proofsNames(), int(chosen), "Dowolne", "Są dowody", "Dowody niejawne")
}

func options(values []string, chosen int, texts ...string) []option {
	all := make([]option, len(values))
	for i := range values {
		all[i] = option{values[i], texts[i], i == chosen}
	}
	return all
}
