// Package gatewaytest is the one suite that every adapter of a gateway must pass against its own sandbox, over HTTP.
//
// It asks the adapter's capabilities and tests what is offered; what is not must fail with [gateway.ErrNotOffered].
package gatewaytest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/id"
	"bursar/internal/money"
)

// Story is what a sandbox does with a transfer or a verification, by the account that it is about.
type Story int

// Stories.
const (
	// Pays pays, and verifies as Holder's.
	Pays Story = iota
	// Fails never pays.
	Fails
	// Returns pays, and then the bank returns the money.
	Returns
	// Stays is under way for good.
	Stays
	// Invalid is an account that the bank does not know.
	Invalid
)

// Trouble is what the next call that submits a transfer meets.
type Trouble int

// Troubles.
const (
	// AnswerLost makes the transfer, and its answer never comes.
	AnswerLost Trouble = iota
	// ServerError answers with a 5xx and makes nothing.
	ServerError
	// Garbage makes the transfer and answers with what is not readable.
	Garbage
	// Throttled turns the call away and asks to wait.
	Throttled
)

// Sandbox is an adapter's sandbox with a client of it.
type Sandbox interface {
	Gateway() gateway.Gateway
	// Unreachable is a client of an address where nothing listens.
	Unreachable() gateway.Gateway
	// Account is a bank account of Asha Rao's with a story, different each time.
	Account(s Story) gateway.Destination
	// Cause has the next submission meet trouble.
	Cause(t Trouble)
	// Later lets time pass for the gateway and for the client, and happen what is due.
	Later(d time.Duration)
	// Fund says whether our account at the gateway can pay.
	Fund(covered bool)
	// Paid is how often money left our account under a reference, and Back how often it came back.
	Paid(reference string) (paid, back int)
}

// suite is one test's sandbox.
type suite struct {
	*testing.T
	box  Sandbox
	g    gateway.Gateway
	can  gateway.Capabilities
	from time.Time
}

// Run runs the suite. open opens a sandbox of its own for each test, and tells its time.
func Run(t *testing.T, open func(t *testing.T) (Sandbox, time.Time)) {
	t.Helper()
	for name, test := range map[string]func(*suite){
		"Capabilities/AreWhole":                  (*suite).capabilities,
		"Capabilities/WhatIsNotOfferedIsNotSent": (*suite).notOffered,
		"Beneficiaries/TheSameAgain":             (*suite).beneficiaries,
		"Beneficiaries/Refused":                  (*suite).refusedBeneficiary,
		"Submit/OncePerKey":                      (*suite).oncePerKey,
		"Submit/KeyHonouredForItsLifetime":       (*suite).keyLifetime,
		"Submit/Refused":                         (*suite).refused,
		"Submit/AnswerLost":                      (*suite).answerLost,
		"Submit/ServerError":                     (*suite).serverError,
		"Submit/Unreadable":                      (*suite).garbage,
		"Submit/Throttled":                       (*suite).throttled,
		"Submit/Unreachable":                     (*suite).unreachable,
		"Fetch/Endings":                          (*suite).endings,
		"Fetch/Unknown":                          (*suite).unknown,
		"Find/ByReference":                       (*suite).byReference,
		"Transfers/ListedWhole":                  (*suite).listed,
		"Transfers/Reversed":                     (*suite).reversed,
		"Cancel/Queued":                          (*suite).cancelled,
		"Cancel/TooLate":                         (*suite).tooLate,
		"Verification/Outcomes":                  (*suite).verifications,
		"Statement/Lines":                        (*suite).statement,
	} {
		t.Run(name, func(t *testing.T) {
			box, now := open(t)
			g := box.Gateway()
			test(&suite{T: t, box: box, g: g, can: g.Capabilities(), from: now})
		})
	}
}

