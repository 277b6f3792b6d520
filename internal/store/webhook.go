package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bursar/internal/event"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/webhook"
)

// webhookStore is the database as package webhook sees it.
type webhookStore struct{ *DB }

// Webhooks is the database as package webhook sees it.
func (db *DB) Webhooks() webhook.Store { return webhookStore{db} }

func (s webhookStore) InTx(ctx context.Context, fn func(webhook.Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error { return fn(tx) })
}

// deliveryFields are those of an event on its way to an endpoint.
var deliveryFields = fields[webhook.Delivery]{
	asText("id", primaryKey, func(d *webhook.Delivery) *string { return &d.ID }),
	asText("event_id", insertOnly, func(d *webhook.Delivery) *string { return &d.EventID }),
	asText("endpoint_id", insertOnly, func(d *webhook.Delivery) *string { return &d.EndpointID }),
	asText("status", mutable, func(d *webhook.Delivery) *webhook.DeliveryStatus { return &d.Status }),
	asNumber("attempt", mutable, func(d *webhook.Delivery) *int64 { return &d.Attempt }),
	asNumber("response_status", mutable, func(d *webhook.Delivery) *int { return &d.ResponseStatus }),
	asText("answer", mutable, func(d *webhook.Delivery) *string { return &d.Answer }),
	asText("problem", mutable, func(d *webhook.Delivery) *string { return &d.Problem }),
	asTime("created_at", insertOnly, func(d *webhook.Delivery) *time.Time { return &d.CreatedAt }),
	orNull("at", mutable, func(d *webhook.Delivery) *time.Time { return &d.At }),
	orNull("due_at", mutable, func(d *webhook.Delivery) *time.Time { return &d.DueAt }),
}

var webhookDeliveryTable = &table[webhook.Delivery]{name: "webhook_deliveries", texts: &sync.Map{}, columns: deliveryFields}

// endpointMessage is what the MAC of an endpoint covers: all but how deliveries go, and how many decisions there were about it, so
// that an old row is not accepted after an admin changed or removed the endpoint. One from before the service disabled it is.
func endpointMessage(e webhook.Endpoint, decisions int64) []byte {
	until := ""
	if !e.OldUntil.IsZero() {
		until = strconv.FormatInt(micros(e.OldUntil), 10)
	}
	return rowMessage("webhook endpoint", e.ID, e.URL, joinTypes(e.Types), e.Description, string(e.Status), e.Reason,
		e.Secret, strings.Join(e.OldSecrets, " "), until, strconv.FormatInt(micros(e.CreatedAt), 10), strconv.FormatInt(decisions, 10))
}

func joinTypes(types []event.Type) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, " ")
}

func splitTypes(text string) (types []event.Type) {
	for t := range strings.FieldsSeq(text) {
		types = append(types, event.Type(t))
	}
	return types
}

const selectEndpoints = `SELECT id, url, types, description, status, reason, secret, old_secrets, old_until, created_at, mac,
	failures, failing_since, retry_at, last_delivered_at,
	(SELECT COUNT(*) FROM entries d WHERE d.subject = webhook_endpoints.id AND d.type = 'admin.decided') FROM webhook_endpoints`

// scanEndpoint reads an endpoint, and marks it unless it has the MAC that the service gave it. Without keys it checks none.
func scanEndpoint(r *row, keys ledger.Keys) (e webhook.Endpoint) {
	var types, oldSecrets, mac string
	var decisions int64
	r.Scan(&e.ID, &e.URL, &types, &e.Description, &e.Status, &e.Reason, &e.Secret, &oldSecrets, instant{&e.OldUntil}, instant{&e.CreatedAt}, &mac,
		&e.Failures, instant{&e.FailingSince}, instant{&e.RetryAt}, instant{&e.LastDeliveredAt}, &decisions)
	e.Types, e.OldSecrets = splitTypes(types), strings.Fields(oldSecrets)
	// That of the texts as they are stored, which may have more blanks.
	e.Tampered = keys != nil && (joinTypes(e.Types) != types || strings.Join(e.OldSecrets, " ") != oldSecrets || !ledger.CheckMAC(keys, mac, endpointMessage(e, decisions)))
	return e
}

