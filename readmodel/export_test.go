package readmodel

// WaitForIndex waits until no block of the text index is due.
func WaitForIndex(m *Model) { m.indexer.tasks.Wait() }

// FoldedTexts returns the name and the reason of a row as exact search compares them.
func FoldedTexts(r *Row) (name, reason string) { return r.folded, r.text[len(r.names)+1:] }

// RowAt returns the row of a slot of a list, or nil.
func RowAt(v *View, list int, slot uint32) *Row { return v.lists[list].rows.get(slot) }
