package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bursar/internal/bank"
	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
	"bursar/internal/payout"
)

// Credentials of the sandbox, which moves no money.
const (
	keyID         = "rzp_test_simulated"
	keySecret     = "simulated"
	ourAccount    = "2323230041626905"
	webhookSecret = "simulated-webhooks"
)

// gateway is a sandbox, its life in virtual time, and its records, which judge what was paid.
type gateway struct {
	m       *market
	name    port.Name
	profile sandbox.Profile
	// noLookup says that it finds no transfer by our reference.
	noLookup bool
	box      *sandbox.Sandbox
	// webhooks reads what it posts, signed with secret.
	webhooks *razorpayx.Webhooks
	secret   string
	// next is when its next step is on the agenda; zero is not at all.
	next time.Time
	// verdicts are what it is made to say of validations, by their ids.
	verdicts map[string]string
	// pendingUntil is until when validations stay pending of which it says so, and holdsNext that the next one does.
	pendingUntil map[string]time.Duration
	holdsNext    bool
	// madeAt is when it made its transfers, by its own ids.
	madeAt map[string]time.Duration
	// lastOrder is when an instance last began to send it an order, by that one's clock, also where the ledger has lost that.
	lastOrder time.Time
	// hook is the last webhook about a payout that it sent, and fundAccount the last one that it told of.
	hookHeader        http.Header
	hook, fundAccount []byte
}

// order is what was sent under one idempotency key.
type order struct {
	at   *gateway
	body string
	// first is when it was sent for the first time and not turned away at the door, if it was: then it may have been taken.
	first       time.Duration
	mayBeStored bool
	// by is who is sending it at the moment, and since when.
	by    *instance
	since time.Duration
	// known says that the gateway has made it, and knows the key; refused that it has said no to it; turnedAway that
	// it did not even look at what was sent last.
	known, refused, turnedAway bool
	// denied says that it has turned away, or refused, what it had made.
	denied bool
	// setNextPoll is the number of who was last asked to wait, and notBefore until when.
	setNextPoll uint64
	notBefore   time.Duration
}

// gatewayLie is what the gateway said of a payout that can't be true.
type gatewayLie struct {
	what string
	was  payout.State
	// overtaken says that who heard it may have asked before the payout came to its state, or while it was sent for the
	// first time: then the gateway is asked again before it is counted as a discrepancy.
	overtaken bool
	// to is the number of who has heard it, until they have acted on it.
	to uint64
}

// plenty is more than all sellers earn.
const plenty = int64(1_000_000_000_000_00)

// openGateway opens a gateway that keeps its records in a file.
func (m *market) openGateway(name port.Name, profile sandbox.Profile, file string) (err error) {
	g := &gateway{m: m, name: name, profile: profile, noLookup: len(m.gateways.all) == 0 && m.o.hasNoLookup(), secret: webhookSecret + string(name), verdicts: map[string]string{}, pendingUntil: map[string]time.Duration{}, madeAt: map[string]time.Duration{}}
	if g.webhooks, err = razorpayx.NewWebhooks(g.secret); err != nil {
		return err
	}
	// The ids at a gateway with lists and a statement are its own, because an admin sees nothing else of a transfer. Else two
	// gateways may give the same ones.
	apart := time.Duration(0)
	if len(m.gateways.all) > 0 && profile == sandbox.Full && m.gateways.main().profile == sandbox.Full {
		apart = time.Hour
	}
	g.box, err = sandbox.New(sandbox.Options{
		Path: file, KeyID: keyID, KeySecret: keySecret, AccountNumber: ourAccount,
		WebhookURL: "http://bursar.simulated/webhooks/" + string(name), WebhookSecret: g.secret, SettleAfter: usualSettling,
		Currency: rupees(), Now: func() time.Time { return m.clock().Add(apart) }, Logger: slog.New(slog.DiscardHandler), Post: postman{g}, Profile: profile,
	})
	apart = 0 // it begins to count at the time at which it is opened
	if err == nil {
		m.gateways.all = append(m.gateways.all, g)
	}
	return err
}

const usualSettling = 5 * time.Second

// wake puts the gateway's next step on the agenda.
func (g *gateway) wake() {
	due, err := g.box.NextDue()
	if err != nil {
		g.m.broken(datastoreReadable, "", "the gateway's records: "+err.Error())
	}
	if due.IsZero() || (!g.next.IsZero() && !due.Before(g.next)) {
		return
	}
	g.next = due
	g.m.at(due.Sub(g.m.start), func() {
		if !g.next.Equal(due) {
			return // an earlier one came since
		}
		g.next = time.Time{}
		if err := g.box.TakeSteps(g.m.ctx); err != nil {
			g.m.broken(datastoreReadable, "", "the gateway's step: "+err.Error())
		}
		g.wake()
	})
}

