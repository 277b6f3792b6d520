package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	port "bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// temper is how a seller behaves: each figure is how often in a thousand times they do so.
type temper struct {
	name string
	// keyed asks under an idempotency key, and repeats tells that the same request is sent again later.
	keyed, repeats int
	// hasty asks twice at once, and greedy for all there is.
	hasty, greedy int
	// fickle cancels what was asked for.
	fickle int
	// moves changes the bank account.
	moves int
	// refunds is how many of the sales are taken back, in whole or in part.
	refunds int
}

var tempers = []temper{
	{name: "steady", keyed: 900, repeats: 100, greedy: 300, fickle: 30, moves: 5, refunds: 30},
	{name: "careless", keyed: 0, hasty: 300, greedy: 500, fickle: 100, moves: 20, refunds: 80},
	{name: "anxious", keyed: 1000, repeats: 700, hasty: 300, greedy: 300, fickle: 300, moves: 20, refunds: 50},
	{name: "greedy", keyed: 500, repeats: 200, hasty: 500, greedy: 950, fickle: 50, moves: 10, refunds: 150},
	{name: "restless", keyed: 700, repeats: 200, greedy: 400, fickle: 500, moves: 150, refunds: 60},
}

type seller struct {
	temper
	id, name string
	// session is the one that the seller signed in to last, and proof the last fresh proof of who they are.
	session, proof string
	// password is what the seller signs in with, or "" where a provider answers for them.
	password string
	sold     int
	asked    int
	adjusted int
}

// ask is a request for a payout, with all its repeats.
type ask struct {
	seller string
	amount money.Amount
	notes  string
	key    string
	// session is the one in which it is asked for, or "", and proof comes with it.
	session, proof string
	// keyActor and issuerActor name who asks for the seller: a service key, or an identity provider by its token.
	keyActor, issuerActor string
	// account is the one that the seller was shown, or "", and had what was available when it was refused.
	account bank.ID
	had     money.Amount
	// made is the payout that it made, and refused why it was refused; at is when.
	made    payout.ID
	refused string
	at      time.Duration
	// keyLost says that the ledger with the key was lost.
	keyLost bool
}

var names = []string{"Asha Rao", "Vikram Singh", "Meera Nair", "Farhan Khan", "Rohit Das", "Lakshmi Iyer", "Kabir Gupta"}

func (m *market) newSeller(n int) *seller {
	return &seller{temper: tempers[n%len(tempers)], id: m.ids.New("usr_", m.start), name: names[n%len(names)]}
}

func (m *market) sellerOf(id string) *seller {
	return m.sellers[slices.IndexFunc(m.sellers, func(s *seller) bool { return s.id == id })]
}

// settleIn has a seller register an account, make a first sale, and then live.
func (m *market) settleIn(s *seller) {
	m.spawn(m.between(0, time.Hour), "seller "+s.name, func() { m.register(s) })
	m.spawn(m.between(0, time.Hour), "marketplace", func() { m.sell(s, m.between(0, time.Hour)) })
	m.often(m.askEvery, "seller "+s.name, func() { m.withdraw(s) })
	m.often(m.askEvery*4/5, "marketplace", func() { m.sell(s, m.between(0, min(72*time.Hour, m.askEvery))) })
	m.often(m.askEvery*3, "seller "+s.name, func() { m.readSomething(s) })
}

// often repeats an action while there is trade.
func (m *market) often(mean time.Duration, name string, act func()) {
	m.after(m.around(mean), func() {
		if m.closing {
			return
		}
		m.begin(name, act)
		m.often(mean, name, act)
	})
}

// persist makes a call until it is answered, by whatever instance is there, and returns the answer. It gives up
// after many tries, with errNowhere.
func (m *market) persist(gracePeriod time.Duration, ask func(on *instance) error) error {
	for range 60 {
		on := m.anyInstance()
		if on != nil {
			err := m.call(on, func() error { return ask(on) })
			if !errors.Is(err, errLost) && !isUnavailable(err) {
				return err
			}
		}
		m.pause(m.between(time.Second, gracePeriod))
	}
	return errNowhere
}