func (s *suite) needs(offered bool) {
	s.Helper()
	if !offered {
		s.Skip("this gateway does not offer it")
	}
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

const amount = money.Amount(600_50)

// order prepares a transfer to a new account with a story.
func (s *suite) order(story Story) (o gateway.Order, body string) {
	s.Helper()
	account := id.New("bka_", s.from)
	to, err := s.g.EnsureBeneficiary(s.Context(), account, s.box.Account(story))
	s.must(err)
	o = gateway.Order{
		Reference: id.New(gateway.ReferencePrefix, s.from), Beneficiary: to, Amount: amount, Currency: s.can.Currency, Rail: s.rail(),
		Seller: id.New("usr_", s.from), Account: account, Gross: amount + 550,
	}
	body, err = s.g.Prepare(o)
	s.must(err)
	return o, body
}

// rail is one that carries the amount.
func (s *suite) rail() gateway.RailName {
	s.Helper()
	i := slices.IndexFunc(s.can.Rails, func(r gateway.Rail) bool { return r.Carries(amount) })
	if i < 0 {
		s.Fatal("no rail carries the amount")
	}
	return s.can.Rails[i].Name
}

func (s *suite) submit(o gateway.Order, body string) gateway.Report {
	s.Helper()
	answer := s.g.Submit(s.Context(), o.Reference, body)
	if answer.Outcome != gateway.Accepted || answer.Report.GatewayID == "" {
		s.Fatalf("the order was not accepted: %+v", answer)
	}
	return answer.Report
}

func (s *suite) pay(story Story) (gateway.Order, gateway.Report) {
	s.Helper()
	o, body := s.order(story)
	return o, s.submit(o, body)
}

// fetch asks for a transfer that there is.
func (s *suite) fetch(gatewayID string) gateway.Report {
	s.Helper()
	r, err := s.g.Fetch(s.Context(), gatewayID)
	s.must(err)
	return r
}

// reaches waits until a transfer's progress is one of those wanted.
func (s *suite) reaches(gatewayID string, want ...gateway.Progress) gateway.Report {
	s.Helper()
	var r gateway.Report
	for range 20 {
		if r = s.fetch(gatewayID); slices.Contains(want, r.Progress) {
			return r
		}
		s.box.Later(time.Minute)
	}
	s.Fatalf("the transfer is %s (%s), want %v", r.Progress, r.RawStatus, want)
	return r
}

func (s *suite) wantPaid(reference string, want int) {
	s.Helper()
	if paid, _ := s.box.Paid(reference); paid != want {
		s.Errorf("money left %d times under %s, want %d", paid, reference, want)
	}
}

// isOf compares a report with the order that it is of. What the gateway leaves out is no difference.
func (s *suite) isOf(o gateway.Order, r gateway.Report) {
	s.Helper()
	if r.Reference != o.Reference || r.Amount != o.Amount || r.GatewayID == "" || r.RawStatus == "" ||
		r.Beneficiary != "" && r.Beneficiary != o.Beneficiary || r.Currency != "" && r.Currency != o.Currency {
		s.Errorf("the report is %+v, of the order %+v", r, o)
	}
}

func (s *suite) capabilities() {
	if s.g.Name() == "" || s.can.Currency == "" || len(s.can.Rails) == 0 {
		s.Errorf("%q can't pay: %+v", s.g.Name(), s.can)
	}
	if s.can.KeyLifetime < 0 || s.can.KeyLifetime > 0 && s.can.ResendFor() >= s.can.KeyLifetime {
		s.Errorf("keys live for %s, and orders are sent again for %s", s.can.KeyLifetime, s.can.ResendFor())
	}
	if s.can.Metadata && !s.can.List {
		s.Error("the list has metadata, though the gateway offers none")
	}
	last := s.can.Rails[len(s.can.Rails)-1]
	if last.Max != 0 {
		s.Errorf("no rail carries more than %d", last.Max)
	}
	for _, r := range s.can.Rails {
		if r.Name == "" || r.Takes < 0 || r.Opens < 0 || r.Closes > 24*60 || !r.AlwaysOpen() && r.Opens >= r.Closes {
			s.Errorf("rail %+v", r)
		}
	}
}

func (s *suite) notOffered() {
	ctx := s.Context()
	v := gateway.VerificationRequest{Account: "bka_1", Beneficiary: "x"}
	for name, call := range map[string]struct {
		offered bool
		do      func() error
	}{
		"find":         {s.can.Lookup, func() error { _, err := s.g.Find(ctx, id.New(gateway.ReferencePrefix, s.from)); return err }},
		"cancel":       {s.can.Cancel, func() error { _, err := s.g.Cancel(ctx, "x"); return err }},
		"transfers":    {s.can.List, func() error { _, err := s.g.Transfers(ctx, s.from, ""); return err }},
		"reversed":     {s.can.List, func() error { _, err := s.g.Reversed(ctx, s.from, ""); return err }},
		"start":        {s.can.Verification, func() error { _, err := s.g.StartVerification(ctx, v); return err }},
		"verification": {s.can.Verification, func() error { _, err := s.g.Verification(ctx, v, "x"); return err }},
		"lines":        {s.can.Statement, func() error { _, err := s.g.Lines(ctx, s.from, s.from, ""); return err }},
	} {
		if err := call.do(); errors.Is(err, gateway.ErrNotOffered) == call.offered {
			s.Errorf("%s: offered %t, and it ends with %v", name, call.offered, err)
		}
	}
}

func (s *suite) beneficiaries() {
	account, d := id.New("bka_", s.from), s.box.Account(Pays)
	first, err := s.g.EnsureBeneficiary(s.Context(), account, d)
	s.must(err)
	again, err := s.g.EnsureBeneficiary(s.Context(), account, d)
	if err != nil || first == "" || again != first {
		s.Errorf("the same account is %q and then %q, %v", first, again, err)
	}
	other, err := s.g.EnsureBeneficiary(s.Context(), id.New("bka_", s.from), s.box.Account(Pays))
	if err != nil || other == first {
		s.Errorf("another account is %q too, %v", other, err)
	}
	reported, err := s.g.DescribeBeneficiary(s.Context(), first)
	if err != nil || reported.AccountNumber != d.AccountNumber || reported.IFSC != d.IFSC || reported.Holder == "" {
		s.Errorf("it is reported as %v of %q at %q, %v", reported, reported.Holder, reported.IFSC, err)
	}
	unknown := first[:len(first)-1] + map[bool]string{true: "1", false: "0"}[strings.HasSuffix(first, "0")]
	for range 3 { // far from any that there is
		unknown = strings.Replace(unknown, "0", "Z", 1)
	}
	if _, err := s.g.DescribeBeneficiary(s.Context(), unknown); !errors.Is(err, gateway.ErrUnknownBeneficiary) {
		s.Errorf("of an unknown beneficiary it is said: %v", err)
	}
}

// refusedBeneficiary wants a fault that a seller may see, without the account's number.
func (s *suite) refusedBeneficiary() {
	d := s.box.Account(Pays)
	d.IFSC = "NONSENSE"
	_, err := s.g.EnsureBeneficiary(s.Context(), id.New("bka_", s.from), d)
	if f := fault.From(err); f == nil || f.Kind != fault.Refused || strings.Contains(err.Error(), d.AccountNumber) {
		s.Errorf("a bank that there is not: %v", err)
	}
}

func (s *suite) oncePerKey() {
	o, body := s.order(Pays)
	if again, err := s.g.Prepare(o); err != nil || again != body {
		s.Errorf("the same order is written as %s and as %s, %v", body, again, err)
	}
	first := s.submit(o, body)
	s.isOf(o, first)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			answer := s.g.Submit(s.Context(), o.Reference, body)
			isFirst := answer.Outcome == gateway.Accepted && answer.Report.GatewayID == first.GatewayID
			if !isFirst && answer.Outcome != gateway.Unclear { // it may still be at work on the first
				s.Errorf("a repeat is answered with %+v", answer)
			}
		})
	}
	all.Wait()
	s.box.Later(time.Hour)
	s.submit(o, body)
	s.wantPaid(o.Reference, 1)
}

