package ledger_test

import (
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// FuzzChain adds two transfers to the same chain: they lead to the same head only if they are the same.
func FuzzChain(f *testing.F) {
	f.Fuzz(func(t *testing.T, at, amount int64, kind, debit, credit, ref string, at2, amount2 int64, kind2, debit2, credit2, ref2 string) {
		one := ledger.Transfer{Kind: ledger.Kind(kind), Debit: ledger.Account(debit), Credit: ledger.Account(credit), Amount: money.Amount(amount), Ref: ref}
		two := ledger.Transfer{Kind: ledger.Kind(kind2), Debit: ledger.Account(debit2), Credit: ledger.Account(credit2), Amount: money.Amount(amount2), Ref: ref2}
		chain := ledger.NewChain("usr_1")
		first, second := chain.Add(time.UnixMicro(at), one), chain.Add(time.UnixMicro(at2), two)
		if same := at == at2 && one == two; same != (first.Head == second.Head) {
			t.Errorf("%+v at %d and %+v at %d lead to %s and %s", one, at, two, at2, first.Head, second.Head)
		}
		if links := chain.Extend(ledger.Links(time.UnixMicro(at), []ledger.Transfer{one})...); links != first {
			t.Errorf("linked %+v, added %+v", links, first)
		}
	})
}
