//go:build !nightly

package eventstest

const nightly = false
