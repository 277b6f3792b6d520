package message_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bursar/internal/mail"
	"bursar/internal/mail/message"
)

var (
	written = time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)
	sender  = &netmail.Address{Name: "Zahlungen für Käufer", Address: "payouts@example.com"}
)

func newComposer(t *testing.T, folder string, from *netmail.Address) *message.Composer {
	t.Helper()
	templates, err := message.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	c, err := message.NewComposer(from, "https://pay.example", time.FixedZone("IST", 19800), templates)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parsed is a message as a reader has it.
type parsed struct {
	header     netmail.Header
	subject    string
	text, html string
}

func parse(t *testing.T, raw []byte) parsed {
	t.Helper()
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	p := parsed{header: m.Header}
	if p.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	mediaType, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/alternative" {
		t.Fatal(mediaType, err)
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for _, into := range []struct {
		mediaType string
		body      *string
	}{{"text/plain; charset=utf-8", &p.text}, {"text/html; charset=utf-8", &p.html}} {
		part, err := parts.NextPart()
		if err != nil || part.Header.Get("Content-Type") != into.mediaType {
			t.Fatal(into.mediaType, err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		*into.body = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Error("there is a third part")
	}
	return p
}

func TestCompose(t *testing.T) {
	c := newComposer(t, "", sender)
	for _, d := range mail.Examples() {
		t.Run(string(d.Kind()), func(t *testing.T) {
			m, err := c.Compose("mai_1", "asha@example.net", written, d)
			if err != nil {
				t.Fatal(err)
			}
			if m.From != sender.Address || m.To != "asha@example.net" || m.ID != "mai_1" {
				t.Errorf("envelope %s → %s", m.From, m.To)
			}
			p := parse(t, m.Raw)
			for name, want := range map[string]string{
				"To": "<asha@example.net>", "Date": "Mon, 02 Nov 2026 09:30:00 +0000", "Message-Id": "<mai_1@example.com>",
				"Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
			} {
				if got := p.header.Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			from, err := p.header.AddressList("From")
			if err != nil || len(from) != 1 || *from[0] != *sender {
				t.Errorf("from %v, %v", from, err)
			}
			if p.subject == "" || len(p.text) < 100 || !strings.Contains(p.html, "<h1") {
				t.Errorf("%s\n%s\n%s", p.subject, p.text, p.html)
			}
			for _, part := range []string{p.subject, p.text, p.html} {
				if strings.Contains(part, "<no value>") || strings.Contains(part, "{{") {
					t.Errorf("a template was not filled in:\n%s", part)
				}
			}
			for line := range strings.SplitSeq(string(m.Raw), "\r\n") {
				if len(line) > 998 || strings.ContainsAny(line, "\r\n") || strings.ContainsFunc(line, func(c rune) bool { return c > 0x7e }) {
					t.Errorf("not a line of plain ASCII: %q", line)
				}
			}
		})
	}
}

func TestCompose_NothingEndsAHeader(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "password-changed.txt", "Subject: Changed from {{.Data.Agent}}\n\nFrom {{.Data.Agent}}\n")
	c := newComposer(t, folder, &netmail.Address{Name: "Pay\r\nBcc: eve@example.org", Address: "payouts@example.com"})
	for _, agent := range []string{"Eve\r\nBcc: eve@example.org", "Eve\nBcc: eve@example.org", "=?utf-8?q?Eve=0D=0ABcc:_eve@example.org?=", "Ev\u00e9\u2028Bcc: eve@example.org", "Eve\x00\x0b"} {
		m, err := c.Compose("mai_1", "asha@example.net", written, mail.PasswordChanged{Origin: mail.Origin{At: written, Agent: agent}})
		if err != nil {
			t.Fatal(err)
		}
		p := parse(t, m.Raw)
		if len(p.header) != 8 || p.header.Get("Bcc") != "" {
			t.Errorf("%q: header %v", agent, p.header)
		}
		if strings.ContainsAny(p.subject, "\r\n\x00") {
			t.Errorf("%q: subject %q", agent, p.subject)
		}
	}
	for _, to := range []string{"a@example.net\r\nBcc: eve@example.org", "a@example.net, eve@example.org", "A <a@example.net>", "a@bücher.example", "a@@b", ""} {
		if _, err := c.Compose("mai_1", to, written, mail.PasswordChanged{Origin: mail.Origin{At: written}}); err == nil {
			t.Errorf("a message to %q was made", to)
		}
	}
}

func TestCompose_WhatPeopleWroteIsNoHTML(t *testing.T) {
	m, err := newComposer(t, "", sender).Compose("mai_1", "asha@example.net", written, mail.PasswordChanged{Origin: mail.Origin{At: written, Agent: `<img src="https://eve.example/x">`}})
	if err != nil {
		t.Fatal(err)
	}
	if p := parse(t, m.Raw); strings.Contains(p.html, "<img") {
		t.Errorf("the page holds what somebody wrote:\n%s", p.html)
	}
}

func TestLoad_AFileTakesThePlaceOfTheBuiltInOne(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "password-changed.txt", "Subject: Neues Passwort\r\n\r\nGeändert am {{.Time .Data.At}}.\r\n")
	write(t, folder, "README.md", "Ours.")
	m, err := newComposer(t, folder, sender).Compose("mai_1", "asha@example.net", written, mail.PasswordChanged{Origin: mail.Origin{At: written}})
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, m.Raw)
	if p.subject != "Neues Passwort" || p.text != "Geändert am 2 November 2026, 15:00 IST.\n" || !strings.Contains(p.html, "Your password was") {
		t.Errorf("%s\n%s\n%s", p.subject, p.text, p.html)
	}
}

func TestLoad_ABrokenFileIsNamed(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"does not parse":        {"password-changed.html", "{{define \"content\"}}{{.Data", "password-changed.html"},
		"names what is not":     {"password-changed.txt", "Subject: x\n\n{{.Data.Agnet}}", "password-changed.txt"},
		"no subject":            {"bank-account-replaced.txt", "Hello\n", "bank-account-replaced.txt"},
		"an empty subject":      {"bank-account-replaced.txt", "Subject: \n\nHello\n", "bank-account-replaced.txt"},
		"a layout":              {"layout.html", "{{template \"nothing\"}}", "layout.html"},
		"a name that is no one": {"pasword-changed.txt", "Subject: x\n\nx", "pasword-changed.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, tt.file, tt.text)
			if _, err := message.Load(folder); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one that names %s", err, tt.want)
			}
		})
	}
	if _, err := message.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was read")
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
