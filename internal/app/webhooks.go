package app

import (
	"context"
	"errors"
	"time"

	"bursar/internal/event"
	"bursar/internal/mail"
	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

// newEndpoints makes the service that delivers events to the marketplace's servers.
func newEndpoints(p parts, mails mail.Queuer, bodies webhook.Bodies) (*webhook.Service, error) {
	post, err := sender.New(sender.Options{Loopback: p.cfg.Addr.IsLoopback(), Private: p.cfg.WebhookPrivateNetworks, Now: p.now})
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{
		Store: p.datastore.db.Webhooks(), Keys: p.datastore.keys, Sender: post, Mails: mails, Bodies: bodies, Now: p.now, Logger: p.logger, Counted: p.posted,
	})
}

// Endpoints makes the service of webhook endpoints, for a command. It delivers no events.
func (b *Datastore) Endpoints() (*webhook.Service, error) {
	none := func(context.Context, event.Event) ([]byte, error) {
		return nil, errors.New("app: a command delivers no events")
	}
	return newEndpoints(parts{cfg: b.cfg, datastore: b, now: time.Now, logger: quiet()}, noMails{}, none)
}