// Endpoints lists all endpoints, the oldest first. One that the service did not write is marked.
func (s webhookStore) Endpoints(ctx context.Context) ([]webhook.Endpoint, error) {
	return s.endpoints(ctx, selectEndpoints+` ORDER BY id`)
}

// Endpoint finds an endpoint by its id, marked if the service did not write it.
func (s webhookStore) Endpoint(ctx context.Context, id string) (webhook.Endpoint, bool, error) {
	all, err := s.endpoints(ctx, selectEndpoints+` WHERE id = $1`, id)
	if err != nil || len(all) == 0 {
		return webhook.Endpoint{}, false, err
	}
	return all[0], true, nil
}

func (s webhookStore) endpoints(ctx context.Context, query string, args ...any) ([]webhook.Endpoint, error) {
	keys, err := s.signer.get()
	if err != nil {
		return nil, err
	}
	var all []webhook.Endpoint
	err = s.query(ctx, query, args, func(r *row) { all = append(all, scanEndpoint(r, keys)) })
	return all, err
}

// EndpointForUpdate finds an endpoint and keeps it so until the transaction ends.
func (tx *Tx) EndpointForUpdate(ctx context.Context, id string) (e webhook.Endpoint, found bool, err error) {
	keys, err := tx.signer.get()
	if err != nil {
		return webhook.Endpoint{}, false, err
	}
	if _, err := tx.one(ctx, `SELECT id FROM webhook_endpoints WHERE id = $1`+tx.dialect.forUpdate("webhook_endpoints"), []any{id}, new(string)); err != nil {
		return webhook.Endpoint{}, false, err
	}
	// In a statement of its own, which sees the decision of the change that held the lock before.
	err = tx.each(ctx, selectEndpoints+` WHERE id = $1`, []any{id}, func(r *row) {
		found = true
		e = scanEndpoint(r, keys)
	})
	return e, found, err
}

// execEndpoint is execSigned for an endpoint after the decisions about it so far.
func (tx *Tx) execEndpoint(ctx context.Context, e webhook.Endpoint, query string, args ...any) (bool, error) {
	var decisions int64
	_, err := tx.one(ctx, `SELECT COUNT(*) FROM entries WHERE subject = $1 AND type = 'admin.decided'`, []any{e.ID}, &decisions)
	if err != nil {
		return false, err
	}
	return tx.execSigned(ctx, endpointMessage(e, decisions), query, args...)
}

// InsertEndpoint adds an endpoint unless its address is taken, and reports whether it did. It fails with
// [webhook.ErrTooMany] if there are as many as there may be.
func (tx *Tx) InsertEndpoint(ctx context.Context, e webhook.Endpoint) (bool, error) {
	var count int
	if _, err := tx.one(ctx, `SELECT COUNT(*) FROM webhook_endpoints`, nil, &count); err != nil {
		return false, err
	}
	if count >= webhook.MaxEndpoints {
		return false, webhook.ErrTooMany
	}
	return tx.execEndpoint(ctx, e, `INSERT INTO webhook_endpoints (id, url, types, description, status, reason, secret, old_secrets, old_until, created_at, mac,
		failures, leased_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0) ON CONFLICT (url) DO NOTHING`,
		e.ID, e.URL, joinTypes(e.Types), e.Description, string(e.Status), e.Reason, e.Secret, strings.Join(e.OldSecrets, " "), nullMicros(e.OldUntil), micros(e.CreatedAt))
}

// SaveEndpoint stores all but the health of an endpoint. It reports whether no other endpoint has its address.
func (tx *Tx) SaveEndpoint(ctx context.Context, e webhook.Endpoint) (bool, error) {
	return tx.execEndpoint(ctx, e, `UPDATE webhook_endpoints SET url = $2, types = $3, description = $4, status = $5, reason = $6, secret = $7, old_secrets = $8,
		old_until = $9, mac = $10 WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM webhook_endpoints o WHERE o.url = $2 AND o.id <> $1)`,
		e.ID, e.URL, joinTypes(e.Types), e.Description, string(e.Status), e.Reason, e.Secret, strings.Join(e.OldSecrets, " "), nullMicros(e.OldUntil))
}

// SaveHealth stores how deliveries to an endpoint go.
func (tx *Tx) SaveHealth(ctx context.Context, id string, h webhook.Health) error {
	_, err := tx.exec(ctx, `UPDATE webhook_endpoints SET failures = $2, failing_since = $3, retry_at = $4, last_delivered_at = $5 WHERE id = $1`,
		id, h.Failures, nullMicros(h.FailingSince), nullMicros(h.RetryAt), nullMicros(h.LastDeliveredAt))
	return err
}