// answer is what the sandbox answers.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
	cut    bool
	lie    *gatewayLie
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// do has the sandbox carry a request out. The request is the sandbox's to keep.
func (g *gateway) do(req *http.Request) *answer {
	a := &answer{status: http.StatusOK, header: http.Header{}}
	func() {
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case http.ErrAbortHandler:
				a.cut = true
			default:
				panic(cause)
			}
		}()
		g.box.ServeHTTP(a, req)
	}()
	if req.Method != http.MethodGet {
		g.wake()
	}
	return a
}

// ask asks the sandbox behind everybody's back.
func (g *gateway) ask(method, path string, in, out any) error {
	return g.askUnder("", method, path, in, out)
}

// askUnder asks under an idempotency key, if it is not "".
func (g *gateway) askUnder(key, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(g.m.ctx, method, "http://localhost"+path, bytes.NewReader(body)) //nolint:gosec // it goes no further than this process
	if err != nil {
		return err
	}
	req.SetBasicAuth(keyID, keySecret)
	if key != "" {
		req.Header.Set(razorpayx.IdempotencyHeader, key)
	}
	a := g.do(req)
	if a.status != http.StatusOK || a.cut {
		return fmt.Errorf("the sandbox answered %s %s with %d: %s", method, path, a.status, a.body.String())
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.body.Bytes(), out)
}

// transfers are what the gateway has under the id of a payout that it has made.
func (g *gateway) transfers(id payout.ID) []razorpayx.Payout {
	var list razorpayx.Collection[razorpayx.Payout]
	if err := g.ask(http.MethodGet, "/v1/payouts?count=100&account_number="+ourAccount+"&reference_id="+url.QueryEscape(string(id)), nil, &list); err != nil {
		g.m.broken(datastoreReadable, string(id), err.Error())
	}
	g.m.assert(paidOnce, len(list.Items) == 1, string(id), "the gateway has %d transfers of payout %s", len(list.Items), id)
	return list.Items
}

// arrive is the arrival of a request at the gateway, in time or late.
func (g *gateway) arrive(req *http.Request, body []byte) *answer {
	key := req.Header.Get(razorpayx.IdempotencyHeader)
	a := g.do(req)
	if key == "" {
		return a
	}
	o, id := g.m.gateways.orders[key], payout.ID(key)
	if a.status != http.StatusOK {
		g.m.assert(ordersSound, a.cut || a.status >= http.StatusInternalServerError, key, "the gateway does not take the order\n  %s: %d, %s", body, a.status, a.body.String())
		return a
	}
	if o.known {
		return a
	}
	o.known = true
	m := g.m
	first := m.gateways.made[id]
	m.assert(paidOnce, first == nil, key, "%s makes a transfer of payout %s, of which %s has one", g.name, id, nameOfGateway(first))
	m.gateways.made[id] = g
	for _, t := range g.transfers(id) {
		g.madeAt[t.ID] = m.now
	}
	m.note(string(id), "", "the gateway makes the transfer of")
	w := m.model.payouts[id]
	m.bankDecides(id)
	if w == nil { // the ledger was put back while it was on its way
		return a
	}
	sent := w.state == payout.Submitting || w.state == payout.Unknown || w.state == payout.ManualReview
	m.assert(onlyOrdersPaid, sent, key, "the gateway made a transfer of payout %s, which is %s", id, w.state)
	m.assert(paidExactly, strings.Contains(string(body), `"amount":`+strconv.FormatInt(int64(w.net()), 10)+","), key,
		"payout %s of %d net was ordered as %s", id, w.net(), body)
	return a
}

