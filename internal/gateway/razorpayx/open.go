package razorpayx

import (
	"strings"

	"bursar/internal/gateway"
)

// Settings of [Open].
const (
	SettingBaseURL        = "base_url"
	SettingKeyID          = "key_id"
	SettingKeySecret      = "key_secret"
	SettingAccountNumber  = "account_number"
	SettingWebhookSecrets = "webhook_secrets" // one or two, separated by commas
)

// Open makes a client and its webhooks.
func Open(s gateway.Setup) (gateway.Opened, error) {
	client, err := New(Options{
		Name: s.Name, Currency: s.Currency, Turn: s.Turn, Timeout: s.Timeout, Now: s.Now,
		BaseURL: s.Settings[SettingBaseURL], KeyID: s.Settings[SettingKeyID], KeySecret: s.Settings[SettingKeySecret],
		AccountNumber: s.Settings[SettingAccountNumber], Capabilities: s.Capabilities,
	})
	if err != nil {
		return gateway.Opened{}, err
	}
	secrets := strings.Split(s.Settings[SettingWebhookSecrets], ",")
	for i := range secrets {
		secrets[i] = strings.TrimSpace(secrets[i])
	}
	webhooks, err := NewWebhooks(secrets...)
	if err != nil {
		return gateway.Opened{}, err
	}
	return gateway.Opened{Gateway: client, ReadWebhook: webhooks.Read, Account: s.Settings[SettingAccountNumber]}, nil
}
