//go:build !race

package deploy

const raceDetector = false
