// Package fault is the one vocabulary for failures that a caller may see.
//
// A domain declares its failures as values made here; the edge (the HTTP API, the command line)
// turns a [Kind] into a status in one place. An error that carries no *Error is a bug or an outage:
// the edge logs it and tells the caller nothing about it.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Kind says what sort of failure it is, from the caller's point of view.
type Kind int

// The kinds. The HTTP status that each one becomes is written in package api.
const (
	// Malformed input can't be read, or lacks something required.
	Malformed Kind = iota + 1
	// Invalid input was read and breaks a rule.
	Invalid
	// Refused is a well-formed request that the present state of things does not allow.
	Refused
	// Unauthenticated means that we don't know who is asking.
	Unauthenticated
	// Forbidden means that we know who is asking, and the answer is no.
	Forbidden
	// NotFound also stands for what the caller may not know exists.
	NotFound
	// Conflict is a request that conflicts with an earlier one.
	Conflict
	// TooLarge is a body over the limit.
	TooLarge
	// Unsupported is a body in an encoding that is not read.
	Unsupported
	// TooSlow is a body that did not arrive in time.
	TooSlow
	// TooMany asks the caller to slow down; see [Error.RetryAfter].
	TooMany
	// Unavailable is a temporary error of the service: the caller may try again later.
	Unavailable
)

// Error is a failure that may be shown. The zero value is not useful; use [New].
type Error struct {
	Kind Kind
	// Code is a stable word for programs, such as insufficient_balance.
	Code string
	// Message is a plain sentence for people: what is wrong, and what to do.
	Message string
	// Details names the fields at fault and what to do about each.
	Details map[string]string
	// RetryAfter, when not zero, is how long to wait before trying again.
	RetryAfter time.Duration

	cause error
}

// New makes a failure.
func New(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Fields makes a failure about the named fields.
func Fields(kind Kind, details map[string]string) *Error {
	code, message := "validation_failed", "Some fields need correcting; details names each."
	if kind == Malformed {
		code, message = "invalid_request", "Some fields are missing or of the wrong type; details names each."
	}
	return &Error{Kind: kind, Code: code, Message: message, Details: details}
}

// Field makes a failure about one field that breaks a rule.
func Field(name, message string) *Error {
	return Fields(Invalid, map[string]string{name: message})
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return e.Code + ": " + e.Message
}

// Unwrap gives the cause, which is for logs alone.
func (e *Error) Unwrap() error { return e.cause }

// Is compares codes, so that a failure with a message of its own still matches its sentinel.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Because returns a copy that wraps cause, for the log.
func (e *Error) Because(cause error) *Error {
	c := e.clone()
	c.cause = cause
	return c
}

// WithMessage returns a copy with another sentence and the same code.
func (e *Error) WithMessage(format string, args ...any) *Error {
	c := e.clone()
	c.Message = fmt.Sprintf(format, args...)
	return c
}

// After returns a copy that says when to try again.
func (e *Error) After(wait time.Duration) *Error {
	c := e.clone()
	c.RetryAfter = wait
	return c
}

func (e *Error) clone() *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	return &c
}

// From finds the failure that err carries, or nil.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}
