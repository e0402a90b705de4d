//go:build !unix

package wire

const tellsReset = false

func isReset(uintptr) bool { return true }
