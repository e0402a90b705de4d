//go:build unix

package wire

import "syscall"

const tellsReset = true

// isReset reports whether the peer of a socket has reset the connection. Reading the error clears
// it from the socket, but a Write still fails.
func isReset(fd uintptr) bool {
	errno, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	return err != nil || errno != 0
}
