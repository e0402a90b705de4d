//go:build !linux

package snapshots

// readAhead does nothing where the system offers no such advice.
func readAhead(string) {}