// keyLifetime repeats an order for as long as the domain may.
func (s *suite) keyLifetime() {
	s.needs(s.can.KeyLifetime > 0)
	o, body := s.order(Pays)
	first := s.submit(o, body)
	s.box.Later(s.can.ResendFor())
	if again := s.submit(o, body); again.GatewayID != first.GatewayID {
		s.Errorf("the key gave %s first and %s after %s", first.GatewayID, again.GatewayID, s.can.ResendFor())
	}
	s.wantPaid(o.Reference, 1)
}

func (s *suite) refused() {
	o, body := s.order(Pays)
	body = strings.Replace(body, o.Beneficiary, o.Beneficiary[:len(o.Beneficiary)-3]+"ZZZ", 1)
	answer := s.g.Submit(s.Context(), o.Reference, body)
	if answer.Outcome != gateway.Refused || answer.ReasonCode == "" || answer.Reason == "" {
		s.Errorf("an order to nobody is answered with %+v", answer)
	}
	s.wantNone(o)
}

// wantNone wants no transfer under the order's reference.
func (s *suite) wantNone(o gateway.Order) {
	s.Helper()
	s.wantPaid(o.Reference, 0)
	if !s.can.Lookup {
		return
	}
	if r, err := s.g.Find(s.Context(), o.Reference); !errors.Is(err, gateway.ErrUnknownTransfer) {
		s.Errorf("under its reference there is %+v, %v", r, err)
	}
}

