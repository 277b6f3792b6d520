package storetest

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/store"
)

// selectable are payouts of two sellers, one a day, of which each stands somewhere else.
func (b *bench) selectable() map[string]payout.ID {
	b.Helper()
	ids := map[string]payout.ID{}
	one, other := b.seller(id.New("usr_", b.now)), id.New("usr_", b.now)
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), auth.User{ID: other, Name: "Vikram Singh", Email: "vikram@example.com", Role: auth.Seller, CreatedAt: b.now}); err != nil {
			return err
		}
		return b.addAccount(tx, bank.Account{
			ID: bank.ID("bka_" + other), Seller: other, Holder: "Vikram Singh", IFSC: "ICIC0000001", Last4: "9999", Current: true,
			Status: bank.StatusVerified, NameScore: -1, VerificationID: "fav_" + other, CreatedAt: b.now, VerifiedAt: b.now,
		})
	})
	b.fund(one, 100_000)
	b.fund(other, 100_000)
	for _, p := range []struct {
		name   string
		seller string
		amount money.Amount
		to     payout.State
		change func(*payout.Payout)
	}{
		{"waiting", one, 100, payout.Waiting, nil},
		{"unknown", other, 200, payout.Unknown, nil},
		{"review", one, 300, payout.ManualReview, func(p *payout.Payout) { p.Discrepancy = "can't be" }},
		{"submitted", one, 400, payout.Submitted, nil},
		{"completed", other, 500, payout.Completed, nil},
		{"returned", one, 500, payout.Returned, nil},
		{"failed", one, 600, payout.Failed, func(p *payout.Payout) { p.ReasonCode, p.EndedAt = "bank_rejected", b.now.Add(48*time.Hour) }},
		{"cancelled", other, 700, payout.Cancelled, func(p *payout.Payout) { p.EndedAt = b.now }},
	} {
		made := b.ask(payout.ID(id.New("pyt_", b.now)), p.seller, p.amount, 10)
		ids[p.name] = made.ID
		switch p.to {
		case payout.Waiting:
		case payout.Completed:
			b.complete(made)
		case payout.Returned:
			made = b.complete(made)
			made.EndedAt, made.ReasonCode = b.now.Add(24*time.Hour), "bank_returned"
			b.move(made, payout.Returned)
		default:
			made = b.move(made, payout.Submitting)
			if p.change != nil {
				p.change(&made)
			}
			b.move(made, p.to)
		}
		b.now = b.now.Add(24 * time.Hour)
	}
	return ids
}

// day is the beginning of the nth day of the payouts that a bench made selectable, and of that day's payout.
func day(n int) time.Time { return start.Add(time.Duration(n) * 24 * time.Hour) }

