package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/gateway/razorpayx"
)

// How long a verification is followed, and how often the gateway is asked. The figures are the model's own.
const (
	pendingFor     = 7 * 24 * time.Hour
	longestPoll    = time.Hour
	verifyTries    = 12
	longestRetry   = 3 * time.Hour
	staysPending   = "pending"
	pendingAnother = 30 * 24 * time.Hour // longer than anybody waits
)

// heardOfValidation notes what the gateway has just said of a validation.
func (w wire) heardOfValidation(path string, a *answer) {
	rest, isValidation := strings.CutPrefix(path, strings.TrimSuffix(validationsPath, "/"))
	if !isValidation {
		return
	}
	m := w.on.m
	var v razorpayx.Validation
	if json.Unmarshal(a.body.Bytes(), &v) != nil || rest != "" && rest != "/"+v.ID {
		return
	}
	switch v.Status {
	case razorpayx.ValidationFailed:
		m.current.failed = v.ID
	case razorpayx.ValidationCreated:
		m.current.pending = v.ID
	}
}

// checkVerifier holds a question about a verification against the gateway that makes it: two gateways may give the same id.
func (w wire) checkVerifier(req *http.Request) {
	id, isQuestion := strings.CutPrefix(req.URL.Path, validationsPath)
	if !isQuestion || id == "" {
		return
	}
	m := w.on.m
	var makers []string
	for _, a := range m.model.accounts {
		if a.folded.VerificationID == id {
			makers = append(makers, string(a.folded.Gateway))
		}
	}
	m.assert(verificationsFollowed, len(makers) == 0 || slices.Contains(makers, string(w.g.name)), id, "verification %s is made by %v, and %s is asked about it", id, makers, w.g.name)
}

// pendingVerdict chooses for how long a validation that stays pending does.
func (g *gateway) pendingVerdict(id string) {
	m := g.m
	g.pendingUntil[id] = m.now + pendingAnother
	if g.holdsNext {
		g.holdsNext = false
		return
	}
	if d := one(m, []time.Duration{10 * time.Minute, 6 * time.Hour, 72 * time.Hour, 0}); d > 0 {
		g.pendingUntil[id] = m.now + d
	}
}

// checkVerification compares what is written of a verification with what the gateway has just said of it. What an admin decides
// needs no word of the gateway.
func (m *market) checkVerification(on *instance, before, a bank.Account) {
	m.assert(verificationsFollowed, a.Status != bank.StatusVerified || a.Reason == "", a.Seller, "bank account %s is verified, and its seller sees: %s", a.ID, a.Reason)
	m.assert(verificationsFollowed, a.Status != bank.StatusRejected || a.Reason != "", a.Seller, "bank account %s is rejected, and does not tell why", a.ID)
	if m.current.name == admin {
		return
	}
	age, pending := on.now().Sub(a.CreatedAt), m.current.pending
	tooLong := age >= pendingFor-2*maxOff
	switch a.Status {
	case bank.StatusVerified, bank.StatusRejected:
	case bank.StatusReview:
		g := m.gateways.named(a.Gateway)
		byHand := g == nil || !g.capabilities().Verification
		unclear := g != nil && (g.verdicts[a.VerificationID] == nearName || g.verdicts[a.VerificationID] == statusMissing)
		m.assert(verificationsFollowed, a.Reason != "" && (byHand || unclear || pending != "" && tooLong || pending == "" && before.Tries >= verifyTries-1), a.Seller,
			"bank account %s is in review (%s) after %s and %d failures, and gateway %s is still at it (%q)", a.ID, a.Reason, age, before.Tries, a.Gateway, pending)
	case bank.StatusUnverified:
		m.checkPursuit(on, before, a, age)
	}
}

