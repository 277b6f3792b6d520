package oauth

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"bursar/internal/auth"
)

// answer is what a browser brought back from a provider.
type answer struct {
	code string
	// issuer is who says to have sent it, or "".
	issuer string
	// refusal is why there is no code.
	refusal error
}

// Codes of errors in an answer (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6): those by which the
// person or the provider said no, and those that pass.
var (
	denials  = []string{"access_denied", "account_selection_required", "consent_required", "interaction_required", "login_required"}
	troubles = []string{"server_error", "temporarily_unavailable"}
)

// readAnswer takes the query of a callback apart. A parameter that comes twice could be read in two ways,
// so the answer is refused (RFC 6749 §3.1).
func readAnswer(values url.Values, state string) (answer, error) {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(values[name]) > 1 {
			return answer{}, fmt.Errorf("the answer has %d values of %q", len(values[name]), name)
		}
	}
	if state == "" || subtle.ConstantTimeCompare([]byte(values.Get("state")), []byte(state)) != 1 {
		return answer{}, errors.New("the answer has another state")
	}
	a := answer{code: values.Get("code"), issuer: values.Get("iss")}
	code, isError := values.Get("error"), values.Has("error")
	said := fmt.Errorf("the provider answered with the error %q: %q", cleaned(code, 60), cleaned(values.Get("error_description"), 200))
	switch {
	case slices.Contains(denials, code):
		a.refusal = auth.ErrProviderDenied.Because(said)
	case slices.Contains(troubles, code):
		a.refusal = auth.ErrProviderUnavailable.Because(said)
	case isError:
		a.refusal = auth.ErrProviderAnswer.Because(said)
	case a.code == "":
		return answer{}, errors.New("the answer has no code")
	}
	return a, nil
}
