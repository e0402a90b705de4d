package readmodel

// A facet is one way to find or count entries, besides the orders of their list. It is derived from
// the content and follows each change inside Apply, so every view has it exactly as its rows are. A
// facet never lags, and is never saved or repaired. Only the model's owner uses it; the part that a
// view has never changes.
//
// To add a facet, write a type with these methods in a file of its own, name it in newFacets, and
// give View the field that publish sets. The naive twin of the tests then answers the same query by
// a scan.
type facet interface {
	// apply follows a change of one entry, after the content has changed. It is not called in bulk.
	apply(ch change)
	// reload builds the facet from the content. Facets reload concurrently.
	reload(s *scratch)
	// publish puts a snapshot of the facet into v, which is about to be published.
	publish(v *View)
}

// newFacets returns the facets of an empty content. Those that take longest to reload come first,
// so that no CPU idles at the end of a bulk.
func newFacets(c *content) []facet {
	return []facet{
		newNameIndex(c),
		newChatIDs(c),
		&feed{content: c},
		&feedDigest{content: c},
	}
}
