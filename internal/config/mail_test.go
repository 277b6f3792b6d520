package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/config"
)

func TestMailServers(t *testing.T) {
	const from = "BURSAR_MAIL_FROM=Payouts <payouts@example.com>"
	for address, want := range map[string]config.MailServer{
		"smtp://u%40example.com:p%2Fw@mail.example.com:2525": {Host: "mail.example.com", Port: "2525", User: "u@example.com", Password: "p/w"},
		"smtp://u:p@mail.example.com":                        {Host: "mail.example.com", Port: "587", User: "u", Password: "p"},
		"smtps://u:p@mail.example.com/":                      {Host: "mail.example.com", Port: "465", User: "u", Password: "p", TLS: true},
		"smtp://mail.example.com:25":                         {Host: "mail.example.com", Port: "25"},
		"smtp://localhost:1025":                              {Host: "localhost", Port: "1025", Plain: true},
		"smtp://[::1]:1025":                                  {Host: "::1", Port: "1025", Plain: true},
		"smtps://127.0.0.1":                                  {Host: "127.0.0.1", Port: "465", TLS: true},
	} {
		c := mustLoad(t, []string{"BURSAR_SMTP_URL=" + address, from})
		if diff := cmp.Diff(&want, c.MailServer); diff != "" {
			t.Errorf("%s: %s", address, diff)
		}
		if c.MailFrom.Name != "Payouts" || c.MailFrom.Address != "payouts@example.com" {
			t.Errorf("from %v", c.MailFrom)
		}
	}
	if c := mustLoad(t, nil); c.MailServer != nil || c.OutboxDir() != filepath.Join("bursar-data", "outbox") || c.MailFrom == nil {
		t.Errorf("without settings: %+v from %v", c.MailServer, c.MailFrom)
	}
}

func TestMailProblems(t *testing.T) {
	templates := t.TempDir()
	if err := os.WriteFile(filepath.Join(templates, "password-changed.txt"), []byte("Subject: x\n\n{{.Nonsense}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	const server, from = "BURSAR_SMTP_URL=smtp://u:hush-hush@mail.example.com", "BURSAR_MAIL_FROM=payouts@example.com"
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{[]string{server}, "BURSAR_MAIL_FROM is not set, and BURSAR_SMTP_URL is; set it to the sender"},
		{[]string{server, "BURSAR_MAIL_FROM=payouts"}, "BURSAR_MAIL_FROM=payouts is not a sender"},
		{[]string{server, "BURSAR_MAIL_FROM=payouts@bücher.example"}, "BURSAR_MAIL_FROM=payouts@bücher.example is not an e-mail address in plain ASCII; write one such as name@example.com, and a domain with other letters as xn--"},
		{[]string{"BURSAR_SMTP_URL=http://u:hush-hush@mail.example.com", from}, "BURSAR_SMTP_URL is not the address of a mail server; write smtp://"},
		{[]string{"BURSAR_SMTP_URL=smtp://u:hush-hush/x@mail.example.com", from}, "BURSAR_SMTP_URL is not the address of a mail server"},
		{[]string{"BURSAR_SMTP_URL=smtp://u:hush-hush@mail.example.com/inbox", from}, "BURSAR_SMTP_URL is not the address of a mail server"},
		{[]string{"BURSAR_SMTP_URL=smtp://u:hush-hush@mail.example.com:0", from}, "BURSAR_SMTP_URL has a port that is no number from 1"},
		{[]string{"BURSAR_SMTP_URL=smtp://hush-hush@mail.example.com", from}, "BURSAR_SMTP_URL has a name without a password"},
		{[]string{"BURSAR_SMTP_URL=smtp://u:hush-hush%0d%0a@mail.example.com", from}, "BURSAR_SMTP_URL has a control character"},
		{[]string{"BURSAR_MAIL_TEMPLATES=/no/such/folder"}, "BURSAR_MAIL_TEMPLATES=/no/such/folder can't be used"},
		{[]string{"BURSAR_MAIL_TEMPLATES=" + templates}, "BURSAR_MAIL_TEMPLATES=" + templates + " can't be used: template: password-changed.txt:3"},
	} {
		_, _, err := load(t, tt.environ)
		if err == nil || !strings.Contains(err.Error(), "1 setting needs correcting:\n  "+tt.want) {
			t.Errorf("%v: got %v\nwant %s…", tt.environ, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("the password is told: %v", err)
		}
	}
}
