package simulate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"bursar/internal/gateway/razorpayx"
	"bursar/internal/payout"
)

// distortAnswer alters what an answer says of a payout: oddly, so that nothing false is said, or with a lie, which
// the service must not fall for.
func (w wire) distortAnswer(req *http.Request, a *answer) {
	m := w.on.m
	if a.status != http.StatusOK || a.cut || !strings.HasPrefix(req.URL.Path, "/v1/payouts") || req.URL.Query().Has("from") {
		return
	}
	isOdd, isLie := m.strikes(odd), m.strikes(lie)
	isReturn := bytes.Contains(a.body.Bytes(), []byte(`"`+razorpayx.StatusReversed+`"`))
	if !isOdd && !isLie && !isReturn && m.gateways.changedMind == nil {
		return
	}
	var list razorpayx.Collection[razorpayx.Payout]
	var one razorpayx.Payout
	if isList := json.Unmarshal(a.body.Bytes(), &list) == nil && list.Entity == "collection"; isList {
		for i := range list.Items {
			m.tellOfBefore(&list.Items[i])
			m.callFailed(&list.Items[i])
			m.gateways.changedMind.tell(&list.Items[i])
		}
		if isOdd {
			for i := range list.Items {
				m.makeOdd(&list.Items[i])
			}
		}
		if len(list.Items) == 1 && isLie {
			w.lieAbout(req, a, &list.Items[0])
		}
		a.rewrite(list)
	} else if json.Unmarshal(a.body.Bytes(), &one) == nil && one.Entity == "payout" {
		m.tellOfBefore(&one)
		m.callFailed(&one)
		m.gateways.changedMind.tell(&one)
		if isOdd {
			m.makeOdd(&one)
		}
		if isLie {
			w.lieAbout(req, a, &one)
		}
		a.rewrite(one)
	}
}

// mixUp tells of another fund account or validation than was asked for, now and then in weather in which the gateway lies.
func (w wire) mixUp(req *http.Request, a *answer) {
	m := w.on.m
	if m.faultProfile[lie] == 0 || m.closing || a.status != http.StatusOK || a.cut || m.begun%3 != 0 {
		return
	}
	var v razorpayx.Validation
	var made, other razorpayx.FundAccount
	switch {
	case req.Method == http.MethodPost && req.URL.Path == "/v1/fund_accounts":
		was := w.g.fundAccount
		w.g.fundAccount = bytes.Clone(a.body.Bytes())
		if json.Unmarshal(was, &other) != nil || json.Unmarshal(a.body.Bytes(), &made) != nil || last4(made) == last4(other) {
			return
		}
		a.rewrite(other)
	case req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, validationsPath) && json.Unmarshal(a.body.Bytes(), &v) == nil:
		if v.ID = "fav_0000another"; m.begun%2 == 0 { // the right one, and of another account, which is there
			v.ID, v.FundAccount.ID, v.Status = strings.TrimPrefix(req.URL.Path, validationsPath), "fa_0000another", razorpayx.ValidationCompleted
			v.Results = &razorpayx.ValidationResults{AccountStatus: razorpayx.AccountActive, RegisteredName: razorpayx.Text(v.FundAccount.BankAccount.Name)}
		}
		a.rewrite(v)
	default:
		return
	}
	m.strike(lie)
}

func last4(a razorpayx.FundAccount) string {
	number := a.BankAccount.AccountNumber
	return number[max(0, len(number)-4):]
}

func (a *answer) rewrite(v any) {
	if body, err := json.Marshal(v); err == nil {
		a.body.Reset()
		a.body.Write(body)
	}
}

// callFailed says of some transfers that were paid and came back that they failed. The amount chooses, so that no dice are thrown. Those that the
// gateway may yet call paid are called reversed.
func (m *market) callFailed(p *razorpayx.Payout) {
	if _, wasQuick := m.gateways.reversedAt[p.ID]; !wasQuick && m.faultProfile[odd] > 0 && p.Status == razorpayx.StatusReversed && p.Amount%2 == 0 {
		p.Status = razorpayx.StatusFailed
	}
}

