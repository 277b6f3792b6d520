package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/config"
)

func TestProvider_LabelAlone_NoProvider(t *testing.T) {
	c := mustLoad(t, []string{"BURSAR_PROVIDER_A_LABEL=Example"}) // a name alone is no provider
	if c.HasProviders() || c.ProviderA != nil || c.ProviderB != nil {
		t.Errorf("providers are %v and %v", c.ProviderA, c.ProviderB)
	}
}

func TestProvidersOfBothKinds(t *testing.T) {
	c := mustLoad(t, []string{
		"BURSAR_PROVIDER_A_ISSUER=https://id.example.com/", "BURSAR_PROVIDER_A_CLIENT_ID=a", "BURSAR_PROVIDER_A_CLIENT_SECRET_FILE=" + file(t, "hush-a", ""),
		"BURSAR_PROVIDER_B_AUTH_URL=https://hub.example/login?allow_signup=false", "BURSAR_PROVIDER_B_TOKEN_URL=https://hub.example/token",
		"BURSAR_PROVIDER_B_USERINFO_URL=http://localhost:9000/user", "BURSAR_PROVIDER_B_CLIENT_ID=b", "BURSAR_PROVIDER_B_CLIENT_SECRET=hush-b",
		"BURSAR_PROVIDER_B_LABEL=Hub",
	}, "--provider-a-scopes", "openid  email")
	wantA := &config.Provider{
		Label: "Provider A", Issuer: "https://id.example.com/", ClientID: "a", ClientSecret: "hush-a", Scopes: []string{"openid", "email"},
	}
	wantB := &config.Provider{
		Label: "Hub", AuthURL: "https://hub.example/login?allow_signup=false", TokenURL: "https://hub.example/token",
		UserinfoURL: "http://localhost:9000/user", ClientID: "b", ClientSecret: "hush-b", Scopes: []string{"read:user", "user:email"},
	}
	if diff := cmp.Diff([]*config.Provider{wantA, wantB}, []*config.Provider{c.ProviderA, c.ProviderB}); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
}

func TestProvider_IncompleteOrInvalid_Refused(t *testing.T) {
	whole := map[string]string{"ISSUER": "https://id.example.com", "CLIENT_ID": "a", "CLIENT_SECRET": "hush"}
	tests := map[string]struct {
		set  map[string]string
		want []string
	}{
		"whole":                 {nil, nil},
		"no issuer":             {map[string]string{"ISSUER": ""}, []string{"BURSAR_PROVIDER_B_ISSUER is not set"}},
		"no client id":          {map[string]string{"CLIENT_ID": ""}, []string{"BURSAR_PROVIDER_B_CLIENT_ID is not set"}},
		"no secret":             {map[string]string{"CLIENT_SECRET": ""}, []string{"BURSAR_PROVIDER_B_CLIENT_SECRET is not set"}},
		"scopes alone":          {map[string]string{"ISSUER": "", "CLIENT_ID": "", "CLIENT_SECRET": "", "SCOPES": "x"}, []string{"_ISSUER is", "_CLIENT_ID is", "_CLIENT_SECRET is"}},
		"both kinds":            {map[string]string{"TOKEN_URL": "https://id.example.com/token"}, []string{"BURSAR_PROVIDER_B_ISSUER=https://id.example.com is set beside"}},
		"one address of three":  {map[string]string{"ISSUER": "", "TOKEN_URL": "https://id.example.com/token"}, []string{"_AUTH_URL is not set", "_USERINFO_URL is not set"}},
		"no address":            {map[string]string{"ISSUER": "id.example.com"}, []string{"BURSAR_PROVIDER_B_ISSUER is not an address"}},
		"a password in it":      {map[string]string{"ISSUER": "https://me:hush@id.example.com"}, []string{"BURSAR_PROVIDER_B_ISSUER is not an address"}},
		"a query in it":         {map[string]string{"ISSUER": "https://id.example.com/?x=hush"}, []string{"BURSAR_PROVIDER_B_ISSUER is not an address"}},
		"not encrypted":         {map[string]string{"ISSUER": "http://id.example.com"}, []string{"BURSAR_PROVIDER_B_ISSUER=http://id.example.com is not encrypted"}},
		"not encrypted, beside": {map[string]string{"ISSUER": "http://127.0.0.1.example.com"}, []string{"is not encrypted"}},
		"on this machine":       {map[string]string{"ISSUER": "http://127.0.0.1:9000"}, nil},
		"without openid":        {map[string]string{"SCOPES": "email profile"}, []string{"BURSAR_PROVIDER_B_SCOPES=email profile lacks openid"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var environ []string
			for variable, value := range whole {
				if _, changed := tt.set[variable]; !changed {
					environ = append(environ, "BURSAR_PROVIDER_B_"+variable+"="+value)
				}
			}
			for variable, value := range tt.set {
				environ = append(environ, "BURSAR_PROVIDER_B_"+variable+"="+value)
			}
			c, _, err := load(t, environ)
			if len(tt.want) == 0 {
				if err != nil || c.ProviderB == nil || c.ProviderA != nil {
					t.Fatalf("%+v, %v", c.ProviderB, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("%+v is taken", c.ProviderB)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks: %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "hush") || strings.Count(err.Error(), "\n") != len(tt.want) {
				t.Errorf("too much is told: %v", err)
			}
		})
	}
}

func TestProvider_UnencryptedPublicAddress_Refused(t *testing.T) {
	environ := []string{"BURSAR_PROVIDER_A_ISSUER=https://id.example.com", "BURSAR_PROVIDER_A_CLIENT_ID=a", "BURSAR_PROVIDER_A_CLIENT_SECRET=hush"}
	for base, fine := range map[string]bool{"https://pay.example.com": true, "http://localhost:3000": true, "": true, "http://pay.example.com": false} {
		_, _, err := load(t, append(environ, "BURSAR_BASE_URL="+base))
		if (err == nil) != fine {
			t.Errorf("with BURSAR_BASE_URL=%s: %v", base, err)
		}
	}
	if _, _, err := load(t, []string{"BURSAR_BASE_URL=http://pay.example.com"}); err != nil {
		t.Errorf("without a provider: %v", err)
	}
}
