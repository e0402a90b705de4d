//go:build !unix

package wire

// descriptorLimit returns a guess, since the system has no such limit.
func descriptorLimit() uint64 { return 1 << 14 }
