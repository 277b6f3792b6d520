package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/config"
)

func TestTrustedIssuer(t *testing.T) {
	if c := mustLoad(t, nil); c.TrustedIssuer != nil {
		t.Errorf("without settings %+v is trusted", c.TrustedIssuer)
	}
	c := mustLoad(t, []string{"BURSAR_TRUST_ISSUER=https://id.example.com/", "BURSAR_TRUST_AUDIENCE=bursar"})
	if diff := cmp.Diff(&config.TrustedIssuer{Issuer: "https://id.example.com/", Audience: "bursar", SellerClaim: "sub"}, c.TrustedIssuer); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c = mustLoad(t, []string{"BURSAR_TRUST_ISSUER=https://id.example.com", "BURSAR_TRUST_AUDIENCE=b"}, "--trust-seller-claim", "https://shop.example/seller")
	if c.TrustedIssuer.SellerClaim != "https://shop.example/seller" {
		t.Errorf("the claim is %q", c.TrustedIssuer.SellerClaim)
	}
}

func TestTrustedIssuer_WrongSettingsStopTheStart(t *testing.T) {
	tests := map[string]struct {
		issuer, audience, claim string
		want                    string
	}{
		"no audience":      {"https://id.example.com", "", "sub", "BURSAR_TRUST_AUDIENCE is not set"},
		"no issuer":        {"", "bursar", "sub", "BURSAR_TRUST_ISSUER is not set"},
		"not encrypted":    {"http://id.example.com", "bursar", "sub", "BURSAR_TRUST_ISSUER=http://id.example.com is not encrypted"},
		"not an address":   {"id.example.com", "bursar", "sub", "BURSAR_TRUST_ISSUER is not an address"},
		"our own":          {"https://pay.example.com/", "bursar", "sub", "is this service's own address"},
		"the issuer claim": {"https://id.example.com", "bursar", "iss", "BURSAR_TRUST_SELLER_CLAIM=iss is no claim"},
		"a space":          {"https://id.example.com", "bursar", "seller id", "is no claim"},
		"a long claim":     {"https://id.example.com", "bursar", strings.Repeat("x", 201), "is no claim"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, []string{
				"BURSAR_BASE_URL=https://pay.example.com", "BURSAR_TRUST_ISSUER=" + tt.issuer, "BURSAR_TRUST_AUDIENCE=" + tt.audience, "BURSAR_TRUST_SELLER_CLAIM=" + tt.claim,
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the problem is %v, want %q", err, tt.want)
			}
		})
	}
}