func isUnavailable(err error) bool {
	f := fault.From(err)
	return f != nil && f.Kind == fault.Unavailable
}

// withdraw asks for a payout, if there is anything to ask for.
func (m *market) withdraw(s *seller) {
	if m.chance(s.moves) {
		m.register(s)
	}
	available := m.model.row(s.id).Available
	if available < minimum && !m.chance(100) {
		return
	}
	amount := m.howMuch(s, available)
	if m.chance(s.hasty) {
		m.spawn(m.between(0, 30*time.Millisecond), "seller "+s.name, func() { m.request(s, m.howMuch(s, available)) })
	}
	m.request(s, amount)
}

// howMuch is what a seller asks for, in whole rupees most of the time.
func (m *market) howMuch(s *seller, available money.Amount) money.Amount {
	most := max(available, minimum)
	switch {
	case m.chance(s.greedy):
		return most
	case m.chance(50):
		return most + 1
	case m.chance(50):
		return minimum - 1 - money.Amount(m.dice.Int64N(int64(minimum)))
	default:
		return max(minimum, money.Amount(m.dice.Int64N(int64(most)+1)))
	}
}

func (m *market) request(s *seller, amount money.Amount) {
	a := &ask{seller: s.id, amount: amount, notes: s.temper.name}
	if m.chance(s.keyed) {
		a.key = m.newKey(s)
	}
	if m.chance(300) { // from a form that shows the account
		a.account = m.model.sellers[s.id].current
		if m.chance(200) { // and was opened a while ago
			a.account = m.model.sellers[s.id].former
		}
		m.pause(m.between(0, time.Minute))
	}
	if a.amount > proveAbove && m.chance(300) {
		m.prove(s, a)
		waits := m.between(0, 3*time.Minute)
		if m.begun%8 == 0 { // too long
			waits += auth.ProofLife
		}
		if m.pause(waits); a.proof != "" && m.chance(100) {
			m.moveAfterProof(s)
		}
	}
	m.send(a)
	if m.chance(150) {
		m.sendForSeller(s, a)
	}
	if m.chance(200) {
		m.spawn(m.between(0, one(m, []time.Duration{time.Second, 4 * time.Minute, 72 * time.Hour})), "thief", func() { m.steal(s) })
	}
	if a.made != "" && m.chance(s.moves) { // another account, before the payout is sent
		m.pause(m.between(0, cancelWindow))
		m.register(s)
	}
	for a.key != "" && m.chance(s.repeats) && !m.closing {
		m.pause(m.between(0, one(m, []time.Duration{time.Minute, 6 * time.Hour, 72 * time.Hour})))
		if m.closing {
			return
		}
		m.send(a)
		m.sendOther(a)
	}
	if a.made != "" && m.chance(s.fickle) {
		m.pause(m.between(0, one(m, []time.Duration{cancelWindow, cancelWindow + time.Second, 2 * time.Hour})))
		m.callOff(s, a.made)
	}
}

// sendForSeller has a server of the marketplace ask for a payout under a key that the seller has used for the same, or a seller with a token of an identity
// provider. Neither has a proof to give.
func (m *market) sendForSeller(s *seller, a *ask) {
	other := &ask{seller: s.id, amount: a.amount, notes: a.notes, key: a.key}
	if m.chance(700) {
		other.keyActor = ledger.ActorKey + "key_simulated"
	} else {
		other.key, other.issuerActor = "", ledger.ActorIssuer+"https://login.simulated"
	}
	if available := m.model.row(s.id).Available; available < other.amount && m.chance(700) {
		other.amount = max(minimum, available)
	}
	m.send(other)
	if other.key != "" && m.chance(300) {
		m.pause(m.between(0, time.Hour))
		m.send(other)
	}
}

// actor is who asks, as the journal names them.
func (a *ask) actor() string { return cmp.Or(a.keyActor, a.issuerActor, ledger.ActorUser+a.seller) }

// newKey is an idempotency key, which other sellers may use too.
func (m *market) newKey(s *seller) string {
	if s.asked++; m.chance(500) {
		return fmt.Sprintf("withdrawal-%d", s.asked)
	}
	return m.ids.New("key_", m.clock())
}

