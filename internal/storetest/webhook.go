package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/event"
	"bursar/internal/store"
	"bursar/internal/webhook"
)

func (b *bench) addEndpoint(id, url string, types ...event.Type) webhook.Endpoint {
	b.Helper()
	e := webhook.Endpoint{
		ID: id, URL: url, Types: types, Description: "the shop", Status: webhook.Enabled, Secret: "encrypted", OldSecrets: []string{"encrypted", "before"}, OldUntil: b.now.Add(time.Hour), CreatedAt: b.now,
	}
	b.update(func(tx *store.Tx) error {
		added, err := tx.InsertEndpoint(b.ctx(), e)
		if err == nil && !added {
			err = fmt.Errorf("%s is taken", url)
		}
		return err
	})
	return e
}

func (b *bench) endpoint(id string) webhook.Endpoint {
	b.Helper()
	e, found, err := b.db.Webhooks().Endpoint(b.ctx(), id)
	b.must(err)
	if !found {
		b.Fatalf("%s is not there", id)
	}
	return e
}

func (b *bench) deliveries(f webhook.Filter) []webhook.Delivery {
	b.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	all, err := b.db.Webhooks().Deliveries(b.ctx(), f)
	b.must(err)
	return all
}

func (b *bench) takeDeliveries(endpoint string, limit int) (all []webhook.Delivery) {
	b.Helper()
	b.update(func(tx *store.Tx) (err error) {
		all, err = tx.TakeDeliveries(b.ctx(), endpoint, b.now, b.now.Add(time.Minute), limit)
		return err
	})
	return all
}

func testWebhookEndpoints(t *testing.T, b *bench) {
	t.Helper()
	want := b.addEndpoint("whe_1", "https://a.example", event.PayoutCompleted, event.SaleRecorded)
	if diff := cmp.Diff(want, b.endpoint("whe_1")); diff != "" {
		t.Error(diff)
	}
	b.addEndpoint("whe_2", "https://b.example")
	want.URL, want.Types, want.Description, want.Status, want.Reason = "https://c.example", nil, "", webhook.Disabled, webhook.Gone
	want.Secret, want.OldSecrets, want.OldUntil = "other", []string{}, time.Time{}
	want.Health = webhook.Health{Failures: 2, FailingSince: b.now, RetryAt: b.now.Add(time.Minute), LastDeliveredAt: b.now.Add(-time.Hour)}
	b.update(func(tx *store.Tx) error {
		saved, err := tx.SaveEndpoint(b.ctx(), want)
		if !saved {
			t.Error("a change was not stored")
		}
		return errors.Join(err, tx.SaveHealth(b.ctx(), want.ID, want.Health))
	})
	want.Health = webhook.Health{LastDeliveredAt: b.now}
	b.update(func(tx *store.Tx) error { return tx.SaveHealth(b.ctx(), want.ID, want.Health) })
	b.update(func(tx *store.Tx) error {
		got, found, err := tx.EndpointForUpdate(b.ctx(), "whe_1")
		if diff := cmp.Diff(want, got); diff != "" || !found {
			t.Error(diff)
		}
		return err
	})
	b.update(func(tx *store.Tx) error {
		again := want
		again.ID = "whe_3"
		added, err := tx.InsertEndpoint(b.ctx(), again)
		again.ID = "whe_2"
		saved, err2 := tx.SaveEndpoint(b.ctx(), again)
		if added || saved {
			t.Errorf("two endpoints have one address: %t, %t", added, saved)
		}
		return errors.Join(err, err2)
	})
	all, err := b.db.Webhooks().Endpoints(b.ctx())
	b.must(err)
	if len(all) != 2 || all[0].ID != "whe_1" || all[1].ID != "whe_2" {
		t.Errorf("listed are %+v", all)
	}
	b.update(func(tx *store.Tx) error { return tx.DeleteEndpoint(b.ctx(), "whe_1") })
	if _, found, err := b.db.Webhooks().Endpoint(b.ctx(), "whe_1"); found || err != nil {
		t.Errorf("an endpoint that was removed: %t, %v", found, err)
	}
	for i := 1; i < webhook.MaxEndpoints; i++ {
		b.addEndpoint(fmt.Sprintf("whe_%02d", i), fmt.Sprintf("https://%d.example", i))
	}
	if err := b.db.Update(b.ctx(), func(tx *store.Tx) error {
		_, err := tx.InsertEndpoint(b.ctx(), want)
		return err
	}); !errors.Is(err, webhook.ErrTooMany) {
		t.Errorf("one more than there may be: %v", err)
	}
}

