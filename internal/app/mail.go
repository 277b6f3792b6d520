package app

import (
	"context"
	"log/slog"
	"net/url"
	"strings"

	"bursar/internal/config"
	"bursar/internal/mail"
	"bursar/internal/mail/message"
	"bursar/internal/mail/transport"
	"bursar/internal/web"
)

// newMails makes the service that queues mails and sends them.
func newMails(p parts) (*mail.Service, error) {
	templates, err := message.Load(p.cfg.MailTemplates)
	if err != nil {
		return nil, err
	}
	composer, err := message.NewComposer(p.cfg.MailFrom, p.cfg.Origin(), p.cfg.Zone, templates)
	if err != nil {
		return nil, err
	}
	return mail.New(mail.Options{
		Store: p.datastore.db.Mails(), Keys: p.datastore.keys, Composer: composer, Transport: transportOf(p.cfg),
		Now: p.now, Logger: p.logger, Counted: p.mailed,
	})
}

func transportOf(cfg config.Config) mail.Transport {
	m := cfg.MailServer
	if m == nil {
		return transport.Folder{Path: cfg.OutboxDir()}
	}
	_, hello, _ := strings.Cut(cfg.MailFrom.Address, "@")
	return transport.SMTP{Host: m.Host, Port: m.Port, User: m.User, Password: m.Password, TLS: m.TLS, Plain: m.Plain, Hello: hello}
}

// MailPlace says where mails go.
func MailPlace(cfg config.Config) string {
	if m := cfg.MailServer; m != nil {
		return transport.SMTP{Host: m.Host, Port: m.Port}.String() + " as " + cfg.MailFrom.Address
	}
	return cfg.OutboxDir() + " (files; set BURSAR_SMTP_URL to send mails)"
}

// outbox is the folder of mails that an admin may read, or nil. Mails hold what signs people in, so they are shown on
// this machine alone, where a developer tries the service out.
func outbox(cfg config.Config) *transport.Folder {
	at, err := url.Parse(cfg.Origin())
	if cfg.MailServer != nil || err != nil || !web.IsLoopback(at.Host) {
		return nil
	}
	return &transport.Folder{Path: cfg.OutboxDir()}
}

// warnOfOutbox warns an operator whose users get no mails.
func warnOfOutbox(ctx context.Context, cfg config.Config, logger *slog.Logger) {
	at, err := url.Parse(cfg.Origin())
	if cfg.MailServer == nil && (err != nil || !web.IsLoopback(at.Host)) {
		logger.WarnContext(ctx, "no mail server is set; mails are written to files and reach nobody",
			slog.String("directory", cfg.OutboxDir()), slog.String("cure", "set BURSAR_SMTP_URL and BURSAR_MAIL_FROM"))
	}
}

// mailbox is what the pages show of mails.
type mailbox struct {
	*mail.Service
	outbox *transport.Folder
}

// ShowsBodies reports whether the mails themselves may be read.
func (m mailbox) ShowsBodies() bool { return m.outbox != nil }

// Body is the whole message of a mail that was written to the outbox, if it is there and may be read.
func (m mailbox) Body(id string) (string, bool, error) {
	if m.outbox == nil {
		return "", false, nil
	}
	raw, found, err := m.outbox.Read(id)
	return string(raw), found, err
}

// noMails queues no mail.
type noMails struct{}

// Queue reports that it queued nothing.
func (noMails) Queue(context.Context, mail.Tx, mail.Mail) (bool, error) { return false, nil }