// send sends a request, and again until it is answered if it has a key.
func (m *market) send(a *ask) {
	m.current.ask = a
	defer func() { m.current.ask = nil }()
	if a.key != "" && a.keyActor == "" && !m.closing && !slices.Contains(m.keysUsed[a.seller], a.key) {
		m.keysUsed[a.seller] = append(m.keysUsed[a.seller], a.key)
	}
	request := payout.Request{
		Seller: a.seller, Amount: a.amount, Notes: a.notes, Key: a.key, Account: a.account, Session: a.session, Proof: a.proof,
		KeyActor: a.keyActor, IssuerActor: a.issuerActor,
	}
	if a.key == "" {
		if on := m.anyInstance(); on != nil {
			_ = m.call(on, func() error { return m.ask(on, a, request) })
		}
		return
	}
	_ = m.persist(5*time.Minute, func(on *instance) error { return m.ask(on, a, request) })
}

// expired reports whether the service may soon forget the request's key.
func (m *market) expired(a *ask) bool {
	return (a.made != "" || a.refused != "") && m.now-a.at > keysKept-time.Hour
}

// sendOther asks for another amount, or with other notes, under a key that was used, which must be refused.
func (m *market) sendOther(a *ask) {
	on := m.anyInstance()
	if on == nil || m.closing {
		return
	}
	_ = m.call(on, func() error {
		m.forget(a)
		if (a.made == "" && a.refused == "") || m.expired(a) {
			return nil
		}
		if a.amount+1 < minimum {
			return nil
		}
		other := payout.Request{Seller: a.seller, Amount: a.amount + 1, Notes: a.notes, Key: a.key, Session: a.session, Proof: a.proof}
		if m.tally.asked%2 == 0 {
			other.Amount, other.Notes = a.amount, a.notes+", please"
		}
		p, _, err := on.payouts.Request(m.ctx, other)
		m.assert(oneAnswerPerKey, errors.Is(err, payout.ErrKeyReused) || isUnavailable(err), a.seller,
			"another request under the key %s was answered with %s, %v", a.key, p.ID, err)
		return err
	})
}

