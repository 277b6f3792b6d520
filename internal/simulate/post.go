package simulate

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/payout"
)

// postman carries a gateway's webhooks.
type postman struct{ g *gateway }

// RoundTrip takes a webhook, and says that it arrived; the gateway would else send it again until it does.
func (p postman) RoundTrip(req *http.Request) (*http.Response, error) {
	m, g := p.g.m, p.g
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	m.tally.webhooks++
	if notification, err := g.webhooks.Read(req.Header, body); err == nil && notification.Reference != "" {
		g.hookHeader, g.hook = req.Header, body
	}
	on := m.anyInstance()
	switch {
	case on != nil && !on.knows(g.name):
		return response(req, http.StatusNotFound, http.Header{}, http.NoBody), nil // so that it is posted again
	case on == nil:
		return response(req, http.StatusServiceUnavailable, http.Header{}, http.NoBody), nil
	case m.strikes(hookLost):
	case m.strikes(hookLate):
		g.post(m.between(time.Second, one(m, []time.Duration{time.Minute, 6 * time.Hour, 7 * 24 * time.Hour})), req.Header, body)
	default:
		g.post(m.between(0, 100*time.Millisecond), req.Header, body)
	}
	if m.strikes(hookTwice) {
		g.post(m.between(0, one(m, []time.Duration{time.Second, time.Hour, 3 * 24 * time.Hour})), req.Header, body)
	}
	if m.strikes(hookForged) {
		g.forge(req.Header, body)
	}
	return response(req, http.StatusOK, http.Header{}, http.NoBody), nil
}

// announce posts, as an attacker with the secret, a notification about a payout within a time from now.
func (g *gateway) announce(id payout.ID, within time.Duration) {
	m := g.m
	notification, err := g.webhooks.Read(g.hookHeader, g.hook)
	if err != nil || notification.Reference == "" {
		return
	}
	header, body := g.hookHeader.Clone(), bytes.ReplaceAll(g.hook, []byte(notification.Reference), []byte(id))
	header.Set(razorpayx.SignatureHeader, razorpayx.Sign(g.secret, body))
	header.Set(razorpayx.EventIDHeader, "evt_forged_"+m.ids.New("", m.clock()))
	g.post(m.between(0, within), header, body)
}

// post delivers a webhook to some instance, which may not be there.
func (g *gateway) post(after time.Duration, header http.Header, body []byte) {
	m := g.m
	m.spawn(after, "webhook", func() {
		if on := m.anyInstance(); on != nil {
			_ = m.call(on, func() error { return g.receive(on, header, body) })
		}
	})
}

// receive takes a webhook as the API does. It knows no address for those of a gateway that is not configured.
func (g *gateway) receive(on *instance, header http.Header, body []byte) error {
	m := g.m
	if !on.knows(g.name) {
		return errNoAddress
	}
	notification, err := g.webhooks.Read(header, body)
	if err != nil {
		return err
	}
	if notification.VerificationID != "" {
		return m.notifyOfVerification(on, notification.VerificationID)
	}
	id, err := payout.ParseID(notification.Reference)
	if err != nil {
		return err
	}
	m.current.event = string(g.name) + "/" + header.Get(razorpayx.EventIDHeader)
	return g.applyReport(on, notification.EventID, id)
}

// applyReport takes a notification about a payout, which is then due, unless it was never sent, is being sent, or its step is taken meanwhile.
func (g *gateway) applyReport(on *instance, event string, id payout.ID) error {
	m := g.m
	w, began, now, again := m.model.payouts[id], m.now, on.now().UnixMicro(), m.heard[m.current.event]
	var before withdrawal
	if w != nil {
		before = *w
	}
	err := on.payouts.Notify(m.ctx, g.name, event, id)
	if err != nil || again || w == nil || m.model.payouts[id] != w {
		return err
	}
	unsent := before.state == payout.Submitting || before.state == payout.Waiting && before.sentAt.IsZero()
	isDue := before.due != 0 && before.due <= max(now, on.now().UnixMicro()) // the clock may be set back meanwhile
	followed := w.notified >= began || w.state != before.state || w.takes != before.takes || w.due != before.due
	m.assert(notificationsFollowed, unsent || isDue || followed, string(id), "there is a notification about payout %s, which is %s, and its next step is due at %s", id, w.state, time.UnixMicro(w.due).UTC())
	return nil
}

// checkFollowed wants a step that has asked the gateway to leave a payout due at once where a notification came since, and no other step follows it.
func (m *market) checkFollowed(on *instance, w *withdrawal, p payout.Payout) {
	isStep := m.current.about == p.ID && m.current.name == stepName(on) && w.taken == on && m.leasesHold()
	if !isStep || m.current.looked == 0 || w.notified <= m.current.looked || w.takenAt >= w.notified || p.State != w.state || p.GatewayID == "" {
		return
	}
	m.assert(notificationsFollowed, p.DueAt.IsZero() || p.DueAt.Sub(on.now()) < time.Second, string(p.ID),
		"a notification about payout %s, which is %s, came after the gateway was asked, and its next step is due at %s", p.ID, p.State, p.DueAt)
}

// forge posts what the gateway never sent: under a wrong signature, or, as an attacker who has the
// secret, that a payout was paid or has failed, whatever became of it.
func (g *gateway) forge(header http.Header, body []byte) {
	m := g.m
	header = header.Clone()
	if m.chance(500) {
		lies := []string{`"status":"processed"`, `"status":"failed"`, `"status":"reversed"`, `"status":"cancelled"`}
		for _, truth := range []string{`"status":"processing"`, `"status":"processed"`, `"status":"reversed"`, `"status":"failed"`, `"status":"queued"`} {
			body = bytes.Replace(body, []byte(truth), []byte(one(m, lies)), 1)
		}
		header.Set(razorpayx.SignatureHeader, razorpayx.Sign(g.secret, body))
		header.Set(razorpayx.EventIDHeader, "evt_forged_"+m.ids.New("", m.clock()))
		g.post(m.between(0, time.Minute), header, body)
		return
	}
	signature := razorpayx.Sign(g.secret, body)
	header.Set(razorpayx.SignatureHeader, one(m, []string{
		razorpayx.Sign("another secret", body), razorpayx.Sign("", body), razorpayx.Sign(g.secret, append(bytes.Clone(body), ' ')),
		"", signature[:1], signature[:len(signature)-1], signature + "0", "null",
	}))
	m.spawn(m.between(0, time.Second), "forger", func() {
		on := m.anyInstance()
		if on == nil {
			return
		}
		err := m.call(on, func() error { return g.receive(on, header, body) })
		f := fault.From(err)
		m.assert(forgeriesRefused, err != nil && (f == nil || f.Kind == fault.Unauthenticated), "", "a forged webhook was answered with %v", err)
	})
}
