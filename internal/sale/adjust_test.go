package sale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

func adjustment(id string, amount money.Amount) sale.NewAdjustment {
	return sale.NewAdjustment{
		ID: id, Seller: "usr_seller", Amount: amount, Reason: "A fee was charged twice.", By: decision.By{Admin: "usr_admin", Note: "Ticket 4711."},
	}
}

// adjust wants an adjustment to be new or not, and returns it.
func (s *fixture) adjust(n sale.NewAdjustment, wantCreated bool) sale.Adjustment {
	s.Helper()
	got, created, err := s.sales.Adjust(s.Context(), n)
	if err != nil || created != wantCreated {
		s.Fatalf("adjust %s: created %t, error %v; want created %t", n.ID, created, err, wantCreated)
	}
	return got
}

func TestAdjust_MovesOnce(t *testing.T) {
	s := openShop(t)
	up := s.adjust(adjustment("up", 5000), true)
	want := sale.Adjustment{
		ID: "up", Seller: "usr_seller", Amount: 5000, Reason: "A fee was charged twice.", Note: "Ticket 4711.", Admin: "usr_admin",
		At: s.now, Available: 5000, Entry: 1,
	}
	if up != want {
		t.Errorf("made is %+v, want %+v", up, want)
	}
	s.wantBalance(0, 5000, 5000)
	down := s.adjust(adjustment("down", -7000), true) // as a refund may
	s.wantBalance(0, -2000, -2000)

	s.now = s.now.Add(time.Hour)
	other := adjustment("up", 5000)
	other.By.Admin = "usr_other" // repeats what the first admin did
	if again := s.adjust(other, false); again != up {
		t.Errorf("the repeat is answered with %+v, want %+v", again, up)
	}
	if again := s.adjust(adjustment("down", -7000), false); again != down {
		t.Errorf("the repeat is answered with %+v, want %+v", again, down)
	}
	for name, change := range map[string]func(*sale.NewAdjustment){
		"amount": func(n *sale.NewAdjustment) { n.Amount++ },
		"sign":   func(n *sale.NewAdjustment) { n.Amount = -n.Amount },
		"reason": func(n *sale.NewAdjustment) { n.Reason += "!" },
		"note":   func(n *sale.NewAdjustment) { n.By.Note += "!" },
	} {
		n := adjustment("up", 5000)
		change(&n)
		if _, _, err := s.sales.Adjust(t.Context(), n); !errors.Is(err, sale.ErrAdjustmentConflict) {
			t.Errorf("with another %s under the same id: %v", name, err)
		}
	}
	s.wantBalance(0, -2000, -2000)

	list, err := s.sales.Adjustments(t.Context(), "usr_seller", 0, 10)
	if err != nil || len(list) != 2 || list[0] != down || list[1] != up {
		t.Errorf("listed are %+v, %v", list, err)
	}
	list, err = s.sales.Adjustments(t.Context(), "usr_seller", down.Entry, 10)
	if err != nil || len(list) != 1 || list[0] != up {
		t.Errorf("below the newest are %+v, %v", list, err)
	}
	months, err := s.sales.Months(t.Context(), "usr_seller", 1)
	if err != nil || months[0].Earned != 0 {
		t.Errorf("the month is %+v, %v; adjustments belong to no month", months, err)
	}
}

// TestAdjust_IDsAreTheSellers: two sellers may have an adjustment under one id, as one ticket may be about both.
func TestAdjust_IDsAreTheSellers(t *testing.T) {
	s := openShop(t)
	must(t, s.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.InsertUser(t.Context(), auth.User{ID: "usr_second", Email: "second@example.com", Role: auth.Seller, CreatedAt: s.now})
	}))
	s.adjust(adjustment("ticket", 100), true)
	n := adjustment("ticket", 200)
	n.Seller = "usr_second"
	if got := s.adjust(n, true); got.Available != 200 || got.Seller != "usr_second" {
		t.Errorf("the second seller's is %+v", got)
	}
	s.wantBalance(0, 100, 100)
}

