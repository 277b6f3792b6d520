//go:build !unix

package pgtest

// runServer can't be had here: what it rests on (locks, sessions, a shell) is Unix's.
func runServer() (string, error) { return "", errMissing }
