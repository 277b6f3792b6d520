package auth_test

import (
	"net/url"
	"testing"

	"bursar/internal/auth"
)

// FuzzProviderReturn comes back from a provider with any cookie, state and answer but the one that was given:
// nobody is signed in, and the provider is never asked.
func FuzzProviderReturn(f *testing.F) {
	s := newStreet(f)
	genuine := s.begin(auth.ProviderA, auth.Seller)
	state := genuine.Answer.Get("state")
	f.Add(genuine.Encrypted, state+".", "code=c")
	f.Add(genuine.Encrypted[:len(genuine.Encrypted)-2], state, "code=c")
	f.Add(s.begin(auth.ProviderA, auth.Seller).Encrypted, state, "code=c")
	f.Add("", state, "code=c")
	f.Fuzz(func(t *testing.T, encrypted, stateText, query string) {
		answer, err := url.ParseQuery(query)
		if err != nil {
			t.Skip("no query")
		}
		answer["state"] = append(answer["state"], stateText)
		if encrypted == genuine.Encrypted && len(answer["state"]) == 1 && stateText == state {
			t.Skip("the genuine one")
		}
		asked := s.a.timesAsked()
		_, _, err = s.FinishSignIn(t.Context(), auth.ProviderReturn{Provider: auth.ProviderA, Encrypted: encrypted, Answer: answer, Device: home})
		wantErr(t, err, auth.ErrSignInExpired)
		if s.a.timesAsked() != asked {
			t.Error("the provider was asked")
		}
	})
}