// tellOfBefore says of a transfer whose money came back right after it was paid that it is paid, since the gateway's records are behind.
func (m *market) tellOfBefore(p *razorpayx.Payout) {
	since, wasQuick := m.gateways.reversedAt[p.ID]
	known := m.model.payouts[payout.ID(p.ReferenceID)]
	isKnownFailed := known != nil && known.state == payout.Failed
	if wasQuick && p.Status == razorpayx.StatusReversed && m.now-since < maxLag && (isKnownFailed || m.chance(500)) {
		m.strike(lag)
		p.Status = razorpayx.StatusProcessed
	}
}

// makeOdd says nothing false of a payout, and not what is expected.
func (m *market) makeOdd(p *razorpayx.Payout) {
	if m.chance(500) {
		p.UTR, p.FundAccountID, p.Currency = "", "", ""
	}
	if p.Status == razorpayx.StatusProcessing && m.chance(700) {
		p.Status = one(m, []string{razorpayx.StatusPending, razorpayx.StatusScheduled, "under_review", "on_hold"})
	}
}

// isNamedAt reports whether the ledger may know what the payout's gateway calls its account: it has the name that one gateway gave.
func (m *market) isNamedAt(w *withdrawal) bool {
	a := m.model.accounts[w.account]
	return a == nil || a.at == "" || a.at == w.at
}

// soonAfterReturn is for how long a gateway may say of a payout that it is paid, after the bank has returned it: that is late, and no lie.
const soonAfterReturn = 30 * time.Minute

// paidAfterAll is the lie about a payout whose amount its seller has again, so the next payout would send it once more.
const paidAfterAll = "it was paid"

// lieAbout says of a payout what can't be true beside the ledger. What was asked for by its id may also be said to be
// another.
func (w wire) lieAbout(req *http.Request, a *answer, p *razorpayx.Payout) {
	m := w.on.m
	id := payout.ID(p.ReferenceID)
	known := m.model.payouts[id]
	if known == nil || known.state == payout.Waiting {
		return
	}
	lie := &gatewayLie{
		was:       known.state,
		overtaken: req.Header.Get(razorpayx.IdempotencyHeader) != "" || known.state == payout.Submitting || m.now-known.changed < 3*maxStall,
	}
	// Where nobody asked between the payment and its return, the payout has failed.
	isBack := slices.ContainsFunc(m.gateways.transfers(id), func(t razorpayx.Payout) bool { return t.Status == razorpayx.StatusReversed })
	unpaid := known.endedUnpaid() && (known.state != payout.Returned && !isBack || m.now-known.changed > soonAfterReturn)
	switch n := m.dice.IntN(3); {
	case n == 0 && req.URL.RawQuery == "" && known.last.GatewayID == p.ID && m.begun%2 == 0:
		p.ID, lie.what = "pout_0000another", "it is another transfer"
	case n == 0 && req.URL.RawQuery == "":
		p.ReferenceID, lie.what = razorpayx.Text(m.ids.New("pyt_", m.clock())), "it is another payout's"
	case n == 1 && unpaid:
		p.Status, lie.what = razorpayx.StatusProcessed, paidAfterAll
	case p.Amount%3 == 0 && m.isNamedAt(known): // the amount chooses among the others, so that runs from before are thrown the same dice
		p.FundAccountID, lie.what = "fa_00000000000000", "it went to another account"
	case p.Amount%3 == 1:
		p.Currency, lie.what = "USD", "it is in another currency"
	case m.begun%8 == 0:
		p.Amount, lie.what = int64(known.amount), "it is of the amount before the fee"
	default:
		p.Amount, lie.what = p.Amount+1-2*int64(m.begun%2), "it is of another amount"
	}
	a.lie, m.gateways.lies[id] = lie, lie
	m.note(string(id), known.seller, "the gateway lies, "+lie.what+":")
}
