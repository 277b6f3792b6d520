// Package demo fills a service with a small marketplace that has been trading for a year.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pquerna/otp/totp"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Password is everybody's in the demo.
const Password = "monsoon-market"

const adminEmail = "admin@example.com"

// marketSeller is a seller of the demo, and what is to be seen there.
type marketSeller struct {
	name, email, sight string
	// sells is how many sales a usual month brings.
	sells int
	// account is the bank account of the first ten months, and story the one after: the sandbox goes
	// by its last four digits.
	account, story string
	ifsc           string
	// today is what happens to them in the end, or nil.
	today func(*market, context.Context, marketSeller) error
}

var marketSellers = []marketSeller{
	{"Asha Rao", "asha@example.com", "a year of sales and payouts; one waits for its cancel window, one was cancelled", 7, "50100234567812", "", "HDFC0000053", nil},
	{"Vikram Singh", "vikram@example.com", "a payout that failed, because the bank account was closed", 5, "20304567891123", "20304567890002", "SBIN0000300", nil},
	{"Meera Nair", "meera@example.com", "a payout that the bank returned after it was completed", 4, "91801004567834", "91801004560034", "UTIB0000004", nil},
	{"Farhan Khan", "farhan@example.com", "a payout that is late, because the bank does not finish it", 4, "00210456789145", "00210456780004", "ICIC0000021", nil},
	{"Arjun Patel", "arjun@example.com", "a payout in review, and one of which nobody knows yet what became of it", 4, "50200345678178", "50200345670013", "HDFC0000240", (*market).makeUnknown},
	{"Nisha Verma", "nisha@example.com", "a payout that the gateway cancelled after it had reported it paid: a discrepancy", 3, "30405678901289", "", "SBIN0000691", (*market).disagree},
	{"Divya Joshi", "divya@example.com", "payouts that an admin has frozen", 3, "00510678901290", "", "ICIC0000104", (*market).freeze},
	{"Rohit Das", "rohit@example.com", "a balance below zero, after a refund of money already withdrawn", 3, "11234567891156", "", "PUNB0112300", (*market).makeNegative},
	{"Imran Sheikh", "imran@example.com", "a bank account in review, because the bank has a similar name", 2, "", "60123456780010", "KKBK0000958", nil},
	{"Lakshmi Iyer", "lakshmi@example.com", "a new seller: pending earnings, and a bank account that was rejected", 2, "", "60123456780001", "KKBK0000958", nil},
	{factorHolder, factorEmail, "a second factor", 2, "91901006789011", "", "UTIB0000123", nil},
}

// The seller who signs in with a second factor.
const (
	factorHolder = "Zoya Ali"
	factorEmail  = "zoya@example.com"
)

// Person is a sign-in of the demo.
type Person struct {
	Name, Email string
	// Sight is what there is to see for them.
	Sight string
	Role  auth.Role
}

// People are all who can sign in. The first one is a seller with a long history.
func People() []Person {
	var people []Person
	for _, s := range marketSellers {
		people = append(people, Person{s.name, s.email, s.sight, auth.Seller})
	}
	return append(people,
		Person{"Priya Menon", adminEmail, "the home page, the review queue, all payouts, and the audit of the ledger", auth.Admin},
		Person{"Kabir Gupta", "kabir@example.com", "a buyer, to whom payouts are closed", auth.Buyer})
}

// market is filled month by month under a clock of its own, so that everything is as old as it seems.
type market struct {
	app.Services
	clock atomic.Int64 // microseconds
	// round is a hundred major units: who takes money out takes a round sum.
	round   money.Amount
	sellers map[string]string // e-mail → id
	// sent are payouts of this month that the sandbox has, with the state that each is to come to.
	sent map[payout.ID]payout.State
	// unknown are payouts whose orders never arrived, and when they were requested.
	unknown map[payout.ID]time.Time
	// sandbox is where the gateway's sandbox is.
	sandbox string
}

func (m *market) now() time.Time { return time.UnixMicro(m.clock.Load()) }

// set moves the clock on. It never goes back, so that entries are in the order of their times.
func (m *market) set(t time.Time)         { m.clock.Store(max(m.clock.Load(), t.UnixMicro())) }
func (m *market) advance(d time.Duration) { m.clock.Add(d.Microseconds()) }

