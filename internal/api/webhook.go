package api

import (
	"context"
	"net/http"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/payout"
)

// webhook takes messages of a gateway: it checks the signature over the raw body and makes the next poll of the payout due now.
// A worker polls later, so the answer is fast. It is given after the commit, so that the gateway repeats what was not stored.
func (a *api) webhook(read gateway.ReadWebhook) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r, maxBody)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		notification, err := read(r.Header, body)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if err := a.applyNotification(r.Context(), notification); err != nil {
			a.fail(w, r, err)
			return
		}
		a.write(w, r, http.StatusOK, success[none]{Success: true, Message: "Thank you."})
	}
}

// applyNotification passes a notification on. One about what is not ours is ignored.
func (a *api) applyNotification(ctx context.Context, n gateway.Notification) error {
	var err error
	if id, notOurs := payout.ParseID(n.Reference); notOurs == nil { // others pay from the same account
		err = a.o.Payouts.Notify(ctx, n.Gateway, n.EventID, id)
	} else if n.VerificationID != "" {
		err = a.o.Bank.Notify(ctx, n.VerificationID)
	}
	if f := fault.From(err); f != nil && f.Kind == fault.NotFound {
		return nil
	}
	return err
}