// unclear meets trouble after which the transfer was made, and has it resolved in each way that there is.
func (s *suite) unclear(t Trouble) {
	o, body := s.order(Pays)
	s.box.Cause(t)
	if answer := s.g.Submit(s.Context(), o.Reference, body); answer.Outcome != gateway.Unclear || answer.ReasonCode == "" || answer.Reason == "" {
		s.Fatalf("it is answered with %+v", answer)
	}
	if s.can.Lookup {
		found, err := s.g.Find(s.Context(), o.Reference)
		s.must(err)
		s.isOf(o, found)
	}
	if s.can.KeyLifetime > 0 {
		s.isOf(o, s.submit(o, body))
	}
	s.box.Later(time.Hour)
	s.wantPaid(o.Reference, 1)
}

func (s *suite) answerLost() { s.unclear(AnswerLost) }
func (s *suite) garbage()    { s.unclear(Garbage) }

func (s *suite) serverError() {
	o, body := s.order(Pays)
	s.box.Cause(ServerError)
	if answer := s.g.Submit(s.Context(), o.Reference, body); answer.Outcome != gateway.Unclear || answer.ReasonCode == "" {
		s.Errorf("it is answered with %+v", answer)
	}
	s.wantNone(o)
	s.isOf(o, s.submit(o, body))
}

func (s *suite) throttled() {
	o, body := s.order(Pays)
	s.box.Cause(Throttled)
	answer := s.g.Submit(s.Context(), o.Reference, body)
	if answer.Outcome != gateway.NotTaken || answer.NotSent || answer.RetryAfter <= 0 || answer.ReasonCode == "" {
		s.Errorf("it is answered with %+v", answer)
	}
	s.wantNone(o)
	s.submit(o, body)
}

func (s *suite) unreachable() {
	o, body := s.order(Pays)
	nowhere := s.box.Unreachable()
	if answer := nowhere.Submit(s.Context(), o.Reference, body); answer.Outcome != gateway.NotTaken || !answer.NotSent {
		s.Errorf("it is answered with %+v", answer)
	}
	if _, err := nowhere.Fetch(s.Context(), "x"); err == nil || errors.Is(err, gateway.ErrUnknownTransfer) {
		s.Errorf("a gateway that is not there says %v", err)
	}
	ended, end := context.WithCancel(s.Context())
	end()
	if answer := s.g.Submit(ended, o.Reference, body); answer.Outcome != gateway.NotTaken || !answer.NotSent {
		s.Errorf("a call that ended before it began is answered with %+v", answer)
	}
	s.wantNone(o)
}

func (s *suite) endings() {
	ends := map[Story][]gateway.Progress{
		Pays: {gateway.Paid}, Fails: {gateway.Reversed, gateway.Failed}, Returns: {gateway.Reversed}, Stays: {gateway.InProgress},
	}
	for story, want := range ends {
		o, begun := s.pay(story)
		got := s.reaches(begun.GatewayID, want...)
		s.isOf(o, got)
		paid, back := s.box.Paid(o.Reference)
		switch story {
		case Pays:
			if got.UTR == "" || paid != 1 || back != 0 {
				s.Errorf("paid: %+v; %d went out, %d came back", got, paid, back)
			}
		case Fails, Returns:
			if got.Reason == "" || paid != back {
				s.Errorf("not paid: %+v; %d went out, %d came back", got, paid, back)
			}
		}
		if story == Returns {
			continue
		}
		s.box.Later(24 * time.Hour)
		if later := s.fetch(begun.GatewayID); later.Progress != got.Progress {
			s.Errorf("story %d was %s, and is %s a day later", story, got.Progress, later.Progress)
		}
	}
}