// sending holds an order against what was sent before it, and notes that it is on its way.
func (g *gateway) sending(on *instance, key string, body []byte) *order {
	m := g.m
	m.note(key, "", "order sent:")
	m.tally.sent++
	for _, one := range on.gateways {
		m.assert(askedFirst, on.asked[one.name] || !one.capabilities().List, key, "%s sends payout %s before gateway %s has listed what it knows", on.name, key, one.name)
	}
	var in razorpayx.PayoutRequest
	err := json.Unmarshal(body, &in)
	m.assert(oneKeyPerPayout, err == nil && in.ReferenceID == key, key, "payout %s is ordered under the key %s", in.ReferenceID, key)
	o := m.gateways.orders[key]
	if o == nil {
		o = &order{at: g, body: string(body)}
		m.gateways.orders[key] = o
	}
	m.assert(ownGateway, o.at == g, key, "payout %s was sent to %s, and is sent to %s now", key, o.at.name, g.name)
	m.assert(ordersToLetter, o.body == string(body), key, "the key %s was sent with\n  %s, and now with\n  %s", key, o.body, body)
	lives := g.capabilities().KeyLifetime // of which a part is left for clocks that differ and requests that are late
	m.assert(keysAreAlive, !o.mayBeStored || m.now-o.first < lives-(lives-g.runsOut())/2, key, "payout %s was first ordered %s ago, and is sent again", key, m.now-o.first)
	w := m.model.payouts[payout.ID(key)]
	m.checkBeneficiary(g, w, key, in.FundAccountID)
	m.assert(nobodyOverpaid, w == nil || !w.suspect, key, "payout %s is sent, and its seller has had less than nothing since a payout was imported that it may be the same money as", key)
	m.keepSecret(string(body))
	m.assert(claimedFirst, m.current.claimed == key, key, "%s sends payout %s, and has not put down in the ledger that it does", on.name, key)
	m.current.claimed, m.current.sent = "", key
	// A notification that came when the other had taken the payout, and had not begun to send it, has it taken once more.
	alone := o.by == nil || (w != nil && w.notified >= o.since-5*time.Second) || o.by.dead || m.now-o.since >= lease || !m.leasesHold()
	m.assert(sentAlone, alone, key, "%s sends payout %s, which %s began to send %s ago", on.name, key, nameOf(o.by), m.now-o.since)
	early := w != nil && on.now().Before(w.sendAt) && m.leasesHold()
	m.assert(windowIsKept, !early, key, "%s sends payout %s before it can't be cancelled any more", on.name, key)
	o.by, o.since, o.turnedAway = on, m.now, false
	return o
}

// turnAway notes that what was sent under a key was not looked at.
func (g *gateways) turnAway(key string) {
	if o := g.orders[key]; o != nil {
		o.turnedAway = true
	}
}

// confirms reports whether the gateway has said that the account is there, under its holder's name.
func (g *gateway) confirms(a bank.Account) bool {
	verdict, said := g.verdicts[a.VerificationID]
	return said && verdict == "" && a.Last4 != noSuchAccount
}

// rejects reports whether the gateway has said that the account is not there, or is not its holder's.
func (g *gateway) rejects(a bank.Account) bool {
	verdict := g.verdicts[a.VerificationID]
	return verdict == accountInvalid || verdict == otherName || verdict == otherByScore || verdict == nearName || a.Last4 == noSuchAccount
}

// numberOf is the account number behind what the gateway calls an account.
func (g *gateway) numberOf(beneficiary string) (string, error) {
	var a razorpayx.FundAccount
	err := g.ask(http.MethodGet, "/v1/fund_accounts/"+url.PathEscape(beneficiary), nil, &a)
	return a.BankAccount.AccountNumber, err
}

// checkBeneficiary holds where an order goes against the payout's account. One gateway's name of it is in the ledger; of any other the
// gateway's own records tell.
func (m *market) checkBeneficiary(g *gateway, w *withdrawal, key, beneficiary string) {
	if w == nil {
		return
	}
	a := m.model.accounts[w.account]
	switch {
	case a == nil || a.beneficiary == "":
	case a.at == g.name:
		m.assert(onlyRightAccount, a.beneficiary == beneficiary, key, "payout %s is to go to %s, and its account is %s at the gateway", key, beneficiary, a.beneficiary)
	case a.number != "":
		number, err := g.numberOf(beneficiary)
		m.assert(onlyRightAccount, err == nil && number == a.number, key, "payout %s is to go to %s, which is not its account at %s (error %v)", key, beneficiary, g.name, err)
	}
}

// noSuchAccount are the last digits of an account that the sandbox does not confirm.
const noSuchAccount = "0001"

// profile is the sandbox's.
func (o Options) profile() sandbox.Profile {
	if o.Limited {
		return sandbox.Limited
	}
	return sandbox.Full
}

// hasNoLookup reports whether the main gateway finds no transfer by our reference: in every other seed, if it is a limited one.
func (o Options) hasNoLookup() bool { return o.Limited && o.Seed%2 == 0 }

// capabilities are what the gateway offers.
func (g *gateway) capabilities() port.Capabilities {
	c := g.profile.Capabilities(rupees())
	c.Lookup = c.Lookup && !g.noLookup
	return c
}

