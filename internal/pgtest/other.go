//go:build !linux && !darwin

package pgtest

// runServer can't be had here: what it rests on (locks, sessions, a shell) was tried on Linux and macOS.
func runServer() (string, error) { return "", errMissing }
