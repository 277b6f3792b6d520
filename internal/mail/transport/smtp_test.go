package transport_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bursar/internal/mail"
	"bursar/internal/mail/mailtest"
	"bursar/internal/mail/transport"
)

const secret = "QmVhcmVyVG9rZW4"

var message = mail.Message{
	ID: "mai_1", From: "payouts@example.com", To: "asha@example.net",
	Raw: []byte("Subject: Confirm\r\n\r\n.A line that begins with a dot\r\nhttps://pay.example/verify-email?token=" + secret + "\r\n"),
}

func to(s *mailtest.Server) transport.SMTP {
	return transport.SMTP{Host: s.Host, Port: s.Port, User: mailtest.User, Password: mailtest.Password, Hello: "example.com", Roots: s.Roots}
}

func TestSend(t *testing.T) {
	for name, tt := range map[string]struct {
		setup mailtest.Setup
		with  func(*transport.SMTP)
	}{
		"STARTTLS":                 {mailtest.Setup{}, func(*transport.SMTP) {}},
		"TLS from the first byte":  {mailtest.Setup{TLS: true}, func(s *transport.SMTP) { s.TLS = true }},
		"a server on this machine": {mailtest.Setup{Plain: true}, func(s *transport.SMTP) { s.Plain = true }},
		"LOGIN":                    {mailtest.Setup{LoginOnly: true}, func(*transport.SMTP) {}},
		"no password":              {mailtest.Setup{NoAuth: true}, func(s *transport.SMTP) { s.User, s.Password = "", "" }},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.New(t, tt.setup)
			client := to(server)
			tt.with(&client)
			if err := client.Send(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			took := server.Took()
			if len(took) != 1 || took[0] != (mailtest.Message{From: message.From, To: message.To, Raw: string(message.Raw)}) {
				t.Errorf("the server took %+v", took)
			}
			if want := client.User != ""; (server.SignedIn() == 1) != want {
				t.Errorf("signed in %d times", server.SignedIn())
			}
		})
	}
}

func TestSend_Refusals(t *testing.T) {
	quoting := "your message with " + string(message.Raw) + " to " + message.To + " is not wanted"
	for name, tt := range map[string]struct {
		stage mailtest.Stage
		err   error
		final bool
		want  string
	}{
		"greylisted":               {mailtest.Recipient, mailtest.Answer(450, [3]int{4, 7, 1}, quoting), false, "recipient: the mail server answered 450 4.7.1"},
		"busy":                     {mailtest.Recipient, mailtest.Answer(421, [3]int{4, 3, 2}, quoting), false, "421 4.3.2"},
		"no such mailbox":          {mailtest.Recipient, mailtest.Answer(550, [3]int{5, 1, 1}, quoting), true, "recipient: the mail server answered 550 5.1.1"},
		"sign-in asked for":        {mailtest.Recipient, mailtest.Answer(530, [3]int{5, 7, 0}, quoting), false, "530 5.7.0"},
		"sender not ours":          {mailtest.Sender, mailtest.Answer(550, [3]int{5, 7, 1}, quoting), false, "sender: the mail server answered 550 5.7.1"},
		"message refused":          {mailtest.Taken, mailtest.Answer(554, [3]int{5, 7, 1}, quoting), true, "message: the mail server answered 554 5.7.1"},
		"message not now":          {mailtest.Taken, mailtest.Answer(451, [3]int{4, 3, 0}, quoting), false, "451 4.3.0"},
		"cut at the recipient":     {mailtest.Recipient, mailtest.ErrCut, false, "recipient: "},
		"cut after the message":    {mailtest.Taken, mailtest.ErrCut, false, "message: "},
		"an answer without a word": {mailtest.Recipient, mailtest.Answer(452, [3]int{-1, -1, -1}, ""), false, "452"},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.New(t, mailtest.Setup{})
			server.Answer(func(stage mailtest.Stage, _ string) error {
				if stage == tt.stage {
					return tt.err
				}
				return nil
			})
			err := to(server).Send(t.Context(), message)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			var rejected *mail.Rejected
			if errors.As(err, &rejected) != tt.final {
				t.Errorf("final = %t: %v", !tt.final, err)
			}
			for _, private := range []string{secret, message.To, mailtest.Password} {
				if strings.Contains(err.Error(), private) {
					t.Errorf("the error tells %q: %v", private, err)
				}
			}
		})
	}
}