func testForgedWebhookEndpoints(t *testing.T, b *bench) {
	t.Helper()
	b.fillAll()
	copied := b.tampered()
	copied.hands(`UPDATE webhook_endpoints SET url = 'https://mallory.example'`)
	forged, found, err := copied.db.Webhooks().Endpoint(b.ctx(), "whe_1")
	if err != nil || !found || !forged.Tampered {
		t.Errorf("an endpoint with another address: %+v, %t, %v", forged, found, err)
	}
	if copied.broken()["webhook-endpoints-are-ours"] == "" {
		t.Error("the audit finds nothing")
	}
}

func testQueuedDeliveries(t *testing.T, b *bench) {
	t.Helper()
	b.addEndpoint("whe_all", "https://all.example")
	b.addEndpoint("whe_sales", "https://sales.example", event.SaleRecorded, event.SaleReleased)
	off := b.addEndpoint("whe_off", "https://off.example")
	off.Status, off.Reason = webhook.Disabled, webhook.Gone
	b.update(func(tx *store.Tx) error {
		_, err := tx.SaveEndpoint(b.ctx(), off)
		return err
	})
	b.sell("s1", b.seller("usr_a"), 1000)
	events := b.numberEvents()
	for endpoint, want := range map[string]int{"whe_all": len(events), "whe_sales": 1, "whe_off": 0} {
		queued := b.deliveries(webhook.Filter{Endpoint: endpoint})
		if len(queued) != want {
			t.Errorf("for %s %d deliveries wait, want %d", endpoint, len(queued), want)
		}
		for _, d := range queued {
			if d.Status != webhook.Pending || !d.DueAt.Equal(b.now) || !d.CreatedAt.Equal(b.now) || d.Attempt != 0 {
				t.Errorf("a queued delivery is %+v", d)
			}
		}
	}
	if w := b.watch(); !w.WebhookSince.Equal(b.now) || w.WebhooksDisabled != 1 || w.WebhooksFailing != 0 {
		t.Errorf("the watch sees %+v", w)
	}
	off.Reason = webhook.ByHand
	b.update(func(tx *store.Tx) error {
		_, err := tx.SaveEndpoint(b.ctx(), off)
		return err
	})
	if w := b.watch(); w.WebhooksDisabled != 0 {
		t.Errorf("the watch sees %d endpoints that the service disabled", w.WebhooksDisabled)
	}
}

func testWebhookLeases(t *testing.T, b *bench) {
	t.Helper()
	for i := range 6 {
		b.addEndpoint(fmt.Sprintf("whe_%d", i), fmt.Sprintf("https://%d.example", i))
	}
	b.sell("s1", b.seller("usr_a"), 1000)
	b.numberEvents()
	b.update(func(tx *store.Tx) error {
		return tx.SaveHealth(b.ctx(), "whe_5", webhook.Health{Failures: 1, FailingSince: b.now, RetryAt: b.now.Add(time.Second)})
	})
	if w := b.watch(); w.WebhooksFailing != 1 {
		t.Errorf("the watch sees %d endpoints that fail", w.WebhooksFailing)
	}
	until := b.now.Add(time.Minute)
	var leased [6]atomic.Int32
	lease := func(int) error {
		return b.db.Update(b.ctx(), func(tx *store.Tx) error {
			leases, err := tx.LeaseEndpoints(b.ctx(), b.now, until, 2)
			for _, l := range leases {
				leased[l.Endpoint[4]-'0'].Add(1)
			}
			return err
		})
	}
	if b.atOnce(4, lease); leased[5].Load() != 0 {
		t.Error("an endpoint was leased before its next try")
	}
	b.update(func(tx *store.Tx) error {
		again, err := tx.LeaseEndpoints(b.ctx(), b.now, until, 10)
		if len(again) != 0 && slices.ContainsFunc(again, func(l webhook.Lease) bool { return leased[l.Endpoint[4]-'0'].Load() > 0 }) {
			t.Errorf("leased twice: %v", again)
		}
		return err
	})
	end := func(l webhook.Lease) []webhook.Lease {
		var leases []webhook.Lease
		b.update(func(tx *store.Tx) (err error) {
			if err = tx.EndLease(b.ctx(), l, b.now); err == nil {
				leases, err = tx.LeaseEndpoints(b.ctx(), b.now, until, 10)
			}
			return err
		})
		return leases
	}
	if again := end(webhook.Lease{Endpoint: "whe_0", Until: until.Add(1 * time.Second)}); len(again) != 0 {
		t.Errorf("the end of another lease ended this one: %v", again)
	}
	if again := end(webhook.Lease{Endpoint: "whe_0", Until: until}); len(again) != 1 {
		t.Errorf("after a lease ended, leased are %v", again)
	}
	b.now = b.now.Add(time.Second)
	until = b.now.Add(time.Minute)
	if again := end(webhook.Lease{Endpoint: "whe_none", Until: until}); len(again) != 1 || again[0].Endpoint != "whe_5" {
		t.Errorf("at the time of its next try, leased are %v", again)
	}
}

