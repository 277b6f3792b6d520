package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/oauth2"

	"bursar/internal/auth"
)

// claims are what a provider says of a person: in an ID token, at the userinfo endpoint, or in GitHub's
// words.
type claims struct {
	Subject         identifier `json:"sub"`
	ID              identifier `json:"id"`
	AuthorizedParty string     `json:"azp"`
	Email           text       `json:"email"`
	EmailVerified   yes        `json:"email_verified"`
	Name            text       `json:"name"`
	Login           text       `json:"login"`
	Picture         text       `json:"picture"`
	AvatarURL       text       `json:"avatar_url"`
}

// yes is true as JSON's true or, as some providers have it, "true". Anything else is no.
type yes bool

// UnmarshalJSON never fails.
func (y *yes) UnmarshalJSON(b []byte) error {
	*y = string(b) == "true" || string(b) == `"true"`
	return nil
}

// text is what can be done without: what is no text is none.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = ""
	}
	*t = text(s)
	return nil
}

// identifier is a text, or a whole number in its digits: one beyond 2^53 must stay what it is.
type identifier string

// maxIdentifier is as long as OpenID Connect Core §2 lets a subject be.
const maxIdentifier = 255

// UnmarshalJSON never fails: what is neither is left empty.
func (i *identifier) UnmarshalJSON(b []byte) error {
	digits := strings.TrimPrefix(string(b), "-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		*i = identifier(b)
		return nil
	}
	return (*text)(i).UnmarshalJSON(b)
}

func (i identifier) check() error {
	strange := func(c rune) bool { return !unicode.IsGraphic(c) || c == unicode.ReplacementChar }
	if i == "" || len(i) > maxIdentifier || strings.ContainsFunc(string(i), strange) {
		return errors.New("the provider names nobody: a subject is missing, too long, or not text")
	}
	return nil
}

// identity is who the claims are about.
func (c claims) identity(issuer string, subject identifier) (auth.Identity, error) {
	if err := subject.check(); err != nil {
		return auth.Identity{}, err
	}
	email := shown(c.Email, 254)
	return auth.Identity{
		Issuer: issuer, Subject: string(subject),
		Email: email, EmailVerified: bool(c.EmailVerified) && email != "",
		Name:   cmp.Or(shown(c.Name, 200), shown(c.Login, 200)),
		Avatar: cmp.Or(picture(c.Picture), picture(c.AvatarURL)),
	}, nil
}

// shown is a text that may be shown, or "".
func shown(t text, most int) string {
	s := strings.TrimSpace(string(t))
	if len(s) > most || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsGraphic(c) }) {
		return ""
	}
	return s
}

// picture is the https address of one, or "".
func picture(t text) string {
	s := shown(t, 2000)
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return s
}

// get asks for JSON in the name of the token's owner.
func get(ctx context.Context, client *http.Client, address string, token *oauth2.Token, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	token.SetAuthHeader(request)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s did not answer as expected: %w", address, err)
	}
	return nil
}
