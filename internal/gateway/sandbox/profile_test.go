package sandbox_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
)

func openLimited(t *testing.T, now func() time.Time) *fixture {
	t.Helper()
	return open(t, func(o *sandbox.Options) { o.Profile, o.Now = sandbox.Limited, now })
}

func TestLimitedProfile_KeysEnd(t *testing.T) {
	for name, test := range map[string]struct {
		profile sandbox.Profile
		after   time.Duration
		want    int // payouts
	}{
		"within 24 hours":       {sandbox.Limited, sandbox.LimitedKeyLifetime - time.Minute, 1},
		"after 24 hours":        {sandbox.Limited, sandbox.LimitedKeyLifetime, 2},
		"the full profile's":    {sandbox.Full, 1000 * time.Hour, 1},
		"the default profile's": {"", 1000 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Int64
			w := open(t, func(o *sandbox.Options) {
				began := time.Now()
				o.Profile, o.Now = test.profile, func() time.Time { return began.Add(time.Duration(later.Load())) }
			})
			reference, body := w.order("4321", 60050)
			first := w.submit(reference, body)
			later.Store(int64(test.after))
			second, third := w.submit(reference, body), w.submit(reference, body)
			if made := second.GatewayID != first.GatewayID; made != (test.want == 2) {
				t.Errorf("the repeat made another payout: %t", made)
			}
			if third.GatewayID != second.GatewayID {
				t.Error("the key's second use is not honoured")
			}
			if moves := w.moves(reference); len(moves) != 1 || moves[0].Count != test.want {
				t.Errorf("%d payouts wanted, moved %+v", test.want, moves)
			}
		})
	}
}

func TestLimitedProfile_Refuses(t *testing.T) {
	w := openLimited(t, time.Now)
	begun := w.pay("0004", 60050)
	account := w.beneficiary("4321").Beneficiary
	for call, body := range map[[2]string]string{
		{"GET", "/v1/payouts?account_number=" + ownAccount}:      "",
		{"GET", "/v1/transactions?account_number=" + ownAccount}: "",
		{"POST", "/v1/payouts/" + begun.GatewayID + "/cancel"}:   "",
		{"POST", "/v1/fund_accounts/validations"}: `{"account_number":"` + ownAccount + `","fund_account":{"id":"` + account +
			`"},"amount":100,"currency":"INR","notes":[]}`,
	} {
		var refused razorpayx.ErrorBody
		if status := w.call(call[0], call[1], body, nil, &refused); status != http.StatusBadRequest || refused.Error.Reason != "feature_not_supported" {
			t.Errorf("%s %s: %d, %+v", call[0], call[1], status, refused.Error)
		}
	}
}

func TestLimitedProfile_FindsByReferenceWithoutNotes(t *testing.T) {
	w := openLimited(t, time.Now)
	reference, body := w.order("4321", 60050)
	begun := w.submit(reference, body)
	w.reaches(begun.GatewayID, gateway.Paid)
	if got, err := w.client.Find(t.Context(), reference); err != nil || got.GatewayID != begun.GatewayID {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.client.Find(t.Context(), "pyt_unknown"); !errors.Is(err, gateway.ErrUnknownTransfer) {
		t.Errorf("an unknown reference: %v", err)
	}
	if notes := w.fetchWire(begun.GatewayID).Notes; len(notes) > 0 {
		t.Errorf("it kept the notes %v", notes)
	}
}
