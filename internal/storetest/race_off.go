//go:build !race

package storetest

const underRaceDetector = false
