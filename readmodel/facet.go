package readmodel

// A facet is one way to find or count entries, besides the orders of their list. It is derived from
// the content and follows each change inside Apply, so every view has it exactly as its rows are:
// nothing of it lags, is saved or is repaired. The model's owner alone uses it; what a view has of
// it never changes.
//
// To add a facet, write a type with these methods in a file of its own, name it in newFacets, and
// give View the field that publish sets. The naive twin of the tests then answers the same query by
// a scan. What may lag and costs too much for Apply is an index (package indexing).
type facet interface {
	// apply follows a change of one entry. The content has changed already. It is not called in
	// bulk.
	apply(ch change)
	// reload builds the facet from the content. Facets reload at the same time.
	reload(s *scratch)
	// compact is the facet's part of Model.Compact.
	compact() bool
	// publish puts a snapshot of the facet into v, which is about to be published.
	publish(v *View)
}

// newFacets returns the facets of an empty content. Those that take longest to reload come first,
// so that no CPU waits for another at the end of a bulk.
func newFacets(c *content) []facet {
	return []facet{
		newSimilarIndex(c),
		newChatIDs(c),
		&feed{content: c},
		&feedDigest{content: c},
		&months{content: c},
		&changeLog{content: c},
	}
}
