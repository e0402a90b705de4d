//go:build !linux

package snapshots

// space is not known here: writing will tell.
func space(string, int64) error { return nil }