func (s *suite) unknown() {
	_, begun := s.pay(Pays)
	unknown := begun.GatewayID[:len(begun.GatewayID)-3] + "ZZZ"
	if r, err := s.g.Fetch(s.Context(), unknown); !errors.Is(err, gateway.ErrUnknownTransfer) {
		s.Errorf("of %s it is said: %+v, %v", unknown, r, err)
	}
}

func (s *suite) byReference() {
	s.needs(s.can.Lookup)
	o, begun := s.pay(Pays)
	s.pay(Pays)
	found, err := s.g.Find(s.Context(), o.Reference)
	if err != nil || found.GatewayID != begun.GatewayID {
		s.Errorf("found %+v, %v; want %s", found, err, begun.GatewayID)
	}
	s.isOf(o, found)
	if r, err := s.g.Find(s.Context(), id.New(gateway.ReferencePrefix, s.from)); !errors.Is(err, gateway.ErrUnknownTransfer) {
		s.Errorf("of an unknown reference it is said: %+v, %v", r, err)
	}
}

// list reads a list to its end.
func (s *suite) list(read func(after gateway.Cursor) (gateway.TransferPage, error)) map[string]gateway.Transfer {
	s.Helper()
	all, after := map[string]gateway.Transfer{}, gateway.Cursor("")
	for range 100 {
		page, err := read(after)
		s.must(err)
		for _, t := range page.Transfers {
			if _, twice := all[t.GatewayID]; twice {
				s.Errorf("%s is listed twice", t.GatewayID)
			}
			all[t.GatewayID] = t
		}
		if page.Next == "" {
			return all
		}
		if page.Next == after {
			break
		}
		after = page.Next
	}
	s.Fatal("the list does not come to an end")
	return nil
}

// listed makes more than any page may hold, and wants all of them with their orders.
func (s *suite) listed() {
	s.needs(s.can.List)
	const many = 230
	orders := make([]gateway.Order, many)
	var all sync.WaitGroup
	places := make(chan int, many)
	for i := range many {
		places <- i
	}
	close(places)
	for range 8 {
		all.Go(func() {
			for i := range places {
				orders[i], _ = s.pay(Pays)
			}
		})
	}
	all.Wait()
	got := s.list(func(after gateway.Cursor) (gateway.TransferPage, error) {
		return s.g.Transfers(s.Context(), s.from.Add(-time.Second), after)
	})
	byReference := map[string]gateway.Transfer{}
	for _, t := range got {
		byReference[t.Reference] = t
	}
	for _, o := range orders {
		t, isListed := byReference[o.Reference]
		if !isListed {
			s.Errorf("%s is not listed", o.Reference)
			continue
		}
		s.isOf(o, t.Report)
		if t.MadeAt.IsZero() || t.Order.Beneficiary != o.Beneficiary || t.Order.Rail != o.Rail {
			s.Errorf("%s is listed as %+v", o.Reference, t)
		}
		if s.can.Metadata && (t.Order.Seller != o.Seller || t.Order.Account != o.Account || t.Order.Gross != o.Gross) {
			s.Errorf("%s is listed with the order %+v, and was %+v", o.Reference, t.Order, o)
		}
	}
	later := s.list(func(after gateway.Cursor) (gateway.TransferPage, error) {
		return s.g.Transfers(s.Context(), s.from.Add(time.Hour), after)
	})
	if len(got) != many || len(later) != 0 {
		s.Errorf("%d are listed, and %d of the next hour; want %d and none", len(got), len(later), many)
	}
}

func (s *suite) reversed() {
	s.needs(s.can.List)
	_, returned := s.pay(Returns)
	s.pay(Pays)
	s.reaches(returned.GatewayID, gateway.Reversed)
	got := s.list(func(after gateway.Cursor) (gateway.TransferPage, error) {
		return s.g.Reversed(s.Context(), s.from.Add(-time.Second), after)
	})
	if t, isListed := got[returned.GatewayID]; !isListed || t.Progress != gateway.Reversed {
		s.Errorf("what came back is not listed: %+v", got)
	}
}

