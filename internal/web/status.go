package web

import (
	"net/http"
	"strconv"
	"time"

	"bursar/internal/fault"
)

// StatusOf is the one place where a kind of failure becomes an HTTP status.
func StatusOf(k fault.Kind) int {
	switch k {
	case fault.Malformed, fault.Refused:
		return http.StatusBadRequest
	case fault.Invalid:
		return http.StatusUnprocessableEntity
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Unsupported:
		return http.StatusUnsupportedMediaType
	case fault.TooSlow:
		return http.StatusRequestTimeout
	case fault.TooMany:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// RetryAfter is how long to wait as the header Retry-After has it: in whole seconds, at least one.
func RetryAfter(wait time.Duration) string {
	return strconv.FormatInt(int64(max((wait+time.Second-1)/time.Second, 1)), 10)
}