// runsOut is how long an order is sent again after it was first. The margin is the model's own.
func (g *gateway) runsOut() time.Duration {
	lives := g.capabilities().KeyLifetime
	return lives - min(24*time.Hour, lives/4)
}

func nameOf(on *instance) string {
	if on == nil {
		return "nobody"
	}
	return on.name
}

// bankDecides chooses what becomes of a new transfer, beyond its account's story.
func (m *market) bankDecides(id payout.ID) {
	switch {
	case m.strikes(bankReturns):
		paid := m.gateways.settleAfter
		last := lastReturn(m.clock().Add(paid)).Sub(m.clock())
		first := paid + time.Minute
		switch n := m.dice.IntN(1000); {
		case n < 700: // most come soon
			last /= 3
		case n < 850: // and some when it is about to be over
			first = last - time.Hour
		}
		m.after(m.between(first, last), func() {
			m.moveByHand(id, razorpayx.StatusProcessed, razorpayx.StatusReversed, "beneficiary_bank_rejected")
		})
	case m.strikes(bankFails):
		when := m.between(0, m.gateways.settleAfter)
		how := one(m, []string{razorpayx.StatusReversed, razorpayx.StatusFailed})
		m.after(when, func() {
			if m.o.Faults[lag] && m.chance(700) {
				m.payAndReverse(id)
				return
			}
			m.moveByHand(id, razorpayx.StatusProcessing, how, "bank_account_closed")
		})
	}
	if m.o.Faults[bankFails] { // some are stuck, until they are decided on by the fifth day
		longest := 5 * 24 * time.Hour
		if m.isLong() && !m.chance(200) { // all the while they are asked about, which takes most of a long run's time
			longest /= 10
		}
		m.after(m.between(time.Hour, longest), func() { m.bankDecidesAtLast(id) })
	}
}

// lastReturn is shortly before the end of the third working day after a payment. Banks rest on Sundays and on every
// second and fourth Saturday; holidays would give them longer.
func lastReturn(paid time.Time) time.Time {
	day := paid.In(indianTime)
	for left := 3; left > 0; {
		day = day.AddDate(0, 0, 1)
		if week := (day.Day() + 6) / 7; day.Weekday() != time.Sunday && (day.Weekday() != time.Saturday || week%2 == 1) {
			left--
		}
	}
	return time.Date(day.Year(), day.Month(), day.Day(), 23, 50, 0, 0, indianTime)
}

// payAndReverse has a bank take a transfer and send the money back within seconds, so that many never hear that it was paid. The gateway is asked
// right after that, and once more.
func (m *market) payAndReverse(id payout.ID) {
	m.moveByHand(id, razorpayx.StatusProcessing, razorpayx.StatusProcessed, "")
	m.after(m.between(time.Second, 5*time.Second), func() {
		g := m.gateways.made[id]
		for _, t := range m.gateways.transfers(id) {
			if t.Status == razorpayx.StatusProcessed {
				m.gateways.reversedAt[t.ID] = m.now
			}
		}
		m.moveByHand(id, razorpayx.StatusProcessed, razorpayx.StatusReversed, "beneficiary_bank_rejected")
		g.announce(id, 2*time.Second)
		m.after(m.between(10*time.Second, maxLag-10*time.Second), func() { g.announce(id, time.Second) })
	})
}

func (m *market) bankDecidesAtLast(id payout.ID) {
	for _, t := range m.gateways.transfers(id) {
		if t.Status == razorpayx.StatusQueued {
			m.after(time.Hour, func() { m.bankDecidesAtLast(id) })
			return
		}
	}
	m.moveByHand(id, razorpayx.StatusProcessing, one(m, []string{razorpayx.StatusProcessed, razorpayx.StatusFailed}), "gateway_timeout")
}

// moveByHand moves a transfer, if it is in the status from.
func (m *market) moveByHand(id payout.ID, from, to, reason string) {
	for _, t := range m.gateways.transfers(id) {
		if t.Status != from {
			return
		}
		m.note(string(id), "", "the bank moves it to "+to+":")
		if err := m.gateways.made[id].ask(http.MethodPut, "/control/payouts/"+t.ID, sandbox.HandMove{Status: to, Reason: reason}, nil); err != nil {
			m.broken(datastoreReadable, string(id), err.Error())
		}
	}
}

var (
	errLost    = errors.New("simulate: the instance died before it answered")
	errNowhere = errors.New("simulate: no instance is there")
	// errNoAddress means that an instance is not configured with the gateway whose webhook it gets.
	errNoAddress = errors.New("simulate: no such address")
)
