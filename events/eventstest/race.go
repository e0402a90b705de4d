//go:build race

package eventstest

// RaceDetector reports whether this binary is built with the race detector, which cannot observe
// other processes.
const RaceDetector = true
