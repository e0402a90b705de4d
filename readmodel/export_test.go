package readmodel

// WaitForIndex waits until no block of the text index is due.
func WaitForIndex(m *Model) { m.indexer.tasks.Wait() }