func TestAdjust_Refusals(t *testing.T) {
	s := openShop(t)
	for name, tt := range map[string]struct {
		change func(*sale.NewAdjustment)
		want   error
		field  string
	}{
		"a buyer":              {func(n *sale.NewAdjustment) { n.Seller = "usr_buyer" }, sale.ErrSellerNotFound, ""},
		"nobody":               {func(n *sale.NewAdjustment) { n.Seller = "usr_nobody" }, sale.ErrSellerNotFound, ""},
		"one's own":            {func(n *sale.NewAdjustment) { n.By.Admin = n.Seller }, nil, "sellerId"},
		"zero":                 {func(n *sale.NewAdjustment) { n.Amount = 0 }, nil, "amount"},
		"too much":             {func(n *sale.NewAdjustment) { n.Amount = money.Max + 1 }, nil, "amount"},
		"too much taken":       {func(n *sale.NewAdjustment) { n.Amount = -money.Max - 1 }, nil, "amount"},
		"no reason":            {func(n *sale.NewAdjustment) { n.Reason = " " }, nil, "reason"},
		"a reason of lines":    {func(n *sale.NewAdjustment) { n.Reason = "a\nb" }, nil, "reason"},
		"a reason that's long": {func(n *sale.NewAdjustment) { n.Reason = strings.Repeat("ü", sale.MaxReason+1) }, nil, "reason"},
		"no note":              {func(n *sale.NewAdjustment) { n.By.Note = "\n" }, nil, "note"},
		"a note that's long":   {func(n *sale.NewAdjustment) { n.By.Note = strings.Repeat("x", 1001) }, nil, "note"},
	} {
		n := adjustment("one", 100)
		tt.change(&n)
		_, _, err := s.sales.Adjust(t.Context(), n)
		if f := fault.From(err); tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (f == nil || f.Details[tt.field] == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.wantBalance(0, 0, 0)
	n := adjustment("one", 100)
	n.Reason = strings.Repeat("ü", sale.MaxReason)
	s.adjust(n, true)
}

// TestAdjust_TotalsHaveALimit leaves everything as it was where a total would become too large.
func TestAdjust_TotalsHaveALimit(t *testing.T) {
	for _, amount := range []money.Amount{money.Max, -money.Max} {
		s := openShop(t)
		var err error
		n := 0
		for ; err == nil && n < 10_000; n++ {
			_, _, err = s.sales.Adjust(t.Context(), adjustment(fmt.Sprint("a", n), amount))
		}
		if !errors.Is(err, ledger.ErrTooLarge) {
			t.Fatalf("adjustment %d of %d: %v", n, amount, err)
		}
		want := money.Amount(n-1) * amount
		s.wantBalance(0, want, want)
	}
}

// TestAdjust_AtOnce repeats one adjustment from many callers, beside others: each is made once.
func TestAdjust_AtOnce(t *testing.T) {
	s := openShop(t)
	const callers, ids = 8, 3
	var created atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for id := range ids {
				a, isNew, err := s.sales.Adjust(context.WithoutCancel(t.Context()), adjustment(fmt.Sprint(id), 100))
				if err != nil || a.ID != fmt.Sprint(id) {
					t.Errorf("adjustment %d: %+v, %v", id, a, err)
				}
				if isNew {
					created.Add(1)
				}
			}
		})
	}
	all.Wait()
	if created.Load() != ids {
		t.Errorf("%d adjustments were made, want %d", created.Load(), ids)
	}
	s.wantBalance(0, ids*100, ids*100)
}

// TestTamperedJournal_AdjustedAgain removes an adjustment from the records. It would be made a second time.
func TestTamperedJournal_AdjustedAgain(t *testing.T) {
	for name, change := range map[string]string{
		"deleted":    `DELETE FROM entries WHERE subject = 'adjustment:one'`,
		"relabelled": `UPDATE entries SET subject = 'adjustment:other' WHERE subject = 'adjustment:one'`,
		"reworded":   `UPDATE entries SET data = REPLACE(data, 'charged twice', 'wrong') WHERE subject = 'adjustment:one'`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openTamperedShop(t, `UPDATE sales SET due_at = due_at`)
			s.release()
			s.adjust(adjustment("one", 100), true)
			s.adjust(adjustment("two", 100), true)
			s.place.ByHand(t, change)
			if a, _, err := s.sales.Adjust(t.Context(), adjustment("one", 100)); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("adjusted: %+v, %v", a, err)
			}
			s.wantBalances(900_000, 5500)
		})
	}
}

// TestAdjust_FormerSeller repeats an adjustment of a user who no longer sells. The answer stays, and no other is made.
func TestAdjust_FormerSeller(t *testing.T) {
	s := openShop(t)
	first := s.adjust(adjustment("one", 100), true)
	s.place.ByHand(t, `UPDATE users SET role = 'buyer' WHERE id = 'usr_seller'`)
	if again := s.adjust(adjustment("one", 100), false); again != first {
		t.Errorf("the repeat is answered with %+v", again)
	}
	if _, _, err := s.sales.Adjust(t.Context(), adjustment("two", 100)); !errors.Is(err, sale.ErrSellerNotFound) {
		t.Errorf("adjusted: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdjustmentOf(t *testing.T) {
	good := func(change func(*ledger.Entry)) ledger.Entry {
		e := ledger.Entry{Number: 7, Posting: ledger.Posting{
			Owner: "usr_seller", Type: ledger.BalanceAdjusted, Subject: "adjustment:a-1", Actor: "admin:usr_ada",
			Data: `{"note":"Case 1.","reason":"A fee.","amount":300}`, Moved: ledger.AdjustBalance(300),
		}}
		change(&e)
		return e
	}
	by := func(actor string) ledger.Entry { return good(func(e *ledger.Entry) { e.Actor = actor }) }
	want := sale.Adjustment{ID: "a-1", Seller: "usr_seller", Amount: 300, Reason: "A fee.", Note: "Case 1.", Entry: 7}
	byAdmin, byOperator, byKey := want, want, want
	byAdmin.Admin, byOperator.Operator, byKey.Key = "usr_ada", "asha:x", "key_1"
	for actor, want := range map[string]sale.Adjustment{"admin:usr_ada": byAdmin, "operator:asha:x": byOperator, "key:key_1": byKey} {
		if got, err := sale.AdjustmentOf(by(actor)); err != nil || got != want {
			t.Errorf("by %s it is %+v, %v; want %+v", actor, got, err, want)
		}
	}
	for name, e := range map[string]ledger.Entry{
		"by a user":      by("user:usr_seller"),
		"by the system":  by("system"),
		"by nobody":      by(""),
		"another type":   good(func(e *ledger.Entry) { e.Type = ledger.SaleRecorded }),
		"another thing":  good(func(e *ledger.Entry) { e.Subject = "sale:a-1" }),
		"another amount": good(func(e *ledger.Entry) { e.Moved = ledger.AdjustBalance(301) }),
		"unreadable":     good(func(e *ledger.Entry) { e.Data = "{" }),
	} {
		if got, err := sale.AdjustmentOf(e); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