// ask makes the request of an instance, and holds the answer against the ledger.
func (m *market) ask(on *instance, a *ask, r payout.Request) error {
	if m.forget(a); a.key != "" && (a.keyLost || m.expired(a)) {
		return nil // it would be a new request
	}
	made, refused := a.made, a.refused
	p, replayed, err := on.payouts.Request(m.ctx, r)
	m.checkReplayed(a, made, refused, replayed, err)
	f := fault.From(err)
	switch {
	case err == nil:
		w := m.model.payouts[p.ID]
		m.assert(oneAnswerPerKey, p.ID == a.made, a.seller, "payout %s was the answer, the request made %q (replayed: %t)", p.ID, a.made, replayed)
		m.assert(answersAreTrue, w != nil && w.seller == a.seller && w.amount == a.amount && p.Amount == a.amount, a.seller,
			"payout %s of %d was the answer to a request for %d, and the ledger has %+v", p.ID, p.Amount, a.amount, w)
	case f == nil:
		m.broken(answersAreKnown, a.seller, "a request for a payout was answered with "+err.Error())
	case f.Kind == fault.Invalid && f.Details["amount"] != "":
		m.assert(refusalsAreTrue, a.amount < minimum, a.seller, "a request for %d was answered with %v, the least is %d", a.amount, f.Details, minimum)
	case errors.Is(err, payout.ErrSellerProof):
		m.assert(refusalsAreTrue, a.keyActor+a.issuerActor != "" && a.amount > proveAbove, a.seller, "%s asked for %d, and a proof of the seller was asked for", a.actor(), a.amount)
	case errors.Is(err, auth.ErrStepUp):
		m.checkUnproven(a)
	case errors.Is(err, auth.ErrToken):
		m.checkEnded(on, a)
	case errors.Is(err, payout.ErrOnHold) && f.Details["until"] == "":
		m.assert(refusalsAreTrue, m.wereStopped(a.seller) || m.mayWait(a.seller), a.seller, "%s got the answer %s, and payouts are not stopped", a.seller, f.Message)
		m.assert(oneAnswerPerKey, a.made == "" && a.refused == "", a.seller, "a request that made %q and was refused with %q is refused with %q now", a.made, a.refused, f.Message)
	case errors.Is(err, payout.ErrOnHold):
		until := m.model.sellers[a.seller].holdUntil
		m.assert(refusalsAreTrue, !m.wereStoppedBefore(a.seller), a.seller, "payouts of %s are stopped, and the answer names the hold alone: %s", a.seller, f.Message)
		m.assert(refusalsAreTrue, until > on.now().Add(-time.Minute).UnixMicro(), a.seller, "%s got the answer %s, and payouts are on hold until %s", a.seller, f.Message, time.UnixMicro(until).UTC())
		m.assert(oneAnswerPerKey, a.made == "" && a.refused == "", a.seller, "a request that made %q and was refused with %q is refused with %q now", a.made, a.refused, f.Message)
		m.tally.onHold++
		if m.chance(100) {
			m.spawn(m.between(0, time.Hour), admin, func() { m.liftHold(a.seller) })
		}
	case errors.Is(err, ledger.ErrInsufficient), errors.Is(err, payout.ErrBankUnverified), errors.Is(err, payout.ErrAccountChanged):
		m.assert(refusalsAreTrue, !errors.Is(err, ledger.ErrInsufficient) || a.refused != "" || strings.Contains(f.Message, rupees().FormatFixed(a.had)), a.seller,
			"%s had %d and got the answer: %s", a.seller, a.had, f.Message)
		m.assert(oneAnswerPerKey, a.made == "" && (a.refused == "" || a.refused == f.Message), a.seller,
			"a request that made %q and was refused with %q is now refused with %q", a.made, a.refused, f.Message)
		if a.key != "" && a.refused == "" {
			a.refused, a.at = f.Message, m.now
		}
	case f.Kind != fault.Unavailable && !errors.Is(err, payout.ErrKeyReused) || errors.Is(err, payout.ErrKeyReused):
		m.broken(answersAreKnown, a.seller, "a request for a payout was answered with "+err.Error())
	}
	return err
}

// checkReplayed wants the answer to a request to be called a repeat if the same request made a payout or was refused before it, under its key.
func (m *market) checkReplayed(a *ask, made payout.ID, refused string, replayed bool, err error) {
	isRepeat := a.key != "" && (made != "" || refused != "")
	m.assert(oneAnswerPerKey, isUnavailable(err) || fault.From(err) == nil && err != nil || replayed == isRepeat || err != nil && refused == "", a.seller,
		"a request under the key %q made %q and was refused with %q before; its answer %v is called a repeat: %t", a.key, made, refused, err, replayed)
}

// checkForgotten has a seller use a key again for another request, longer after the first than keys are kept.
func (m *market) checkForgotten() {
	s := m.payable()
	if s == nil || !m.anyFaults() {
		return
	}
	for _, key := range m.keysUsed[s.id] {
		a := &ask{seller: s.id, amount: minimum, notes: "the key is free again", key: key}
		m.spawn(0, "seller "+s.name, func() { m.send(a) })
		m.pass(m.now + time.Hour)
		m.assert(oneAnswerPerKey, m.violation != nil || a.made != "", s.id, "%s used the key %s more than a week ago, and it makes no payout now", s.id, key)
		return
	}
}

// callOff has a payout cancelled by its seller, or by an admin.
func (m *market) callOff(s *seller, id payout.ID) {
	if m.begun%3 == 0 {
		m.spawn(0, admin, func() { m.cancelAsAdmin(id) })
		return
	}
	m.cancel(s, id)
}

