package config

import (
	"net"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"

	"bursar/internal/mail"
	"bursar/internal/mail/message"
	"bursar/internal/web"
)

// MailServer is the mail server that mails are handed to.
type MailServer struct {
	Host, Port, User, Password string
	// TLS encrypts from the first byte. Plain is set for a server on this machine, which needs no encryption.
	TLS, Plain bool
}

// mail reads where mails go and whom they come from.
func (p *parser) mail(s Settings, c *Config) {
	c.MailServer = p.mailServer(s.SMTPURL)
	from := s.MailFrom
	if from == "" {
		if c.MailServer != nil {
			p.problem("MAIL_FROM", "", "is not set, and BURSAR_SMTP_URL is; set it to the sender of mails, such as Payouts <payouts@example.com>")
		}
		from = "Bursar <bursar@localhost>"
	}
	sender, err := netmail.ParseAddress(from)
	switch {
	case err != nil:
		p.problem("MAIL_FROM", s.MailFrom, "is not a sender; write an address such as payouts@example.com, or Payouts <payouts@example.com>")
	case mail.CheckAddress(sender.Address) != "":
		p.problem("MAIL_FROM", s.MailFrom, mail.CheckAddress(sender.Address))
	}
	c.MailFrom = sender
	c.MailTemplates = s.MailTemplates
	if c.MailTemplates != "" {
		if _, err := message.Load(c.MailTemplates); err != nil {
			p.problem("MAIL_TEMPLATES", s.MailTemplates, "can't be used: "+err.Error())
		}
	}
}

// mailServer reads the address of a mail server. It is in no problem: it may hold a password.
func (p *parser) mailServer(text string) *MailServer {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		p.problem("SMTP_URL", "", "is not the address of a mail server; write smtp://USER:PASSWORD@HOST:587, or smtps://USER:PASSWORD@HOST:465, with %40 for @ and %2F for / in a password")
		return nil
	}
	m := &MailServer{Host: u.Hostname(), Port: u.Port(), User: u.User.Username(), TLS: u.Scheme == "smtps"}
	m.Password, _ = u.User.Password()
	m.Plain = !m.TLS && web.IsLoopback(net.JoinHostPort(m.Host, "25"))
	if m.Port == "" {
		m.Port = map[bool]string{true: "465", false: "587"}[m.TLS]
	}
	if n, err := strconv.ParseUint(m.Port, 10, 16); err != nil || n == 0 {
		p.problem("SMTP_URL", "", "has a port that is no number from 1 to 65535; write one such as 587")
	}
	if (m.User == "") != (m.Password == "") {
		p.problem("SMTP_URL", "", "has a name without a password, or a password without a name; write smtp://USER:PASSWORD@HOST:587, or neither")
	}
	if strings.ContainsFunc(m.User+m.Password, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		p.problem("SMTP_URL", "", "has a control character in its name or password")
	}
	return m
}
