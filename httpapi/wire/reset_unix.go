//go:build unix

package wire

import "syscall"

const tellsReset = true

// isReset reports whether the peer of a socket has reset the connection. The error that it reads is
// taken off the socket; a Write fails all the same.
func isReset(fd uintptr) bool {
	errno, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	return err != nil || errno != 0
}

// writeNow writes what a socket takes at once, and returns how many bytes that is, or less than 0.
func writeNow(fd uintptr, p []byte) int {
	n, _ := syscall.Write(int(fd), p)
	return n
}