// cancelQueued has sellers stop what was queued for want of money, at the moment at which there is some.
func (m *market) cancelQueued() {
	for _, id := range slices.Sorted(maps.Keys(m.model.payouts)) {
		w := m.model.payouts[id]
		if w.state != payout.Submitted {
			continue
		}
		if list := m.gateways.transfers(id); len(list) == 1 && list[0].Status == razorpayx.StatusQueued {
			latest := w.last.Progress // a status that nobody knows may have been told since
			m.assert(queuedCancellable, latest == port.Queued || latest == port.Unrecognised, string(id), "payout %s is queued at the gateway, and %q by the ledger", id, latest)
			s := m.sellerOf(w.seller)
			soon := m.between(0, time.Minute)
			m.spawn(soon, "seller "+s.name, func() { m.callOff(s, id) })
			if m.chance(400) { // and another caller at the same moment
				m.spawn(soon+m.between(0, 50*time.Millisecond), "seller "+s.name, func() { m.callOff(s, id) })
			}
		}
	}
}

// cancel cancels a payout. That it is too late, or unclear, is an answer.
func (m *market) cancel(s *seller, id payout.ID) {
	key := ""
	if m.chance(500) {
		key = m.newKey(s)
	}
	answered, succeeded, restores := false, false, m.tally.restores
	caller := payout.Caller{User: s.id, Admin: m.chance(100)} // an admin may sell, and decides nothing about their own payouts
	_ = m.persist(time.Minute, func(on *instance) error {
		m.current.about = id
		defer func() { m.current.about = "" }()
		p, replayed, err := on.payouts.Cancel(m.ctx, caller, id, key)
		w := m.model.payouts[id]
		answered, succeeded = err == nil || errors.Is(err, payout.ErrNotCancellable), err == nil
		switch {
		case err == nil:
			m.assert(answersAreTrue, w != nil && w.state == payout.Cancelled && p.ID == id, string(id),
				"payout %s was said to be cancelled (replayed: %t), and the ledger has %+v", id, replayed, w)
			m.checkCancelled(id, w, replayed, key)
		case errors.Is(err, payout.ErrNotFound):
			m.assert(answersAreTrue, w == nil, string(id), "payout %s was said not to be there", id)
		case errors.Is(err, payout.ErrCancelUnclear):
			return nil // the seller looks again some other time
		default:
			m.assert(answersAreKnown, fault.From(err) != nil, string(id), "a cancellation was answered with %v", err)
		}
		return err
	})
	if key != "" && answered && restores == m.tally.restores {
		m.cancelOther(payout.Caller{User: s.id}, id, key)
		if m.chance(300) {
			m.cancelAgain(s, id, key, succeeded)
		}
	}
}

// checkCancelled wants a payout to be cancelled by one caller: others hear that it is too late. Under a key the answer may be of a call whose
// answer was lost.
func (m *market) checkCancelled(id payout.ID, w *withdrawal, replayed bool, key string) {
	if w == nil || replayed {
		return
	}
	m.assert(answersAreTrue, !w.calledOff || key != "", string(id), "two callers were told that they cancelled payout %s", id)
	w.calledOff = true
}

// cancelAgain sends a cancellation again, which gets the answer that it got before.
func (m *market) cancelAgain(s *seller, id payout.ID, key string, succeeded bool) {
	restores := m.tally.restores
	m.pause(m.between(0, one(m, []time.Duration{time.Minute, 6 * time.Hour, 72 * time.Hour})))
	on := m.anyInstance()
	if on == nil || m.closing || restores != m.tally.restores {
		return
	}
	_ = m.call(on, func() error {
		p, replayed, err := on.payouts.Cancel(m.ctx, payout.Caller{User: s.id}, id, key)
		same := succeeded && err == nil && p.ID == id && replayed || !succeeded && errors.Is(err, payout.ErrNotCancellable)
		m.assert(oneAnswerPerKey, same || isUnavailable(err) || restores != m.tally.restores, string(id), "payout %s was cancelled under the key %s: %t; again, it is answered with %s, %v (replayed: %t)", id, key, succeeded, p.State, err, replayed)
		return err
	})
}