// DeleteEndpoint removes an endpoint. Its deliveries stay on record until they are swept.
func (tx *Tx) DeleteEndpoint(ctx context.Context, id string) error {
	_, err := tx.exec(ctx, `DELETE FROM webhook_endpoints WHERE id = $1`, id)
	return err
}

// leaseEndpoints leases what something is due at. A lease that ends later than clocks that differ can explain does not count, as in [DB.lease].
const leaseEndpoints = `SELECT e.id FROM webhook_endpoints e WHERE e.status = 'enabled' AND (e.leased_until <= $1 OR e.leased_until > $4) AND COALESCE(e.retry_at, 0) <= $1
	AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.due_at <= $1) ORDER BY e.leased_until LIMIT $3 + 0`

// LeaseEndpoints leases up to limit enabled endpoints with deliveries that are due, first those that were leased longest ago.
func (tx *Tx) LeaseEndpoints(ctx context.Context, now, until time.Time, limit int) ([]webhook.Lease, error) {
	var leases []webhook.Lease
	err := tx.each(ctx, `WITH due AS MATERIALIZED (`+leaseEndpoints+tx.dialect.skipLocked+`)
		UPDATE webhook_endpoints SET leased_until = $2 WHERE id IN (SELECT id FROM due) RETURNING id`,
		[]any{micros(now), micros(until), limit, micros(until.Add(maxClockDifference))}, func(r *row) {
			l := webhook.Lease{Until: until}
			r.Scan(&l.Endpoint)
			leases = append(leases, l)
		})
	return leases, err
}

// EndLease ends a lease, unless it has run out and another was taken.
func (tx *Tx) EndLease(ctx context.Context, l webhook.Lease, now time.Time) error {
	_, err := tx.exec(ctx, `UPDATE webhook_endpoints SET leased_until = $3 WHERE id = $1 AND leased_until = $2`, l.Endpoint, micros(l.Until), micros(now))
	return err
}

var deliveryColumns = deliveryFields.names("")

// dueDeliveries are those of an endpoint, the longest due first.
const dueDeliveries = `SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3 + 0`

