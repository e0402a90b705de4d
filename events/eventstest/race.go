//go:build race

package eventstest

func init() { RaceDetector = true }
