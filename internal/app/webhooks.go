package app

import (
	"bursar/internal/webhook"
	"bursar/internal/webhook/sender"
)

// newEndpoints makes the service that delivers events to the marketplace's servers.
func newEndpoints(p parts, bodies webhook.Bodies) (*webhook.Service, error) {
	post, err := sender.New(sender.Options{Loopback: p.cfg.Addr.IsLoopback(), Private: p.cfg.WebhookPrivateNetworks, Now: p.now})
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{
		Store: p.datastore.db.Webhooks(), Keys: p.datastore.keys, Sender: post, Bodies: bodies, Now: p.now, Logger: p.logger, Counted: p.posted,
	})
}
