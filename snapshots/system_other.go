//go:build !linux

package snapshots

// readAhead does nothing: this system has no such advice.
func readAhead(string) {}

// checkSpace does nothing: writing will tell.
func checkSpace(string, int64) error { return nil }
