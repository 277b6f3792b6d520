package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/sale"
)

// adjustment is the entry of an adjustment as package sale appends it.
func (b *bench) adjustment(seller, id string, amount money.Amount) ledger.Posting {
	b.Helper()
	made := decision.New(decision.By{Admin: "usr_admin", Note: "Ticket 7."}, decision.AdjustBalance, seller, sale.AdjustmentPrefix+id, b.now)
	data, err := ledger.Facts("id", made.ID, "action", made.Action, "note", made.Note, "reason", "A fee was wrong.", "amount", amount)
	b.must(err)
	return ledger.Posting{
		Owner: seller, At: b.now, Type: ledger.BalanceAdjusted, Subject: made.Subject, Actor: "admin:usr_admin", Data: data, Moved: ledger.AdjustBalance(amount),
	}
}

// testAdjustments lists a seller's adjustments, and finds those that were made twice or by hand.
func testAdjustments(t *testing.T, b *bench) {
	t.Helper()
	for _, seller := range []string{"usr_a", "usr_b"} {
		b.fund(b.seller(seller), 1000)
	}
	b.must(b.append(
		b.adjustment("usr_a", "1", 50), b.posting("usr_a", ledger.PayoutImported, ledger.ReservePayout(20)), b.posting("usr_a", ledger.PayoutFailed, ledger.ReleasePayout(20)),
		b.adjustment("usr_a", "2", -30), b.adjustment("usr_b", "1", 7), b.adjustment("usr_a", "3", 1),
	))
	want := func(before int64, limit int, ids ...string) {
		t.Helper()
		entries, err := b.db.AdjustmentEntries(b.ctx(), "usr_a", before, limit)
		b.must(err)
		var got []string
		for _, e := range entries {
			a, err := sale.AdjustmentOf(e)
			b.must(err)
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(ids, got); diff != "" {
			t.Errorf("below %d: %s", before, diff)
		}
	}
	want(0, 10, "3", "2", "1")
	want(0, 2, "3", "2")
	want(6, 10, "1")
	want(3, 10)
	if decided, err := b.db.Decisions(b.ctx(), "adjustment:1", 10); err != nil || len(decided) != 2 || decided[0].Action != decision.AdjustBalance || decided[0].Note != "Ticket 7." || decided[0].Admin != "usr_admin" {
		t.Errorf("decided was %+v, %v", decided, err)
	}
	b.wantCleanAudit()

	copied := b.tampered()
	for _, tt := range []struct{ change, finding string }{
		{`DELETE FROM entries WHERE owner = 'usr_a' AND subject = 'adjustment:1'`, "totals-match-adjustments"},
		{`UPDATE journals SET earned = earned + 1 WHERE owner = 'usr_a'`, "totals-match-adjustments"},
		{`UPDATE sales SET amount = amount + 1 WHERE seller_id = 'usr_b'`, "totals-match-adjustments"},
		{`UPDATE entries SET subject = 'adjustment:1' WHERE subject = 'adjustment:2'`, "adjustments-are-made-once"},
		{`UPDATE entries SET data = REPLACE(data, '"amount":7}', '"amount":77}') WHERE owner = 'usr_b'`, "adjustments-are-made-once"},
	} {
		if found := copied.found(tt.change); found[tt.finding] == "" {
			t.Errorf("%s breaks %v, want %s among them", tt.change, found, tt.finding)
		}
	}
	copied.hands(`UPDATE entries SET data = REPLACE(data, 'A fee', 'No fee') WHERE subject = 'adjustment:2'`)
	if entries, err := copied.db.AdjustmentEntries(b.ctx(), "usr_a", 0, 10); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("an entry that was changed is listed: %+v, %v", entries, err)
	}
}