// testSelections looks for payouts in every way that an operator can.
func testSelections(_ *testing.T, b *bench) {
	ids := b.selectable()
	seller := func(name string) string {
		p, err := b.db.Payout(b.ctx(), ids[name])
		b.must(err)
		return p.Seller
	}
	all := []string{"cancelled", "failed", "returned", "completed", "submitted", "review", "unknown", "waiting"}
	for _, tt := range []struct {
		name string
		sel  payout.Selection
		want []string
	}{
		{"all", payout.Selection{}, all},
		{"oldest first", payout.Selection{Sort: payout.OldestFirst}, reversed(all)},
		{"largest first", payout.Selection{Sort: payout.LargestFirst}, []string{"cancelled", "failed", "returned", "completed", "submitted", "review", "unknown", "waiting"}},
		{"a seller's", payout.Selection{Seller: seller("unknown")}, []string{"cancelled", "completed", "unknown"}},
		{"a seller's, largest first", payout.Selection{Seller: seller("unknown"), Sort: payout.LargestFirst}, []string{"cancelled", "completed", "unknown"}},
		{"no such seller's", payout.Selection{Seller: "usr_none"}, nil},
		{"processing", payout.Selection{Status: payout.StatusProcessing}, []string{"submitted", "review", "unknown", "waiting"}},
		{"status failed", payout.Selection{Status: payout.StatusFailed}, []string{"failed", "returned"}},
		{"state failed", payout.Selection{State: payout.Failed}, []string{"failed"}},
		{"returned", payout.Selection{State: payout.Returned}, []string{"returned"}},
		{"cancelled", payout.Selection{State: payout.Cancelled}, []string{"cancelled"}},
		{"waiting", payout.Selection{State: payout.Waiting}, []string{"waiting"}},
		{"unknown", payout.Selection{State: payout.Unknown}, []string{"unknown"}},
		{"in review", payout.Selection{State: payout.ManualReview}, []string{"review"}},
		{"with a discrepancy", payout.Selection{Discrepancy: true}, []string{"review"}},
		{"late", payout.Selection{LateAt: day(1).Add(2 * time.Hour)}, []string{"unknown", "waiting"}},
		{"a seller's late", payout.Selection{LateAt: day(9), Seller: seller("waiting")}, []string{"submitted", "review", "waiting"}},
		{"from 300", payout.Selection{MinAmount: 300, MaxAmount: 500}, []string{"returned", "completed", "submitted", "review"}},
		{"of a bank", payout.Selection{Bank: "ICIC"}, []string{"cancelled", "completed", "unknown"}},
		{"of no bank", payout.Selection{Bank: "SBIN"}, nil},
		{"for a reason", payout.Selection{Reason: "bank_rejected"}, []string{"failed"}},
		{"requested", payout.Selection{Date: payout.DateRequested, From: day(2), To: day(4)}, []string{"submitted", "review"}},
		{"requested from", payout.Selection{Date: payout.DateRequested, From: day(6)}, []string{"cancelled", "failed"}},
		{"requested before", payout.Selection{Date: payout.DateRequested, To: day(1)}, []string{"waiting"}},
		{"completed", payout.Selection{Date: payout.DateCompleted, From: day(4), To: day(5)}, []string{"completed"}},
		{"completed, and returned since", payout.Selection{Date: payout.DateCompleted, From: day(5), To: day(6)}, []string{"returned"}},
		{"completed from", payout.Selection{Date: payout.DateCompleted, From: day(4).Add(time.Microsecond)}, []string{"returned"}},
		{"ended", payout.Selection{Date: payout.DateEnded, From: day(5), To: day(7)}, []string{"returned"}},
		{"ended from", payout.Selection{Date: payout.DateEnded, From: day(4)}, []string{"cancelled", "failed", "returned", "completed"}},
		{"failed that ended", payout.Selection{Date: payout.DateEnded, Status: payout.StatusFailed, From: day(8), To: day(9)}, []string{"failed"}},
		{"all at once", payout.Selection{
			Seller: seller("failed"), Status: payout.StatusFailed, State: payout.Failed, MinAmount: 600, MaxAmount: 600, Bank: "HDFC",
			Reason: "bank_rejected", Date: payout.DateRequested, From: day(6), To: day(7),
		}, []string{"failed"}},
	} {
		var want []payout.ID
		var sum money.Amount
		for _, name := range tt.want {
			want = append(want, ids[name])
			p, err := b.db.Payout(b.ctx(), ids[name])
			b.must(err)
			sum += p.Amount
		}
		tt.sel.Limit = 3
		var got []payout.ID
		for {
			page, err := b.db.SelectPayouts(b.ctx(), tt.sel)
			b.must(err)
			for _, p := range page {
				got = append(got, p.ID)
				if whole, err := b.db.Payout(b.ctx(), p.ID); err != nil || p.Payout != whole || p.SellerName == "" {
					b.Errorf("%s: listed as\n%+v, %v; want\n%+v", tt.name, p, err, whole)
				}
			}
			if len(page) < tt.sel.Limit {
				break
			}
			tt.sel.After = page[len(page)-1].ID
		}
		if tt.name == "largest first" { // of the same amount, the newest come first
			slices.Sort(want[2:4])
			slices.Reverse(want[2:4])
		}
		if !slices.Equal(got, want) {
			b.Errorf("%s: %v, want %v of %v", tt.name, got, want, ids)
		}
		totals, err := b.db.SumPayouts(b.ctx(), tt.sel)
		if wantTotals := (payout.Totals{Count: int64(len(want)), Amount: sum, Fee: money.Amount(10 * len(want))}); err != nil || totals != wantTotals {
			b.Errorf("%s: sums up to %+v, %v; want %+v", tt.name, totals, err, wantTotals)
		}
	}
	floor := payout.Selection{Floor: ids["returned"], Limit: 10}
	if list, err := b.db.SelectPayouts(b.ctx(), floor); err != nil || len(list) != 2 {
		b.Errorf("above the floor are %d, %v; want 2", len(list), err)
	}
}

