package config

import (
	"slices"
	"strings"
	"unicode"
)

// maxClaimBytes bounds the name of a claim; those of some sign-ins are addresses.
const maxClaimBytes = 200

// ownClaims have a meaning of their own in every token, so that none of them names a seller.
var ownClaims = []string{"iss", "aud", "exp", "nbf", "iat", "jti"}

// trustedIssuer reads the issuer whose tokens are accepted beside our own.
func (p *parser) trustedIssuer(s Settings, own string) *TrustedIssuer {
	if s.TrustIssuer == "" {
		if s.TrustAudience != "" {
			p.problem("TRUST_ISSUER", "", "is not set, and BURSAR_TRUST_AUDIENCE is; set it to the issuer of the tokens")
		}
		return nil
	}
	p.endpoint("TRUST_ISSUER", s.TrustIssuer, false)
	if strings.TrimSuffix(s.TrustIssuer, "/") == own {
		p.problem("TRUST_ISSUER", s.TrustIssuer, "is this service's own address; set it to the issuer of the marketplace's sign-in")
	}
	if s.TrustAudience == "" {
		p.problem("TRUST_AUDIENCE", "", "is not set, and BURSAR_TRUST_ISSUER is; set it to the audience of tokens that are meant for this service")
	}
	unprintable := func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }
	if claim := s.TrustSellerClaim; len(claim) > maxClaimBytes || strings.ContainsFunc(claim, unprintable) || slices.Contains(ownClaims, claim) {
		p.problem("TRUST_SELLER_CLAIM", claim, "is no claim that can hold a seller's external id; write one such as sub or seller_id")
	}
	return &TrustedIssuer{s.TrustIssuer, s.TrustAudience, s.TrustSellerClaim}
}