func testWebhookAttempts(t *testing.T, b *bench) {
	t.Helper()
	b.addEndpoint("whe_1", "https://a.example")
	for i := range 3 {
		b.sell(fmt.Sprintf("s%d", i), b.seller(fmt.Sprintf("usr_%d", i)), 1000)
	}
	b.numberEvents()
	first := b.takeDeliveries("whe_1", 2)
	if len(first) != 2 || first[0].Attempt != 1 || !first[0].DueAt.Equal(b.now.Add(time.Minute)) {
		t.Fatalf("taken are %+v", first)
	}
	rest := b.takeDeliveries("whe_1", 100)
	if slices.ContainsFunc(rest, func(d webhook.Delivery) bool { return d.ID == first[0].ID }) {
		t.Error("a delivery was taken twice")
	}
	d := first[0]
	b.now = b.now.Add(2 * time.Minute)
	again := b.takeDeliveries("whe_1", 100)
	if len(again) != len(first)+len(rest) || again[0].Attempt != 2 {
		t.Fatalf("once the leases ran out, taken are %+v", again)
	}
	save := func(taken, ended webhook.Delivery) {
		t.Helper()
		b.update(func(tx *store.Tx) error { return tx.SaveAttempt(b.ctx(), taken, ended) })
	}
	stored := func() webhook.Delivery {
		return b.deliveries(webhook.Filter{Event: d.EventID, Endpoint: "whe_1"})[0]
	}
	late := d
	late.Status, late.DueAt = webhook.Failed, time.Time{}
	save(first[0], late)
	if got := stored(); got.Status != webhook.Pending || got.Attempt != 2 {
		t.Errorf("an attempt that lost its lease made it %+v", got)
	}
	d.Attempt, d.Status, d.ResponseStatus, d.Answer, d.Problem, d.At, d.DueAt = 2, webhook.Delivered, 204, "thanks", "none", b.now, time.Time{}
	save(again[0], d)
	save(again[0], late)
	if diff := cmp.Diff(d, stored()); diff != "" {
		t.Error(diff)
	}
	b.update(func(tx *store.Tx) error {
		pending, err := tx.RescheduleDelivery(b.ctx(), "whe_1", d.EventID, b.now)
		other, err2 := tx.RescheduleDelivery(b.ctx(), "whe_1", again[1].EventID, b.now)
		if pending || !other {
			t.Errorf("made due were %t, %t", pending, other)
		}
		return errors.Join(err, err2, tx.InsertDeliveries(b.ctx(), nil),
			tx.InsertDeliveries(b.ctx(), []webhook.Delivery{webhook.NewDelivery("whd_again", d.EventID, "whe_1", b.now)}))
	})
	taken := b.takeDeliveries("whe_1", 100)
	if len(taken) != 2 {
		t.Fatalf("taken after a replay are %+v", taken)
	}

	// One that is asked for during its last attempt is made once more, unless that attempt delivers it.
	reschedule := func(d webhook.Delivery) {
		t.Helper()
		b.update(func(tx *store.Tx) error {
			_, err := tx.RescheduleDelivery(b.ctx(), "whe_1", d.EventID, b.now)
			return err
		})
	}
	d = taken[0]
	d.Status, d.DueAt = webhook.Failed, time.Time{}
	reschedule(d)
	save(taken[0], d)
	if got := stored(); got.Status != webhook.Pending || !got.DueAt.Equal(b.now) {
		t.Errorf("asked for again during its last attempt it is %+v", got)
	}
	taken = b.takeDeliveries("whe_1", 100)
	reschedule(taken[0])
	d.Status = webhook.Delivered
	d.Attempt = taken[0].Attempt
	save(taken[0], d)
	if got := stored(); got.Status != webhook.Delivered || !got.DueAt.IsZero() {
		t.Errorf("asked for again during an attempt that delivers it, it is %+v", got)
	}
}