// checkPursuit holds when and how a verification that goes on is asked about again against its age and its failures.
func (m *market) checkPursuit(on *instance, before, a bank.Account, age time.Duration) {
	var least, most time.Duration
	if pending := m.current.pending; pending != "" {
		m.assert(verificationsFollowed, a.VerificationID == pending && (before.VerificationID == "" || before.VerificationID == pending), a.Seller,
			"verification %s of bank account %s is pending, and %q is to be asked about, after %q", pending, a.ID, a.VerificationID, before.VerificationID)
		m.assert(verificationsFollowed, a.Tries == before.Tries && a.Reason == "", a.Seller, "verification %s is pending, and bank account %s has failed %d times, %d before (%s)", pending, a.ID, a.Tries, before.Tries, a.Reason)
		m.assert(verificationsFollowed, age < pendingFor+2*maxOff, a.Seller, "bank account %s is pending for %s", a.ID, age)
		poll := func(age time.Duration) time.Duration { return min(max(age/4, 2*time.Second), longestPoll) }
		least, most = poll(age-2*maxOff), poll(age+2*maxOff)
	} else {
		m.assert(verificationsFollowed, a.Tries == before.Tries+1 && a.Tries < verifyTries && a.Reason != "", a.Seller,
			"the gateway could not be asked about bank account %s, which has failed %d times, %d before, and tells %q", a.ID, a.Tries, before.Tries, a.Reason)
		m.assert(verificationsFollowed, m.current.failed != "" || a.Gateway != before.Gateway || a.VerificationID == before.VerificationID, a.Seller,
			"nothing was answered about verification %s of bank account %s, and %q is to be asked about", before.VerificationID, a.ID, a.VerificationID)
		m.assert(verificationsFollowed, m.current.calls > 0, a.Seller, "the verification of bank account %s is said to have failed, and no gateway was asked", a.ID)
		least = min(10*time.Second<<min(2*max(a.Tries-1, 0), 20), longestRetry)
		most = least
	}
	wait := a.DueAt.Sub(on.now())
	m.assert(verificationsFollowed, !m.leasesHold() || wait >= least*4/5-time.Second && wait <= most*6/5+time.Second, a.Seller,
		"bank account %s is %s old and has failed %d times, and the gateway is asked again in %s, not in %s to %s", a.ID, age, a.Tries, wait, least, most)
}

// notifyOfVerification takes a notification about a verification, which is then due, unless its step is taken meanwhile.
func (m *market) notifyOfVerification(on *instance, verification string) error {
	id, a := m.verifiedBy(verification)
	if a == nil {
		return on.bank.Notify(m.ctx, verification)
	}
	before := a.steps
	err := on.bank.Notify(m.ctx, verification)
	if now, same := m.verifiedBy(verification); err != nil || now != id || same != a || a.steps != before || !m.leasesHold() {
		return err
	}
	row, readErr := on.db.BankAccountByID(m.ctx, id)
	m.assert(notificationsFollowed, readErr != nil || !row.DueAt.After(on.now().Add(time.Second)), a.seller,
		"there is a notification about verification %s of bank account %s, whose next step is due at %s", verification, id, row.DueAt)
	return err
}

// verifiedBy finds the account that a verification under way is about.
func (m *market) verifiedBy(verification string) (bank.ID, *account) {
	for id, a := range m.model.accounts {
		if a.folded.VerificationID == verification && a.status == bank.StatusUnverified && m.model.sellers[a.seller].current == id {
			return id, a
		}
	}
	return "", nil
}

// checkPursued wants no account to be still unverified that was registered more than a week ago.
func (m *market) checkPursued() {
	for _, h := range m.model.sellers {
		if a := m.model.accounts[h.current]; a != nil {
			m.assert(verificationsFollowed, a.status != bank.StatusUnverified || m.clock().Sub(a.folded.CreatedAt) < pendingFor+24*time.Hour, a.seller, "bank account %s was registered at %s, and is still unverified", h.current, a.folded.CreatedAt)
		}
	}
}