// The market's history: payouts are taken in payoutMonths, counted back from now, and bank accounts
// with a story of their own come in storyMonth.
const (
	marketMonths = 12
	storyMonth   = 2
)

var payoutMonths = map[int]bool{9: true, 6: true, 4: true, storyMonth: true}

// Fill makes the people, their sales and their payouts of the year before now. s must not have begun its work.
func Fill(ctx context.Context, s *app.Service, currency money.Currency, progress func(string, ...any)) error {
	defer progress("")
	round, err := currency.Parse("100")
	if err != nil {
		return err
	}
	m := &market{round: round, sellers: map[string]string{}, unknown: map[payout.ID]time.Time{}, sandbox: s.SandboxURL()}
	m.Services, err = s.ServicesOfThePast(m.now)
	if err != nil {
		return err
	}
	now := time.Now()
	m.set(now.AddDate(-1, 0, -7))
	progress("Inviting people")
	if err := m.invite(ctx); err != nil {
		return err
	}
	for month := marketMonths; month >= 1; month-- {
		progress("Trading: %d of %d months", marketMonths-month+1, marketMonths)
		m.set(before(now, month))
		if err := m.trade(ctx, month); err != nil {
			return err
		}
	}
	m.set(now)
	return m.today(ctx)
}

// before is the same time so many months before. It is never later in its month than on the 28th, which each month has: a day that a month
// lacks would be one of the next, and that month's sales would be made twice.
func before(now time.Time, months int) time.Time {
	return now.AddDate(0, 0, min(28-now.Day(), 0)).AddDate(0, -months, 0)
}

// invite makes the users and gives the sellers their first bank accounts.
func (m *market) invite(ctx context.Context) error {
	for _, p := range People() {
		m.advance(11 * time.Hour)
		user, err := m.Auth.CreateUser(ctx, auth.Registration{Name: p.Name, Email: p.Email, Password: Password, Role: p.Role})
		if err != nil {
			return err
		}
		m.sellers[p.Email] = user.ID
	}
	for _, s := range marketSellers {
		if err := m.Auth.SetProductsListed(ctx, m.sellers[s.email], int64(3*s.sells)); err != nil {
			return err
		}
	}
	return m.openAccounts(ctx, func(s marketSeller) string { return s.account })
}

// openAccounts registers the sellers' accounts, none where the number is empty, and sees them verified.
func (m *market) openAccounts(ctx context.Context, numberOf func(marketSeller) string) error {
	for _, s := range marketSellers {
		if numberOf(s) == "" {
			continue
		}
		number, err := bank.ParseNumber(numberOf(s))
		if err != nil {
			return err
		}
		_, err = m.Bank.Register(ctx, bank.Registration{Seller: m.sellers[s.email], Holder: s.name, Number: number, IFSC: bank.IFSC(s.ifsc)})
		if err != nil {
			return err
		}
	}
	return m.untilDone(ctx, "bank accounts are verified", func() (bool, error) { return m.verify(ctx) })
}

