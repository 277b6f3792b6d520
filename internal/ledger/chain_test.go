package ledger_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// TestTheChainIsAsSpecified holds the chain to vectors that were not made by this program.
func TestTheChainIsAsSpecified(t *testing.T) {
	data, err := os.ReadFile("testdata/chain.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Seller    string
		First     ledger.Hash
		Transfers []struct {
			Number        int64
			At            int64
			Kind          ledger.Kind
			Debit, Credit ledger.Account
			Amount        money.Amount
			Ref           string
			Entry         string
			EntryHash     ledger.Hash `json:"entry_hash"`
			Head          ledger.Hash
		}
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	chain := ledger.NewChain(want.Seller)
	if chain.Head != want.First {
		t.Errorf("the first head is %s, want %s", chain.Head, want.First)
	}
	if len(want.Transfers) == 0 {
		t.Fatal("there are no vectors")
	}
	for _, v := range want.Transfers {
		transfer := ledger.Transfer{Kind: v.Kind, Debit: v.Debit, Credit: v.Credit, Amount: v.Amount, Ref: v.Ref}
		at := time.UnixMicro(v.At)
		chain = chain.Add(at, transfer)
		if got := chain.EntryHash(at, transfer); got != v.EntryHash || got != ledger.HashOf(v.Entry) {
			t.Errorf("entry %d has the hash %s, want %s, that of %q", v.Number, got, v.EntryHash, v.Entry)
		}
		if chain.Number != v.Number || chain.Head != v.Head {
			t.Errorf("after %d transfers the head is %s, want %s after %d", chain.Number, chain.Head, v.Head, v.Number)
		}
	}
}

// TestPostingsExtendTheChainLikeTheirTransfers compares the two ways to build a chain: where the standing is
// known, and where only what a posting adds to it is.
func TestPostingsExtendTheChainLikeTheirTransfers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		byPosting, byTransfer := ledger.NewChain("usr_a"), ledger.NewChain("usr_a")
		for _, posting := range rapid.SliceOfN(rapid.SliceOfN(anyTransfer(), 1, ledger.MaxTransfers), 0, 5).Draw(t, "postings") {
			at := anyTime(t)
			byPosting = byPosting.Extend(ledger.Links(at, posting)...)
			for _, transfer := range posting {
				byTransfer = byTransfer.Add(at, transfer)
			}
		}
		if byPosting != byTransfer {
			t.Fatalf("%+v by postings, %+v by transfers", byPosting, byTransfer)
		}
	})
}

// TestNothingOfAChainCanChange changes, drops, adds or swaps transfers of a book, and wants another head.
func TestNothingOfAChainCanChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := rapid.SliceOfN(anyEntry(), 1, 8).Draw(t, "book")
		changed := slices.Clone(book)
		i := rapid.IntRange(0, len(book)-1).Draw(t, "where")
		e := &changed[i]
		switch rapid.SampledFrom([]string{"at", "kind", "debit", "credit", "amount", "ref", "drop", "insert", "swap"}).Draw(t, "what") {
		case "at":
			e.At = e.At.Add(time.Duration(rapid.Int64Range(1, 1000).Draw(t, "later")) * time.Microsecond)
		case "kind":
			e.Kind = rapid.Map(anyTransfer(), func(t ledger.Transfer) ledger.Kind { return t.Kind }).Draw(t, "kind")
		case "debit":
			e.Debit = rapid.Map(anyTransfer(), func(t ledger.Transfer) ledger.Account { return t.Debit }).Draw(t, "debit")
		case "credit":
			e.Credit = rapid.Map(anyTransfer(), func(t ledger.Transfer) ledger.Account { return t.Credit }).Draw(t, "credit")
		case "amount":
			e.Amount++
		case "ref":
			e.Ref = rapid.String().Draw(t, "ref")
		case "drop":
			changed = slices.Delete(changed, i, i+1)
		case "insert":
			changed = slices.Insert(changed, i, anyEntry().Draw(t, "new"))
		case "swap":
			j := rapid.IntRange(0, len(book)-1).Draw(t, "with")
			changed[i], changed[j] = changed[j], changed[i]
		}
		if same, isSame := headOf("usr_a", changed) == headOf("usr_a", book), slices.Equal(changed, book); same != isSame {
			t.Fatalf("%+v and %+v have the same head: %t", book, changed, same)
		}
		if headOf("usr_a", book) == headOf("usr_b", book) {
			t.Fatal("two sellers' chains have the same head")
		}
	})
}

func headOf(seller string, book []ledger.Entry) ledger.Hash {
	chain := ledger.NewChain(seller)
	for _, e := range book {
		chain = chain.Add(e.At, e.Transfer)
	}
	return chain.Head
}

func anyEntry() *rapid.Generator[ledger.Entry] {
	return rapid.Custom(func(t *rapid.T) ledger.Entry {
		return ledger.Entry{At: anyTime(t), Transfer: anyTransfer().Draw(t, "transfer")}
	})
}

func anyTime(t *rapid.T) time.Time {
	return time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "at"))
}

// anyTransfer is nothing that a recipe makes: its texts try to be taken for each other.
func anyTransfer() *rapid.Generator[ledger.Transfer] {
	return rapid.Custom(func(t *rapid.T) ledger.Transfer {
		text := rapid.SampledFrom([]string{"", "a", "1:a", "a 1:a", "seller:pending", "seller:available", "14:seller:pending"})
		return ledger.Transfer{
			Kind:   ledger.Kind(text.Draw(t, "kind")),
			Debit:  ledger.Account(text.Draw(t, "debit")),
			Credit: ledger.Account(text.Draw(t, "credit")),
			Amount: money.Amount(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount")),
			Ref:    text.Draw(t, "ref"),
		}
	})
}