// cancelOther cancels another payout under a key that was used, which must be refused.
func (m *market) cancelOther(c payout.Caller, id payout.ID, key string) {
	var other payout.ID
	for p, w := range m.model.payouts {
		if (c.Admin || w.seller == c.User) && p != id && p > other {
			other = p
		}
	}
	on, restores := m.anyInstance(), m.tally.restores
	if on == nil || other == "" {
		return
	}
	_ = m.call(on, func() error {
		p, _, err := on.payouts.Cancel(m.ctx, c, other, key)
		m.assert(oneAnswerPerKey, errors.Is(err, payout.ErrKeyReused) || isUnavailable(err) || restores != m.tally.restores, c.User,
			"the key %s, under which payout %s was cancelled, was used for %s and answered with %s, %v", key, id, other, p.ID, err)
		return err
	})
}

// register registers another account than the present one, or the present one again.
func (m *market) register(s *seller) {
	digits := fmt.Sprintf("5%09d%s", m.dice.IntN(1e9), m.story())
	if now := m.model.accounts[m.model.sellers[s.id].current]; now != nil && now.number != "" && m.chance(200) {
		if digits = now.number; m.chance(500) { // another one that ends alike
			digits = fmt.Sprintf("5%09d%s", m.dice.IntN(1e9), now.last4)
		}
	}
	holder, ifsc := s.name, branchOf(digits)
	if now := m.model.accounts[m.model.sellers[s.id].current]; now != nil && now.number != "" && m.chance(100) { // the present one, written otherwise
		digits = now.number
		if m.chance(500) {
			holder = strings.ToUpper(holder)
		} else {
			ifsc = ifsc[:len(ifsc)-1] + "4"
		}
	}
	m.registerAccount(s, digits, holder, ifsc)
	if m.chance(s.moves / 10) { // who tries one after another
		for range 2*registrationsADay + 5 {
			m.registerNumber(s, fmt.Sprintf("5%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000)))
		}
	}
}

func (m *market) registerNumber(s *seller, digits string) {
	m.registerAccount(s, digits, s.name, branchOf(digits))
}

func (m *market) registerAccount(s *seller, digits, holder string, ifsc bank.IFSC) {
	m.numbers[digits], m.current.account = true, digits
	defer func() { m.current.account = "" }()
	number, err := bank.ParseNumber(digits)
	if err != nil {
		m.broken(answersAreKnown, s.id, err.Error())
		return
	}
	r := bank.Registration{Seller: s.id, Holder: holder, Number: number, IFSC: ifsc}
	_ = m.persist(5*time.Minute, func(on *instance) error {
		a, err := on.bank.Register(m.ctx, r)
		m.assert(answersAreKnown, err == nil || fault.From(err) != nil, s.id, "a registration was answered with %v", err)
		if errors.Is(err, bank.ErrTooMany) {
			lately := m.model.sellers[s.id].registered
			m.assert(fewRegistrations, len(lately) >= registrationsADay-1, s.id, "%s registered accounts at %v, and one more at %s is too many", s.id, lately, m.now)
		}
		if err == nil {
			m.assert(answersAreTrue, a.Status != bank.StatusRejected, s.id, "%s registered account %s, which was rejected before", s.id, a.ID)
			known := m.model.accounts[a.ID]
			m.assert(answersAreTrue, a.Holder == holder && a.IFSC == ifsc, s.id, "%s registered an account of %s at %s, and was answered with one of %s at %s", s.id, holder, ifsc, a.Holder, a.IFSC)
			m.assert(answersAreTrue, known != nil && known.seller == s.id && (known.number == "" || known.number == digits), s.id,
				"%s registered an account and was answered with %s, which is another one", s.id, a.ID)
		}
		return err
	})
}

// stories are the last digits of accounts that the gateway treats in a way of their own.
var stories = []struct {
	digits string
	of     trouble
}{
	{noSuchAccount, verify},
	{"0002", bankFails},
	{"0003", bankReturns},
	{staysUnderWay, bankFails},
	{"0005", lostAnswer},
	{"0006", hookLate},
	{"0007", hookTwice},
	{"0008", hookLost},
	{"0009", slow},
}

func (m *market) story() string {
	if s := one(m, stories); m.o.Faults[s.of] && m.chance(250) {
		m.strike(s.of)
		return s.digits
	}
	return fmt.Sprintf("%04d", 1000+m.dice.IntN(9000))
}
