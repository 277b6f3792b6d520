// Package transport takes messages to a mail server, or into a folder while there is none.
package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"regexp"
	"strings"

	"bursar/internal/mail"
)

// SMTP is a mail server.
type SMTP struct {
	Host, Port string
	// User is empty where the server asks for none.
	User, Password string
	// TLS encrypts from the first byte. Plain sends without encryption, which is for a server on this machine. With
	// neither, the server has to offer STARTTLS.
	TLS, Plain bool
	// Hello is the name that we give the server.
	Hello string
	// Roots are whose certificates are trusted; nil stands for those of the system.
	Roots *x509.CertPool
}

func (s SMTP) String() string { return net.JoinHostPort(s.Host, s.Port) }

// errNoTLS keeps passwords and mails from a network that can read them.
var errNoTLS = errors.New("the mail server offers no STARTTLS, and nothing is sent to it without encryption; use its port with TLS (smtps://) or a server that offers it")

// Send hands m to the server. Errors hold what the server answered as a code alone: its text may quote the message.
func (s SMTP) Send(ctx context.Context, m mail.Message) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends what waits for a server that hangs
	defer stop()

	client, err := smtp.NewClient(conn, s.Host)
	if err != nil {
		return failed(ctx, "greeting", err)
	}
	if err := s.prepare(client); err != nil {
		return failed(ctx, "sign in to the mail server", err)
	}
	// Without SMTPUTF8, which Client.Mail asks for and some servers pass on only to servers that know it: addresses and
	// message are ASCII.
	if err := command(client, 250, "MAIL FROM:<%s>", m.From); err != nil {
		return failed(ctx, "sender", err)
	}
	if err := command(client, 25, "RCPT TO:<%s>", m.To); err != nil {
		return final(ctx, "recipient", err)
	}
	if err := sendBody(client, m.Raw); err != nil {
		return final(ctx, "message", err)
	}
	_ = client.Quit() // the message was taken, whatever the server says now
	return nil
}

func (s SMTP) dial(ctx context.Context) (net.Conn, error) {
	if s.TLS {
		return (&tls.Dialer{Config: s.tlsConfig()}).DialContext(ctx, "tcp", s.String())
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.String())
}

func (s SMTP) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.Host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
}

// prepare encrypts the connection and signs in.
func (s SMTP) prepare(client *smtp.Client) error {
	if err := client.Hello(s.Hello); err != nil {
		return err
	}
	if !s.TLS && !s.Plain {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return errNoTLS
		}
		if err := client.StartTLS(s.tlsConfig()); err != nil {
			return err
		}
	}
	if s.User == "" {
		return nil
	}
	_, mechanisms := client.Extension("AUTH")
	return client.Auth(s.auth(strings.Fields(mechanisms)))
}

func (s SMTP) auth(offered []string) smtp.Auth {
	for _, mechanism := range offered {
		if strings.EqualFold(mechanism, "PLAIN") {
			return plainAuth{s.User, s.Password}
		}
	}
	return loginAuth{s.User, s.Password}
}

// command sends a command about an address that was checked to be one word.
func command(client *smtp.Client, want int, format, address string) error {
	if problem := mail.CheckAddress(address); problem != "" {
		return errors.New("the address " + problem)
	}
	id, err := client.Text.Cmd(format, address)
	if err != nil {
		return err
	}
	client.Text.StartResponse(id)
	defer client.Text.EndResponse(id)
	_, _, err = client.Text.ReadResponse(want)
	return err
}

func sendBody(client *smtp.Client, raw []byte) error {
	w, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	return w.Close()
}

// plainAuth is smtp.PlainAuth without its own idea of which servers may be sent a password: prepare has decided that.
type plainAuth struct{ user, password string }

func (a plainAuth) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + a.user + "\x00" + a.password), nil
}

func (plainAuth) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the mail server asks for more than a name and a password")
	}
	return nil, nil
}

// loginAuth is for servers that know LOGIN alone, such as Microsoft's.
type loginAuth struct{ user, password string }

func (loginAuth) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (a loginAuth) Next(asked []byte, more bool) ([]byte, error) {
	question := strings.ToLower(string(asked))
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(question, "user"):
		return []byte(a.user), nil
	case strings.HasPrefix(question, "pass"):
		return []byte(a.password), nil
	default:
		return nil, errors.New("the mail server asks for what is neither a name nor a password")
	}
}

// failed is a failure that may pass: the connection, our settings, or a server that is busy.
func failed(ctx context.Context, at string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: no answer in time: %w", at, cause)
	}
	var answer *textproto.Error
	switch {
	case errors.As(err, &answer):
		return fmt.Errorf("%s: the mail server answered %s", at, code(answer))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: the mail server closed the connection", at)
	default:
		return fmt.Errorf("%s: %w", at, err)
	}
}

// final is [failed] for what the server says of this very mail: a code from 500 is its last word. 530 is about our
// sign-in, and passes once the settings are corrected.
func final(ctx context.Context, at string, err error) error {
	var answer *textproto.Error
	if errors.As(err, &answer) && answer.Code >= 500 && answer.Code < 600 && answer.Code != 530 {
		return &mail.Rejected{Reason: at + ": the mail server answered " + code(answer)}
	}
	return failed(ctx, at, err)
}

var enhancedCode = regexp.MustCompile(`(?m)^[245]\.\d{1,3}\.\d{1,3}\b`)

// code is an answer's code, with its enhanced code (RFC 3463) where it has one.
func code(answer *textproto.Error) string {
	text := fmt.Sprintf("%03d", answer.Code)
	if enhanced := enhancedCode.FindString(answer.Msg); enhanced != "" {
		text += " " + enhanced
	}
	return text
}
