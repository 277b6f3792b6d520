package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bursar/internal/api"
	"bursar/internal/auth"
	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/payout"
)

// deliver posts a gateway's message.
func (h *fixture) deliver(body, signature, eventID string) answer {
	return h.do(call{method: "POST", path: "/api/gateway/webhooks/razorpayx", body: body, header: header(
		"X-Razorpay-Signature", signature, "X-Razorpay-Event-Id", eventID)})
}

func payoutEvent(reference string) string {
	return fmt.Sprintf(`{"entity":"event","account_id":"acc_1","event":"payout.processed","contains":["payout"],`+
		`"payload":{"payout":{"entity":{"id":"pout_00000000000001","entity":"payout","reference_id":%q,"status":"processed"}}},"created_at":1}`, reference)
}

func TestWebhooks(t *testing.T) {
	h := openFixture(t)
	event := payoutEvent("pyt_000000000000000000000000")
	sign := func(body string) string { return razorpayx.Sign(webhookSecret, []byte(body)) }
	const thanks = `{"success":true,"message":"Thank you."}`

	tests := map[string]struct{ body, signature string }{
		"about a payout that is not ours": {event, sign(event)},
		"about nothing of ours":           {`{"event":"payout.downtime.started","payload":{}}`, sign(`{"event":"payout.downtime.started","payload":{}}`)},
		"about a strange reference":       {payoutEvent("'; --"), sign(payoutEvent("'; --"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h.deliver(test.body, test.signature, "evt_"+name).want(t, 200).wantBody(t, thanks)
			h.deliver(test.body, test.signature, "evt_"+name).want(t, 200).wantBody(t, thanks)
		})
	}
	refused := map[string]string{
		"no signature":     "",
		"another secret's": razorpayx.Sign("another secret", []byte(event)),
		"another body's":   sign(event + " "),
		"cut":              sign(event)[:63],
		"in capitals":      strings.ToUpper(sign(event)),
	}
	for name, signature := range refused {
		t.Run(name, func(t *testing.T) { h.deliver(event, signature, "evt_x").wantFailure(t, 401, "invalid_signature") })
	}
	t.Run("signed nonsense", func(t *testing.T) { h.deliver(`[]`, sign(`[]`), "evt_y").wantFailure(t, 400, "invalid_event") })
	t.Run("too large", func(t *testing.T) {
		large := `{"event":"` + strings.Repeat("x", 64<<10) + `"}`
		h.deliver(large, sign(large), "evt_z").wantFailure(t, 413, "body_too_large")
	})
	t.Run("of a gateway that is not configured", func(t *testing.T) {
		for _, name := range []string{"cashfree", "RAZORPAYX", "sandbox"} {
			h.do(call{method: "POST", path: "/api/gateway/webhooks/" + name, body: event, header: header(
				"X-Razorpay-Signature", sign(event), "X-Razorpay-Event-Id", "evt_w")}).wantFailure(t, 404, "not_found")
		}
	})
	t.Run("without the gateway's headers", func(t *testing.T) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/api/gateway/webhooks/razorpayx", strings.NewReader(event))
		must(t, err)
		h.send(r, event).wantFailure(t, 401, "invalid_signature")
	})
}

// A message makes the next look due at once; it is not believed.
func TestWebhook_ReschedulesTheNextPoll(t *testing.T) {
	h := openFixture(t)
	seller := h.signUp("Asha", auth.Seller)
	h.earn(seller, "s1", "1000")
	h.withBank(seller, "0004") // stays processing
	id := h.request(seller, `{"amount":1000}`).want(t, 201).text(t, "data.payoutId")
	step := func() int {
		due, err := h.payouts.LeaseDue(t.Context(), 10)
		must(t, err)
		for _, d := range due {
			must(t, h.payouts.Step(t.Context(), d))
		}
		return len(due)
	}
	h.clock.advance(31 * time.Second)
	for range 5 { // until the gateway has it and the next look is some time off
		if step() == 0 {
			break
		}
	}
	if step() != 0 {
		t.Fatal("the payout is due all the time")
	}
	event := payoutEvent(id)
	h.deliver(event, razorpayx.Sign(webhookSecret, []byte(event)), "evt_1").want(t, 200)
	if step() != 1 {
		t.Error("the message made nothing due")
	}
	p, err := h.payouts.Payout(t.Context(), payout.Caller{Admin: true}, payout.ID(id))
	must(t, err)
	if p.Status() != payout.StatusProcessing {
		t.Errorf("the message was believed: %s", p.Status())
	}
}

// deaf is a payout service that can't keep hints.
type deaf struct{ api.Payouts }

func (deaf) Notify(context.Context, gateway.Name, string, payout.ID) error {
	return errors.New("disk full")
}

func TestWebhook_NotStored_Answers500(t *testing.T) {
	h := openFixture(t, func(o *api.Options) { o.Payouts = deaf{o.Payouts} })
	event := payoutEvent("pyt_000000000000000000000000")
	h.deliver(event, razorpayx.Sign(webhookSecret, []byte(event)), "evt_1").wantFailure(t, 500, "internal_error")
}
