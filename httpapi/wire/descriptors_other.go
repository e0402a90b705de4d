//go:build !unix

package wire

// descriptorLimit is a guess where the system has no such limit to ask for.
func descriptorLimit() uint64 { return 1 << 14 }
