// Package demo fills a service with a small marketplace that has been trading for a year.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// Password is everybody's in the demo.
const Password = "monsoon-market"

// marketSeller is a seller of the demo, and what is to be seen there.
type marketSeller struct {
	name, email, sight string
	// sells is how many sales a usual month brings.
	sells int
	// account is the bank account of the first ten months, and story the one after: the sandbox goes
	// by its last four digits.
	account, story string
	ifsc           string
	// goesNegative says that a sale is taken back after it was withdrawn.
	goesNegative bool
}

var marketSellers = []marketSeller{
	{"Asha Rao", "asha@example.com", "a year of sales and payouts; one waits for its cancel window, one was cancelled", 7, "50100234567812", "", "HDFC0000053", false},
	{"Vikram Singh", "vikram@example.com", "a payout that failed, because the bank account was closed", 5, "20304567891123", "20304567890002", "SBIN0000300", false},
	{"Meera Nair", "meera@example.com", "a payout that the bank returned after it was completed", 4, "91801004567834", "91801004560003", "UTIB0000004", false},
	{"Farhan Khan", "farhan@example.com", "a payout that the bank does not finish", 4, "00210456789145", "00210456780004", "ICIC0000021", false},
	{"Rohit Das", "rohit@example.com", "a balance below zero, after a refund of money already withdrawn", 3, "11234567891156", "", "PUNB0112300", true},
	{"Lakshmi Iyer", "lakshmi@example.com", "a new seller: pending earnings, and a bank account that was not accepted", 2, "", "60123456780001", "KKBK0000958", false},
}

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
		Person{"Priya Menon", "admin@example.com", "the home page, the review queue, all payouts, and the audit of the ledger", auth.Admin},
		Person{"Kabir Gupta", "kabir@example.com", "a buyer, to whom payouts are closed", auth.Buyer})
}

// market is filled month by month under a clock of its own, so that everything is as old as it seems.
type market struct {
	app.Services
	clock atomic.Int64 // microseconds
	// round is a hundred major units: who takes money out takes a round sum.
	round   money.Amount
	sellers map[string]string // e-mail → id
	// sent are payouts that the sandbox has, with the state that each is to come to.
	sent map[payout.ID]payout.State
}

func (m *market) now() time.Time          { return time.UnixMicro(m.clock.Load()) }
func (m *market) set(t time.Time)         { m.clock.Store(t.UnixMicro()) }
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
	m := &market{round: round, sellers: map[string]string{}, sent: map[payout.ID]payout.State{}}
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
		m.set(now.AddDate(0, -month, 0))
		if err := m.trade(ctx, month); err != nil {
			return err
		}
	}
	progress("Waiting for the bank")
	if err := m.settle(ctx); err != nil {
		return err
	}
	m.set(now)
	return m.today(ctx)
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
	group, groupCtx := errgroup.WithContext(ctx)
	for i, s := range marketSellers {
		if s.account == "" && month > storyMonth {
			continue // not here yet
		}
		group.Go(func() error { return m.sell(groupCtx, s, began, rand.New(rand.NewPCG(uint64(i), uint64(month)))) })
	}
	if err := group.Wait(); err != nil {
		return err
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
	for _, s := range marketSellers {
		if err := m.withdraw(ctx, s, month); err != nil {
			return err
		}
	}
	return nil
}

// sell records a seller's sales of a month, of which the odd one is partly refunded.
func (m *market) sell(ctx context.Context, s marketSeller, began time.Time, random *rand.Rand) error {
	for i := range s.sells {
		amount := m.round * money.Amount(20+random.IntN(200)) / 5 // 400 to 4,380
		id := fmt.Sprintf("order-%s-%s-%d", began.Format("0601"), m.sellers[s.email][4:], i+1)
		at := began.Add(time.Duration(i*28*24/s.sells)*time.Hour + time.Duration(random.IntN(600))*time.Minute)
		if err := m.record(ctx, s, id, amount, at, time.Time{}); err != nil {
			return err
		}
		if random.IntN(12) == 0 {
			if _, _, _, err := m.Sales.Refund(ctx, sale.NewRefund{Sale: id, ID: "return-1", Amount: amount / 2}); err != nil {
				return err
			}
		}
	}
	return nil
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
	if err := m.Payouts.Step(ctx, p.ID); err != nil {
		return err
	}
	m.sent[p.ID] = payout.Completed
	if month == storyMonth {
		m.sent[p.ID] = endOf(s.story)
	}
	return nil
}

// endOf is the state that a payout to an account comes to.
func endOf(account string) payout.State {
	ends := map[string]payout.State{"0002": payout.Failed, "0003": payout.Returned, "0004": payout.Submitted}
	if end, ok := ends[account[max(0, len(account)-4):]]; ok {
		return end
	}
	return payout.Completed
}

// settle follows every payout to its end, a few minutes after it was asked for.
func (m *market) settle(ctx context.Context) error {
	return m.untilDone(ctx, "payouts are settled", func() (bool, error) {
		done := true
		for id, end := range m.sent {
			p, err := m.Payouts.Payout(ctx, payout.Caller{Admin: true}, id)
			if err != nil {
				return false, err
			}
			if p.State == end {
				continue
			}
			done = false
			m.set(p.RequestedAt.Add(4 * time.Minute))
			if err := m.Payouts.Step(ctx, id); err != nil {
				return false, err
			}
		}
		return done, nil
	})
}

// today is what happens after the history: everybody has sold something lately that is still pending,
// and a large sale is taken back that was withdrawn already.
func (m *market) today(ctx context.Context) error {
	for i, s := range marketSellers {
		at, amount := m.now().Add(-time.Duration(5*i+2)*time.Hour), m.round*money.Amount(12+i)
		if err := m.record(ctx, s, "order-new-"+m.sellers[s.email][4:], amount, at, time.Time{}); err != nil {
			return err
		}
		if !s.goesNegative {
			continue
		}
		if err := m.makeNegative(ctx, s); err != nil {
			return err
		}
	}
	return nil
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
	p, _, err := m.Payouts.Request(ctx, payout.Request{Seller: m.sellers[s.email], Amount: summary.Available, Notes: "All of it"})
	if err != nil {
		return err
	}
	if err := m.Payouts.Step(ctx, p.ID); err != nil {
		return err
	}
	_, _, _, err = m.Sales.Refund(ctx, sale.NewRefund{Sale: id, ID: "return-1"})
	return err
}

// Open does over HTTP what happens today, at the address of the service: the first person asks for two payouts and
// cancels one. It returns their token.
func Open(ctx context.Context, at string) (token string, err error) {
	c := &client{at: at}
	if err := c.signIn(ctx, marketSellers[0].email); err != nil {
		return "", err
	}
	var waiting, cancelled struct {
		PayoutID string `json:"payoutId"`
	}
	if err := c.post(ctx, "/api/payouts/request", `{"amount": 500, "notes": "Changed my mind"}`, &cancelled); err != nil {
		return "", err
	}
	if err := c.post(ctx, "/api/payouts/"+cancelled.PayoutID+"/cancel", "", nil); err != nil {
		return "", err
	}
	err = c.post(ctx, "/api/payouts/request", `{"amount": 750, "notes": "Courier bill"}`, &waiting)
	return c.token, err
}