func (s *suite) cancelled() {
	s.needs(s.can.Cancel)
	s.box.Fund(false)
	o, queued := s.pay(Pays)
	if queued.Progress != gateway.Queued {
		s.Fatalf("it is %s, and there is no money", queued.Progress)
	}
	for range 2 {
		got, err := s.g.Cancel(s.Context(), queued.GatewayID)
		if err != nil || got.Progress != gateway.Cancelled {
			s.Errorf("it is %s, %v", got.Progress, err)
		}
	}
	s.box.Fund(true)
	s.box.Later(time.Hour)
	if got := s.fetch(queued.GatewayID); got.Progress != gateway.Cancelled {
		s.Errorf("it is %s once there is money", got.Progress)
	}
	s.wantPaid(o.Reference, 0)
}

func (s *suite) tooLate() {
	s.needs(s.can.Cancel)
	o, begun := s.pay(Pays)
	s.reaches(begun.GatewayID, gateway.Paid)
	if got, err := s.g.Cancel(s.Context(), begun.GatewayID); err != nil || got.Progress != gateway.Paid {
		s.Errorf("it is %s, %v", got.Progress, err)
	}
	s.wantPaid(o.Reference, 1)
}

func (s *suite) verifications() {
	s.needs(s.can.Verification)
	for story, want := range map[Story]gateway.Outcome{Pays: gateway.OutcomeValid, Invalid: gateway.OutcomeInvalid} {
		v, other := s.registered(story), s.registered(Pays)
		got, err := s.g.StartVerification(s.Context(), v)
		s.must(err)
		if got.ID == "" {
			s.Fatal("it has no id to ask again by")
		}
		verification := got.ID
		for range 20 {
			if got.Outcome != gateway.OutcomePending {
				break
			}
			s.box.Later(time.Minute)
			got, err = s.g.Verification(s.Context(), v, verification)
			s.must(err)
		}
		if got.Outcome != want || (got.Reason == "") != (want == gateway.OutcomeValid) {
			s.Errorf("story %d: %+v, want %s", story, got, want)
		}
		if reported, err := s.g.Verification(s.Context(), other, verification); err == nil {
			s.Errorf("another account's verification says %+v", reported)
		}
	}
}

func (s *suite) registered(story Story) gateway.VerificationRequest {
	s.Helper()
	v := gateway.VerificationRequest{Account: id.New("bka_", s.from)}
	var err error
	v.Beneficiary, err = s.g.EnsureBeneficiary(s.Context(), v.Account, s.box.Account(story))
	s.must(err)
	return v
}

// statement wants a line for each time that money moved, which names its transfer.
func (s *suite) statement() {
	s.needs(s.can.Statement)
	paid, begun := s.pay(Pays)
	s.reaches(begun.GatewayID, gateway.Paid)
	returned, gone := s.pay(Returns)
	s.reaches(gone.GatewayID, gateway.Reversed)
	lines, after := []gateway.Line{}, gateway.Cursor("")
	for range 50 {
		page, err := s.g.Lines(s.Context(), s.from.Add(-time.Second), s.from.Add(24*time.Hour), after)
		s.must(err)
		lines = append(lines, page.Lines...)
		if after = page.Next; after == "" {
			break
		}
	}
	about := func(o gateway.Order, gatewayID string) (debits, credits int) {
		for _, l := range lines {
			if l.Transfer != gatewayID && l.Reference != o.Reference {
				continue
			}
			if (l.Debit > 0) == (l.Credit > 0) || l.ID == "" || l.At.IsZero() || l.Currency != s.can.Currency ||
				l.Kind != gateway.LinePayout && l.Kind != gateway.LineReversal || l.Debit+l.Credit < o.Amount {
				s.Errorf("line %+v", l)
			}
			if l.Debit > 0 {
				debits++
			} else {
				credits++
			}
		}
		return debits, credits
	}
	if debits, credits := about(paid, begun.GatewayID); debits != 1 || credits != 0 {
		s.Errorf("what was paid has %d debits and %d credits", debits, credits)
	}
	if debits, credits := about(returned, gone.GatewayID); debits != 1 || credits > 1 { // a reversal may name no payout
		s.Errorf("what came back has %d debits and %d credits", debits, credits)
	}
	credited := slices.ContainsFunc(lines, func(l gateway.Line) bool { return l.Credit >= returned.Amount && l.Kind != gateway.LineOther })
	if !credited {
		s.Errorf("no line returns what came back: %+v", lines)
	}
}