// verify takes the next step for every account that is not decided on, and reports whether there is
// none left.
func (m *market) verify(ctx context.Context) (bool, error) {
	done := true
	for _, s := range marketSellers {
		account, err := m.Bank.Account(ctx, m.sellers[s.email])
		if errors.Is(err, bank.ErrNone) {
			continue
		}
		if err != nil {
			return false, err
		}
		if account.Status == bank.StatusUnverified {
			done = false
			if err := m.Bank.Step(ctx, account.ID); err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

// untilDone repeats a step while the sandbox takes its time.
func (m *market) untilDone(ctx context.Context, what string, step func() (bool, error)) error {
	const tries, pause = 300, 50 * time.Millisecond
	for range tries {
		done, err := step()
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("the demo waited in vain until %s", what)
}

// trade is one month: everybody sells, the earnings are released, and payouts are taken.
func (m *market) trade(ctx context.Context, month int) error {
	if month == storyMonth {
		if err := m.openAccounts(ctx, func(s marketSeller) string { return s.story }); err != nil {
			return err
		}
	}
	began := m.now()
	var sales []monthsSale
	for i, s := range marketSellers {
		if s.account == "" && month > storyMonth {
			continue // not here yet
		}
		sales = append(sales, m.salesOf(s, began, rand.New(rand.NewPCG(uint64(i), uint64(month))))...)
	}
	slices.SortFunc(sales, func(a, b monthsSale) int { return a.at.Compare(b.at) })
	for _, sold := range sales {
		if err := m.sell(ctx, sold); err != nil {
			return err
		}
	}
	m.set(began.AddDate(0, 0, 27))
	if month == 1 { // the last days are still pending
		m.set(began.AddDate(0, 1, 0))
	}
	for released := 1; released > 0; {
		var err error
		if released, err = m.Sales.ReleaseDue(ctx); err != nil {
			return err
		}
	}
	if !payoutMonths[month] {
		return nil
	}
	m.sent = map[payout.ID]payout.State{}
	for _, s := range marketSellers {
		if err := m.withdraw(ctx, s, month); err != nil {
			return err
		}
	}
	return m.settle(ctx)
}

// monthsSale is a sale of a month, and how much of it is refunded at once.
type monthsSale struct {
	seller          marketSeller
	id              string
	amount, refunds money.Amount
	at              time.Time
}

// salesOf are a seller's sales of a month, of which the odd one is partly refunded.
func (m *market) salesOf(s marketSeller, began time.Time, random *rand.Rand) []monthsSale {
	var all []monthsSale
	for i := range s.sells {
		sold := monthsSale{
			seller: s,
			id:     fmt.Sprintf("order-%s-%s-%d", began.Format("0601"), m.sellers[s.email][4:], i+1),
			amount: m.round * money.Amount(20+random.IntN(200)) / 5, // 400 to 4,380
			at:     began.Add(time.Duration(i*28*24/s.sells)*time.Hour + time.Duration(random.IntN(600))*time.Minute),
		}
		if random.IntN(12) == 0 {
			sold.refunds = sold.amount / 2
		}
		all = append(all, sold)
	}
	return all
}

// sell records a sale when it happens.
func (m *market) sell(ctx context.Context, sold monthsSale) error {
	m.set(sold.at)
	if err := m.review(ctx); err != nil {
		return err
	}
	if err := m.record(ctx, sold.seller, sold.id, sold.amount, sold.at, time.Time{}); err != nil || sold.refunds == 0 {
		return err
	}
	_, _, _, err := m.Sales.Refund(ctx, sale.NewRefund{Sale: sold.id, ID: "return-1", Amount: sold.refunds})
	return err
}

func (m *market) record(ctx context.Context, s marketSeller, id string, amount money.Amount, at, availableAt time.Time) error {
	_, _, err := m.Sales.Record(ctx, sale.NewSale{ID: id, Seller: m.sellers[s.email], Amount: amount, OccurredAt: at, AvailableAt: availableAt})
	return err
}

// withdraw takes most of a seller's balance out, and hands the payout to the sandbox.
func (m *market) withdraw(ctx context.Context, s marketSeller, month int) error {
	seller := m.sellers[s.email]
	summary, err := m.Payouts.Summary(ctx, seller)
	if err != nil {
		return err
	}
	amount := summary.Available / 5 * 4
	amount -= amount % m.round
	if summary.Account.Status != bank.StatusVerified || amount < m.Payouts.Minimum() {
		return nil
	}
	p, _, err := m.Payouts.Request(ctx, payout.Request{Seller: seller, Amount: amount, Notes: "Takings until " + m.now().Format("2 January")})
	if err != nil {
		return err
	}
	m.sent[p.ID] = payout.Completed
	if month == storyMonth {
		m.sent[p.ID] = endOf(s.story)
	}
	if err := m.Payouts.Step(ctx, p.ID); err != nil && m.sent[p.ID] != payout.ManualReview { // whose order is lost
		return err
	}
	return nil
}

// endOf is the state that a payout to an account comes to. Returns are made by hand: the sandbox's own come when they come, and
// a payout that is not seen completed before has failed.
func endOf(account string) payout.State {
	ends := map[string]payout.State{
		"0002": payout.Failed, "0034": payout.Returned, "0004": payout.Submitted, "0013": payout.ManualReview,
	}
	if end, ok := ends[account[max(0, len(account)-4):]]; ok {
		return end
	}
	return payout.Completed
}

// settle follows the month's payouts to their ends, a few minutes after they were requested, and returned ones a day later.
func (m *market) settle(ctx context.Context) error {
	requested := m.now()
	m.set(requested.Add(4 * time.Minute))
	first, returned := map[payout.ID]payout.State{}, map[payout.ID]payout.State{}
	for id, end := range m.sent {
		switch end {
		case payout.ManualReview:
			m.unknown[id] = requested
		case payout.Returned:
			first[id], returned[id] = payout.Completed, end
		default:
			first[id] = end
		}
	}
	if err := m.reach(ctx, first); err != nil {
		return err
	}
	m.set(requested.Add(24 * time.Hour))
	for id := range returned {
		if err := m.move(ctx, id, `{"status": "reversed", "reason": "beneficiary_bank_rejected"}`); err != nil {
			return err
		}
	}
	return m.reach(ctx, returned)
}

// reach takes steps until each payout is in its state.
func (m *market) reach(ctx context.Context, states map[payout.ID]payout.State) error {
	return m.untilDone(ctx, "payouts are settled", func() (bool, error) {
		done := true
		for id, want := range states {
			p, err := m.Payouts.Payout(ctx, payout.Caller{Admin: true}, id)
			if err != nil {
				return false, err
			}
			if p.State == want {
				continue
			}
			done = false
			if err := m.Payouts.Step(ctx, id); err != nil {
				return false, err
			}
		}
		return done, nil
	})
}

// move changes a payout at the sandbox by hand.
func (m *market) move(ctx context.Context, id payout.ID, to string) error {
	c := &client{at: m.sandbox}
	return c.control(ctx, "/control/payouts/"+string(id), to)
}

// review takes the step of payouts that were unknown for so long that the gateway does not honour their keys any more.
func (m *market) review(ctx context.Context) error {
	const keyGone = 7 * 24 * time.Hour
	for id, requested := range m.unknown {
		if m.now().Sub(requested) < keyGone {
			continue
		}
		delete(m.unknown, id)
		_ = m.Payouts.Step(ctx, id) // it fails, as the gateway does not know the payout
		p, err := m.Payouts.Payout(ctx, payout.Caller{Admin: true}, id)
		if err != nil {
			return err
		}
		if p.State != payout.ManualReview {
			return fmt.Errorf("the payout %s is %s, not in review", id, p.State)
		}
	}
	return nil
}

// today is what happens after the history: everybody has sold something lately that is still pending, and some of
// them have a story of their own.
func (m *market) today(ctx context.Context) error {
	for i, s := range marketSellers {
		at, amount := m.now().Add(-time.Duration(5*i+2)*time.Hour), m.round*money.Amount(12+i)
		if err := m.record(ctx, s, "order-new-"+m.sellers[s.email][4:], amount, at, time.Time{}); err != nil {
			return err
		}
		if s.today == nil {
			continue
		}
		if err := s.today(m, ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// freeze has the admin stop a seller's payouts.
func (m *market) freeze(ctx context.Context, s marketSeller) error {
	by := decision.By{Admin: m.sellers[adminEmail], Note: "Two buyers report goods that never came. Wait for the seller's papers."}
	return m.Payouts.Freeze(ctx, by, m.sellers[s.email])
}

// disagree has the gateway cancel a payout that it reported paid.
func (m *market) disagree(ctx context.Context, s marketSeller) error {
	p, err := m.take(ctx, s, m.round*6, "Packaging")
	if err != nil {
		return err
	}
	if err := m.reach(ctx, map[payout.ID]payout.State{p.ID: payout.Completed}); err != nil {
		return err
	}
	if err := m.move(ctx, p.ID, `{"status": "cancelled"}`); err != nil {
		return err
	}
	by := decision.By{Admin: m.sellers[adminEmail], Note: "The seller says that nothing came."}
	is, err := m.Payouts.AskGateway(ctx, by, p.ID)
	if err == nil && is.Discrepancy == "" {
		err = errors.New("the gateway's report is no discrepancy")
	}
	return err
}

// makeUnknown requests a payout whose order never arrives.
func (m *market) makeUnknown(ctx context.Context, s marketSeller) error {
	p, err := m.take(ctx, s, m.round*5, "Rent")
	if err != nil {
		return err
	}
	if p.State != payout.Unknown {
		return fmt.Errorf("the payout is %s, not unknown", p.State)
	}
	return nil
}

// take requests a payout and takes its first step. It returns the payout as it then is.
func (m *market) take(ctx context.Context, s marketSeller, amount money.Amount, notes string) (payout.Payout, error) {
	p, _, err := m.Payouts.Request(ctx, payout.Request{Seller: m.sellers[s.email], Amount: amount, Notes: notes})
	if err != nil {
		return p, err
	}
	if err := m.Payouts.Step(ctx, p.ID); err != nil && endOf(s.story) != payout.ManualReview { // whose order is lost
		return p, err
	}
	return m.Payouts.Payout(ctx, payout.Caller{Admin: true}, p.ID)
}

// makeNegative sells something large, withdraws everything, and takes the sale back.
func (m *market) makeNegative(ctx context.Context, s marketSeller) error {
	const id = "order-taken-back"
	if err := m.record(ctx, s, id, 90*m.round, m.now().Add(-time.Hour), m.now()); err != nil {
		return err
	}
	if _, err := m.Sales.ReleaseDue(ctx); err != nil {
		return err
	}
	summary, err := m.Payouts.Summary(ctx, m.sellers[s.email])
	if err != nil {
		return err
	}
	if _, err := m.take(ctx, s, summary.Available, "All of it"); err != nil {
		return err
	}
	_, _, _, err = m.Sales.Refund(ctx, sale.NewRefund{Sale: id, ID: "return-1"})
	return err
}

// Opened is what has happened over HTTP.
type Opened struct {
	// Token is of the first person.
	Token string
	// FactorEmail is who has a second factor: an authenticator app with the secret AppSecret, and RecoveryCode.
	FactorEmail, AppSecret, RecoveryCode string
}

// Open does over HTTP what happens today, at the address of the service: the first person asks for two payouts and
// cancels one, and another adds a second factor.
func Open(ctx context.Context, at string) (Opened, error) {
	o := Opened{FactorEmail: factorEmail}
	c := &client{at: at}
	if err := c.signIn(ctx, marketSellers[0].email); err != nil {
		return o, err
	}
	o.Token = c.token
	var waiting, cancelled struct {
		PayoutID string `json:"payoutId"`
	}
	if err := c.post(ctx, "/api/payouts/request", `{"amount": 500, "notes": "Changed my mind"}`, &cancelled); err != nil {
		return o, err
	}
	if err := c.post(ctx, "/api/payouts/"+cancelled.PayoutID+"/cancel", "", nil); err != nil {
		return o, err
	}
	if err := c.post(ctx, "/api/payouts/request", `{"amount": 750, "notes": "Courier bill"}`, &waiting); err != nil {
		return o, err
	}
	return o, o.enrol(ctx, at)
}

// enrol adds an authenticator app.
func (o *Opened) enrol(ctx context.Context, at string) error {
	c := &client{at: at}
	if err := c.signIn(ctx, o.FactorEmail); err != nil {
		return err
	}
	var begun struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	if err := c.post(ctx, "/api/auth/factors", `{"type": "totp", "name": "Phone"}`, &begun); err != nil {
		return err
	}
	code, err := totp.GenerateCode(begun.Secret, time.Now())
	if err != nil {
		return fmt.Errorf("make a code: %w", err)
	}
	var confirmed struct {
		RecoveryCodes []string `json:"recoveryCodes"`
	}
	if err := c.post(ctx, "/api/auth/factors/"+begun.ID+"/confirm", `{"code": "`+code+`"}`, &confirmed); err != nil {
		return err
	}
	if len(confirmed.RecoveryCodes) == 0 {
		return errors.New("the second factor has no recovery codes")
	}
	o.AppSecret, o.RecoveryCode = begun.Secret, confirmed.RecoveryCodes[0]
	return nil
}