// checkPending has a seller register one account again and again, and then another one, of which the gateway never says whether it is there.
func (m *market) checkPending() {
	on, s := m.anyInstance(), m.verified()
	if on == nil || s == nil || !m.anyFaults() || !on.gateways[0].capabilities().Verification {
		return
	}
	m.pass(m.now + 24*time.Hour) // registrations of before count less
	number := func() string { return fmt.Sprintf("5%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000)) }
	h, same, pending := m.model.sellers[s.id], number(), number()
	var longPending bank.ID
	m.spawn(0, "seller "+s.name, func() {
		m.registerNumber(s, same)
		first := h.current
		for range registrationsADay + 2 {
			m.pause(time.Minute)
			m.registerNumber(s, same)
			m.assert(answersAreTrue, h.current == first, s.id, "%s registered account %s again, which is %s now", s.id, first, h.current)
		}
		on.gateways[0].holdsNext = true
		m.registerNumber(s, pending)
		longPending = h.current
	})
	m.pass(m.now + pendingFor - time.Hour)
	a := m.model.accounts[longPending]
	if !m.assert(verificationsFollowed, m.violation != nil || a != nil, s.id, "%s registered an account whose verification is pending, and has %s", s.id, h.current) || m.violation != nil {
		return
	}
	m.assert(verificationsFollowed, m.violation != nil || a != nil && a.status == bank.StatusUnverified, s.id, "the gateway does not say whether account %s is there for less than a week: %+v", longPending, a)
	m.pass(m.now + 3*time.Hour)
	m.assert(verificationsFollowed, m.violation != nil || a != nil && a.wasReviewed, s.id, "the gateway did not say for a week whether account %s is there, and it was not in review: %+v", longPending, a)
	m.pass(m.now + 24*time.Hour) // an admin decides on it
	m.assert(verificationsFollowed, m.violation != nil || a.status == bank.StatusVerified || a.status == bank.StatusRejected, s.id, "account %s is %s, and an admin decided on it", longPending, a.status)
}

// checkVerifiers has another gateway become the current one while a verification is pending at the main one, which is then not configured any
// more. As long as it is, the verification goes on there; then it begins again.
func (m *market) checkVerifiers() {
	s := m.verified()
	if s == nil || len(m.gateways.all) == 1 {
		return
	}
	main, another := m.gateways.all[0], m.gateways.all[1]
	if !main.capabilities().Verification || !another.capabilities().Verification {
		return
	}
	configure := func(lasts time.Duration, gateways ...*gateway) {
		m.configure(gateways)
		m.pass(m.now + lasts)
	}
	configure(24*time.Hour, main, another) // registrations of before count less
	main.holdsNext = true
	m.spawn(0, "seller "+s.name, func() { m.registerNumber(s, fmt.Sprintf("6%09d%04d", m.dice.IntN(1e9), 1000+m.dice.IntN(9000))) })
	m.pass(m.now + 10*time.Minute)
	id := m.model.sellers[s.id].current
	a := m.model.accounts[id]
	first := a.folded.VerificationID
	m.assert(verificationsFollowed, m.violation != nil || a.status == bank.StatusUnverified && a.at == main.name && first != "", s.id, "the verification of account %s should be pending at %s: %+v", id, main.name, a)
	before := a.steps
	configure(3*time.Hour, another, main)
	m.assert(verificationsFollowed, m.violation != nil || a.status == bank.StatusUnverified && a.at == main.name && a.folded.VerificationID == first && a.steps-before < 100, s.id,
		"the verification of account %s was pending at %s, which is configured still, and %d steps were taken since: %+v", id, main.name, a.steps-before, a)
	configure(3*time.Hour, another)
	m.assert(verificationsFollowed, m.violation != nil || a.status != bank.StatusUnverified && a.at == another.name, s.id,
		"the verification of account %s was pending at %s, which is not configured any more: %+v", id, main.name, a)
}