func TestSend_WrongSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		setup mailtest.Setup
		with  func(*transport.SMTP)
		want  string
	}{
		"no encryption offered":      {mailtest.Setup{Plain: true}, func(*transport.SMTP) {}, "offers no STARTTLS"},
		"a stranger's certificate":   {mailtest.Setup{}, func(s *transport.SMTP) { s.Roots = nil }, "certificate"},
		"another host's certificate": {mailtest.Setup{}, func(s *transport.SMTP) { s.Host = "localhost" }, "certificate"},
		"wrong password":             {mailtest.Setup{}, func(s *transport.SMTP) { s.Password = "hush-hush" }, "535 5.7.8"},
		"wrong password by LOGIN":    {mailtest.Setup{LoginOnly: true}, func(s *transport.SMTP) { s.Password = "hush-hush" }, "535 5.7.8"},
		"nobody listens":             {mailtest.Setup{}, func(s *transport.SMTP) { s.Port = "1" }, "connect to the mail server"},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.New(t, tt.setup)
			client := to(server)
			tt.with(&client)
			err := client.Send(t.Context(), message)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			if _, given := errors.AsType[*mail.Rejected](err); given {
				t.Errorf("the mail is given up: %v", err)
			}
			if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), mailtest.Password) {
				t.Errorf("the error tells the password: %v", err)
			}
			if len(server.Took()) > 0 {
				t.Error("a message was sent")
			}
		})
	}
}

func TestSend_EndsWithItsContext(t *testing.T) {
	host, port := mailtest.Hanging(t)
	server := mailtest.New(t, mailtest.Setup{})
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	server.Answer(func(stage mailtest.Stage, _ string) error {
		if stage == mailtest.Taken {
			<-hang
		}
		return nil
	})
	for name, client := range map[string]transport.SMTP{
		"before a word":            {Host: host, Port: port, Hello: "example.com"},
		"at the TLS handshake":     {Host: host, Port: port, Hello: "example.com", TLS: true},
		"after the message's last": to(server),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := client.Send(ctx, message)
			var rejected *mail.Rejected
			if err == nil || errors.As(err, &rejected) {
				t.Errorf("error = %v, want one that passes", err)
			}
		})
	}
}

func TestSend_AddressesEndNoCommand(t *testing.T) {
	server := mailtest.New(t, mailtest.Setup{})
	for _, address := range []string{
		"asha@example.net>\r\nDATA", "asha@example.net\r\nRCPT TO:<eve@example.net", "asha@example.net> NOTIFY=NEVER", "", "asha", "āśā@example.net",
	} {
		m := message
		m.To = address
		if err := to(server).Send(t.Context(), m); err == nil {
			t.Errorf("%q was sent to", address)
		}
	}
	if len(server.Took()) > 0 {
		t.Errorf("took %+v", server.Took())
	}
}

func TestFolder(t *testing.T) {
	folder := transport.Folder{Path: filepath.Join(t.TempDir(), "outbox")}
	for range 2 { // a repeat takes the place of the first
		if err := folder.Send(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(folder.Path)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	info, err := files[0].Info()
	if err != nil || info.Name() != "mai_1.eml" || info.Mode().Perm() != 0o600 {
		t.Errorf("%s %s, %v", info.Name(), info.Mode(), err)
	}
	raw, found, err := folder.Read("mai_1")
	if err != nil || !found || string(raw) != string(message.Raw) {
		t.Errorf("read %q, %t, %v", raw, found, err)
	}
	for _, id := range []string{"mai_2", "../outbox/mai_1", "..", "", "mai_1.eml"} {
		if _, found, err := folder.Read(id); found || err != nil {
			t.Errorf("%q: %t, %v", id, found, err)
		}
	}
}
