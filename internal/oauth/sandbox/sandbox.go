// Package sandbox is an identity provider to try sign-in with: real OpenID Connect, and a consent page
// where one types who one is. It belongs on loopback alone.
package sandbox