// testUncountableSum has amounts that nobody asked for, written beside the service.
func testUncountableSum(_ *testing.T, b *bench) {
	b.selectable()
	b.engine.Hands(b.T, b.db)(`UPDATE payouts SET amount = 9223372036854775807, fee = 9223372036854775806 WHERE id IN (SELECT id FROM payouts ORDER BY id LIMIT 2)`)
	totals, err := b.db.SumPayouts(b.ctx(), payout.Selection{})
	if err != nil || totals.Count != 8 || totals.Cut || totals.Amount < ledger.MaxTotal/2 || totals.Fee < ledger.MaxTotal/2 {
		b.Errorf("amounts that are too large to add up come to %+v, %v", totals, err)
	}
}

func reversed(names []string) []string {
	turned := slices.Clone(names)
	slices.Reverse(turned)
	return turned
}

// testFigures sums up by bank what selections list.
func testFigures(_ *testing.T, b *bench) {
	ids := b.selectable()
	for _, tt := range []struct {
		from, to int
		want     []payout.BankCount
	}{
		{0, 9, []payout.BankCount{{Bank: "HDFC", Count: payout.Count{Number: 1, Amount: 500}}, {Bank: "ICIC", Count: payout.Count{Number: 1, Amount: 500}}}},
		{4, 5, []payout.BankCount{{Bank: "ICIC", Count: payout.Count{Number: 1, Amount: 500}}}},
		{5, 6, []payout.BankCount{{Bank: "HDFC", Count: payout.Count{Number: 1, Amount: 500}}}},
		{6, 9, nil},
	} {
		if got, err := b.db.PaidByBank(b.ctx(), day(tt.from), day(tt.to)); err != nil || !slices.Equal(got, tt.want) {
			b.Errorf("from day %d to %d were paid %v, %v; want %v", tt.from, tt.to, got, err, tt.want)
		}
	}
	returned, failed := payout.FailedPayout{EndedAt: day(6), Bank: "HDFC", Reason: "bank_returned", Amount: 500}, payout.FailedPayout{EndedAt: day(8), Bank: "HDFC", Reason: "bank_rejected", Amount: 600}
	for from, want := range map[int][]payout.FailedPayout{0: {returned, failed}, 7: {failed}, 9: nil} {
		got, err := b.db.FailedSince(b.ctx(), day(from))
		slices.SortFunc(got, func(a, b payout.FailedPayout) int { return a.EndedAt.Compare(b.EndedAt) })
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("from day %d on failed %v, %v; want %v", from, got, err, want)
		}
	}
	open, err := b.db.OpenPayouts(b.ctx(), b.now)
	if want := (payout.OpenPayouts{Count: payout.Count{Number: 4, Amount: 1000}, Oldest: ids["waiting"], Since: day(0)}); err != nil || open != want {
		b.Errorf("open are %+v, %v; want %+v", open, err, want)
	}
}
