// Package message makes e-mail messages of a mail's data: it draws the templates, as text and as HTML, and writes them as
// MIME.
package message

import (
	"bytes"
	"fmt"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode"

	"bursar/internal/mail"
)

// Composer makes messages. It is safe for concurrent use.
type Composer struct {
	// From is the sender, with or without a name.
	From *netmail.Address
	// BaseURL is the service's public address, for links.
	BaseURL string
	// Zone is the time zone of the times in a mail.
	Zone *time.Location

	templates *Templates
}

// NewComposer makes a composer, or fails if a template does.
func NewComposer(from *netmail.Address, baseURL string, zone *time.Location, t *Templates) (*Composer, error) {
	c := &Composer{From: from, BaseURL: baseURL, Zone: zone, templates: t}
	if problem := mail.CheckAddress(from.Address); problem != "" {
		return nil, fmt.Errorf("message: the sender %s", problem)
	}
	return c, t.check(c)
}

// view is what templates see.
type view struct {
	Data mail.Data
	// Home is the service's public address. Link is where the mail leads; it may hold a token.
	Home, Link string
	zone       *time.Location
}

// Time writes an instant as people read it.
func (v view) Time(t time.Time) string { return t.In(v.zone).Format("2 January 2006, 15:04 MST") }

// linked is data that leads somewhere.
type linked interface{ Path() string }

func (c *Composer) view(d mail.Data) view {
	v := view{Data: d, Home: c.BaseURL, Link: c.BaseURL, zone: c.Zone}
	if l, ok := d.(linked); ok {
		v.Link += l.Path()
	}
	return v
}

// Compose makes the message. Its Message-ID is the same each time, so that a receiver can tell a repeat.
func (c *Composer) Compose(id, to string, created time.Time, d mail.Data) (mail.Message, error) {
	if problem := mail.CheckAddress(to); problem != "" {
		return mail.Message{}, &mail.Rejected{Reason: "the address " + problem}
	}
	subject, text, html, err := c.templates.draw(d.Kind(), c.view(d))
	if err != nil {
		return mail.Message{}, err
	}
	var out bytes.Buffer
	body := multipart.NewWriter(&out)
	_, domain, _ := strings.Cut(c.From.Address, "@")
	header := []struct{ name, value string }{
		{"From", c.From.String()},
		{"To", (&netmail.Address{Address: to}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", plain(subject))},
		{"Date", created.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + id + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: no automatic answers
		{"MIME-Version", "1.0"},
		{"Content-Type", mime.FormatMediaType("multipart/alternative", map[string]string{"boundary": body.Boundary()})},
	}
	for _, h := range header {
		out.WriteString(h.name + ": " + oneLine(h.value) + "\r\n")
	}
	out.WriteString("\r\n")
	for _, part := range []struct{ mediaType, text string }{{"text/plain", text}, {"text/html", html}} {
		if err := addPart(body, part.mediaType, part.text); err != nil {
			return mail.Message{}, err
		}
	}
	if err := body.Close(); err != nil {
		return mail.Message{}, err
	}
	return mail.Message{ID: id, From: c.From.Address, To: to, Raw: out.Bytes()}, nil
}

func addPart(body *multipart.Writer, mediaType, text string) error {
	w, err := body.CreatePart(textproto.MIMEHeader{
		"Content-Type":              {mediaType + "; charset=utf-8"},
		"Content-Transfer-Encoding": {"quoted-printable"},
	})
	if err != nil {
		return err
	}
	encoder := quotedprintable.NewWriter(w)
	if _, err := encoder.Write([]byte(text)); err != nil {
		return err
	}
	return encoder.Close()
}

// plain is a text whose every character a reader shows as it is: none of it begins an encoded word (RFC 2047).
func plain(s string) string { return strings.ReplaceAll(oneLine(s), "=?", "= ?") }

// oneLine takes out of a header's value what could end it or hide in it.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, s))
}