func testListedDeliveries(t *testing.T, b *bench) {
	t.Helper()
	b.addEndpoint("whe_1", "https://a.example")
	b.addEndpoint("whe_2", "https://b.example", event.SaleRecorded)
	b.sell("s1", b.seller("usr_a"), 1000)
	b.numberEvents()
	all := b.deliveries(webhook.Filter{})
	if len(all) < 3 || !slices.IsSortedFunc(all, func(a, b webhook.Delivery) int { return strings.Compare(b.ID, a.ID) }) {
		t.Fatalf("listed are %+v", all)
	}
	failed := all[1]
	failed.Status, failed.DueAt = webhook.Failed, time.Time{}
	b.update(func(tx *store.Tx) error { return tx.SaveAttempt(b.ctx(), all[1], failed) })
	for name, tt := range map[string]struct {
		webhook.Filter
		want func(webhook.Delivery) bool
	}{
		"endpoint": {webhook.Filter{Endpoint: "whe_2"}, func(d webhook.Delivery) bool { return d.EndpointID == "whe_2" }},
		"event":    {webhook.Filter{Event: all[0].EventID}, func(d webhook.Delivery) bool { return d.EventID == all[0].EventID }},
		"failed":   {webhook.Filter{Status: webhook.Failed}, func(d webhook.Delivery) bool { return d.ID == failed.ID }},
		"pending": {webhook.Filter{Status: webhook.Pending, Endpoint: "whe_1"}, func(d webhook.Delivery) bool {
			return d.ID != failed.ID && d.EndpointID == "whe_1"
		}},
		"delivered": {webhook.Filter{Status: webhook.Delivered}, func(webhook.Delivery) bool { return false }},
		"next page": {webhook.Filter{Before: all[1].ID}, func(d webhook.Delivery) bool { return d.ID < all[1].ID }},
	} {
		var want []string
		for _, d := range all {
			if tt.want(d) {
				want = append(want, d.ID)
			}
		}
		var got []string
		for _, d := range b.deliveries(tt.Filter) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	old := webhook.NewDelivery("whd_"+strings.Repeat("0", 24), "evt_1", "whe_1", b.now)
	b.update(func(tx *store.Tx) error { return tx.InsertDeliveries(b.ctx(), []webhook.Delivery{old}) })
	b.update(func(tx *store.Tx) error {
		n, err := tx.SweepDeliveries(b.ctx(), time.UnixMilli(0), 10)
		if n != 0 {
			t.Errorf("%d were deleted that are not old", n)
		}
		return err
	})
	sweep := func(want int64) {
		t.Helper()
		b.update(func(tx *store.Tx) error {
			n, err := tx.SweepDeliveries(b.ctx(), b.now.Add(time.Hour), len(all))
			if n != want {
				t.Errorf("%d were deleted, want %d", n, want)
			}
			return err
		})
	}
	sweep(1) // what failed; the others wait for endpoints that are enabled
	b.update(func(tx *store.Tx) error {
		e, _, err := tx.EndpointForUpdate(b.ctx(), "whe_1")
		e.Status = webhook.Disabled
		_, err2 := tx.SaveEndpoint(b.ctx(), e)
		return errors.Join(err, err2, tx.DeleteEndpoint(b.ctx(), "whe_2"))
	})
	sweep(int64(len(all)))
	sweep(0)
}
