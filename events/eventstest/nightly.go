//go:build nightly

package eventstest

func init() { nightly = true }