// TakeDeliveries counts an attempt of up to limit deliveries of an endpoint that are due, the longest due first, and makes them
// due again at until.
func (tx *Tx) TakeDeliveries(ctx context.Context, endpoint string, now, until time.Time, limit int) ([]webhook.Delivery, error) {
	var all []webhook.Delivery
	err := tx.each(ctx, `WITH due AS MATERIALIZED (`+dueDeliveries+tx.dialect.skipLocked+`)
		UPDATE webhook_deliveries SET due_at = $4, attempt = attempt + 1 WHERE id IN (SELECT id FROM due) RETURNING `+deliveryColumns,
		[]any{endpoint, micros(now), limit, micros(until)}, collect(&all, deliveryFields.dest))
	slices.SortFunc(all, func(a, b webhook.Delivery) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// SaveAttempt stores how the attempt at a delivery ended, unless a later one was taken or the delivery has ended. If the
// delivery was made due after it was taken, it stays due unless it was delivered.
func (tx *Tx) SaveAttempt(ctx context.Context, taken, ended webhook.Delivery) error {
	_, err := tx.exec(ctx, `UPDATE webhook_deliveries SET attempt = $4, response_status = $5, answer = $6, problem = $7, at = $8,
		status = CASE WHEN $3 = 'delivered' OR due_at = $10 THEN $3 ELSE 'pending' END,
		due_at = CASE WHEN $3 = 'delivered' OR due_at = $10 THEN $9 ELSE due_at END
		WHERE id = $1 AND attempt = $2 AND status = 'pending'`,
		ended.ID, taken.Attempt, string(ended.Status), ended.Attempt, ended.ResponseStatus, ended.Answer, ended.Problem,
		nullMicros(ended.At), nullMicros(ended.DueAt), nullMicros(taken.DueAt))
	return err
}

// RescheduleDelivery makes a pending delivery due, and reports whether there is one. Endpoint and status are compared as
// expressions, so that the few deliveries of the event are read and not all of the endpoint, or all that are pending.
func (tx *Tx) RescheduleDelivery(ctx context.Context, endpoint, eventID string, now time.Time) (bool, error) {
	n, err := tx.exec(ctx, `UPDATE webhook_deliveries SET due_at = $3 WHERE event_id = $2 AND endpoint_id || '' = $1 AND status || '' = 'pending'`, endpoint, eventID, micros(now))
	return n > 0, err
}

// InsertDeliveries adds deliveries.
func (tx *Tx) InsertDeliveries(ctx context.Context, all []webhook.Delivery) error {
	_, err := tx.write(ctx, webhookDeliveryTable.inserts(tx.dialect, all))
	return err
}

// queueDeliveries makes a delivery of each event to each endpoint that wants it.
func (tx *Tx) queueDeliveries(ctx context.Context, events []event.Event, now time.Time, newID func(prefix string) string) error {
	var endpoints []webhook.Endpoint
	err := tx.each(ctx, `SELECT id, types FROM webhook_endpoints WHERE status = 'enabled'`, nil, func(r *row) {
		var e webhook.Endpoint
		var types string
		r.Scan(&e.ID, &types)
		e.Types = splitTypes(types)
		endpoints = append(endpoints, e)
	})
	if err != nil {
		return err
	}
	var all []webhook.Delivery
	for _, e := range events {
		for i := range endpoints {
			if endpoints[i].Wants(e.Type) {
				all = append(all, webhook.NewDelivery(newID(webhook.DeliveryPrefix), e.ID, endpoints[i].ID, now))
			}
		}
	}
	return tx.InsertDeliveries(ctx, all)
}

// SweepDeliveries deletes up to limit deliveries made before a time, and returns how many. It keeps what an enabled endpoint has
// yet to take.
func (tx *Tx) SweepDeliveries(ctx context.Context, before time.Time, limit int) (int64, error) {
	return tx.exec(ctx, `DELETE FROM webhook_deliveries WHERE id IN
		(SELECT d.id FROM webhook_deliveries d WHERE d.id < $1 AND NOT (d.status = 'pending' AND EXISTS
			(SELECT 1 FROM webhook_endpoints e WHERE e.id = d.endpoint_id AND e.status = 'enabled'))
		ORDER BY d.id LIMIT $2 + 0`+tx.dialect.skipLocked+`)`, id.First(webhook.DeliveryPrefix, before), limit)
}

// Deliveries lists those that a filter selects, newest first.
func (s webhookStore) Deliveries(ctx context.Context, f webhook.Filter) ([]webhook.Delivery, error) {
	query, args := deliveriesQuery(f)
	return readAll(ctx, s.query, query, args, deliveryFields.dest)
}

// deliveriesQuery writes what a filter selects as conditions that indexes fit.
func deliveriesQuery(f webhook.Filter) (string, []any) {
	args := []any{f.Limit}
	where := "1 = 1"
	add := func(condition string, value string) {
		args = append(args, value)
		where += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	if f.Before != "" {
		add("id <", f.Before)
	}
	if f.Event != "" {
		add("event_id =", f.Event)
	}
	switch {
	case f.Endpoint == "":
	case f.Event != "" || f.Status != "" && f.Status != webhook.Delivered: // of which there are few, by their own index
		add("endpoint_id || '' =", f.Endpoint)
	default:
		add("endpoint_id =", f.Endpoint)
	}
	if f.Status != "" {
		if f.Status != webhook.Delivered {
			where += " AND status <> 'delivered'" // so that the index of those fits
		}
		add("status =", string(f.Status))
	}
	return `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE ` + where + ` ORDER BY id DESC LIMIT $1 + 0`, args
}

// webhookEndpoints holds every endpoint against its MAC.
func (a *auditor) webhookEndpoints() ledger.Finding {
	f := ledger.Finding{Name: "webhook-endpoints-are-ours", Promise: "Each webhook endpoint is as the service wrote it."}
	if a.keys == nil {
		return f
	}
	a.all(selectEndpoints+` ORDER BY id`, func(r *row) {
		if e := scanEndpoint(r, a.keys); e.Tampered {
			note(&f, ledger.Violation{Subject: "webhook endpoint " + e.ID, Problem: "it was not written by the service, so nothing is delivered to it"},
				"Remove it and add it again")
		}
	})
	return f
}
