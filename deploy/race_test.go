//go:build race

package deploy

const raceDetector = true
