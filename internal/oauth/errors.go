package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/oauth2"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

// outage is trouble at the provider or on the way there, whatever it looks like: it proves nothing about
// the person, and trying again is right.
type outage struct{ error }

func (o outage) Unwrap() error { return o.error }

// statusError is an answer with a status that was not hoped for. What else it says is left out: it may
// repeat what was asked, tokens too.
type statusError struct{ status int }

func (e statusError) Error() string {
	return fmt.Sprintf("the provider answered with status %d", e.status)
}

// strangeAnswer is one that is no answer of a sane provider.
type strangeAnswer struct{ error }

// sorted makes of a failure the fault that it is to a person, with a cause for the log.
func sorted(err error) error {
	if fault.From(err) != nil {
		return err
	}
	cause := errors.New(cleaned(err.Error(), 400))
	if isOutage(err) {
		return auth.ErrProviderUnavailable.Because(cause)
	}
	return auth.ErrProviderAnswer.Because(cause)
}

func isOutage(err error) bool {
	if _, ok := errors.AsType[outage](err); ok {
		return true
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return status.status >= http.StatusInternalServerError || status.status == http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[strangeAnswer](err); ok {
		return false
	}
	return isOnTheWay(err)
}

// isOnTheWay reports whether no answer of the provider was had.
func isOnTheWay(err error) bool {
	_, ofClient := errors.AsType[*url.Error](err)
	return ofClient || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// withoutBody keeps of an error of the token endpoint its code alone: its body may hold tokens.
func withoutBody(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	said := fmt.Errorf("the provider refused the code with the error %q and status %d", cleaned(refused.ErrorCode, 60), refused.Response.StatusCode)
	if refused.Response.StatusCode == http.StatusTooManyRequests || refused.ErrorCode == "temporarily_unavailable" {
		return outage{said}
	}
	return said
}

// cleaned makes untrusted text fit for a log line.
func cleaned(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) {
			return c
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
