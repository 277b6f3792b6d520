package dashboard

import (
	"context"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

const (
	// bookPage is how many transfers a page of a seller's book has.
	bookPage = 30
	// bookReach is how many transfers may lie between the newest and a page for which what the accounts
	// held is still worked out.
	bookReach = 5000
	// bookTries is how often a balance is read again that moved while it was read.
	bookTries = 3
)

// book is a page of a seller's transfers, the newest first.
type book struct {
	Rows []transferRow
	// After says that each row tells what the accounts held after it. It is not known where the seller's
	// balance moved while it was read, and too far from the newest transfer.
	After bool
	// Newest and Older are the addresses of the newest page and the next one, or "".
	Newest, Older string
}

// transferRow is a transfer in a seller's book.
type transferRow struct {
	ledger.Entry
	// After is what the accounts held after it.
	After holdings
}

// holdings are what a seller's accounts hold.
type holdings struct{ Pending, Available, InTransit money.Amount }

// What says what it is for.
func (t transferRow) What() string { return kindWords(t.Kind) }

// From and To are the accounts in words.
func (t transferRow) From() string { return accountWords(t.Debit) }

// To is where it went.
func (t transferRow) To() string { return accountWords(t.Credit) }

// RefPath is the page of the payout that it is for, or "".
func (t transferRow) RefPath() string {
	if len(t.Ref) > 4 && t.Ref[:4] == "pyt_" {
		return adminHome + "/payouts/" + t.Ref
	}
	return ""
}

// readBook reads a page of a seller's transfers, numbered below before, and the seller's balance.
func (d *dashboard) readBook(ctx context.Context, seller string, before int64) (book, ledger.Balance, error) {
	newest, balance, steady, err := d.steadyBalance(ctx, seller)
	if err != nil {
		return book{}, balance, err
	}
	entries, err := d.o.Books.Entries(ctx, seller, before, bookPage)
	if err != nil {
		return book{}, balance, err
	}
	b := book{After: steady}
	for _, e := range entries {
		b.Rows = append(b.Rows, transferRow{Entry: e})
	}
	if len(b.Rows) == 0 {
		b.After = false
		return b, balance, nil
	}
	first, last := b.Rows[0].Number, b.Rows[len(b.Rows)-1].Number
	if first != newest {
		b.Newest = bookAddress(seller, 0)
	}
	if last > 1 {
		b.Older = bookAddress(seller, last)
	}
	if b.After {
		b.After, err = d.holdingsAfter(ctx, seller, newest, balance, b.Rows)
	}
	return b, balance, err
}

// steadyBalance reads a balance and the number of the transfer that it is the balance after. Transfers
// are numbered without a gap, so if the newest is the same before and after, nothing came between.
func (d *dashboard) steadyBalance(ctx context.Context, seller string) (newest int64, b ledger.Balance, steady bool, err error) {
	for range bookTries {
		if newest, err = d.newestTransfer(ctx, seller); err != nil {
			return 0, b, false, err
		}
		if b, err = d.o.Books.Balance(ctx, seller); err != nil {
			return 0, b, false, err
		}
		again, err := d.newestTransfer(ctx, seller)
		if err != nil || again == newest {
			return newest, b, err == nil, err
		}
	}
	return newest, b, false, nil
}

// newestTransfer is the number of a seller's newest transfer, or 0.
func (d *dashboard) newestTransfer(ctx context.Context, seller string) (int64, error) {
	entries, err := d.o.Books.Entries(ctx, seller, 0, 1)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	return entries[0].Number, nil
}

// holdingsAfter works out what the accounts held after each row, back from the balance after the
// newest transfer, and reports whether that is near enough.
func (d *dashboard) holdingsAfter(ctx context.Context, seller string, newest int64, balance ledger.Balance, rows []transferRow) (bool, error) {
	held := holdings{balance.Pending, balance.Available, balance.InTransit}
	between := newest - rows[0].Number
	if between < 0 || between > bookReach {
		return false, nil
	}
	if between > 0 {
		later, err := d.o.Books.Entries(ctx, seller, newest+1, int(between))
		if err != nil {
			return false, err
		}
		for _, e := range later {
			held = held.before(e.Transfer)
		}
	}
	for i := range rows {
		rows[i].After = held
		held = held.before(rows[i].Transfer)
	}
	return true, nil
}

// before is what the accounts held before a transfer.
func (h holdings) before(t ledger.Transfer) holdings {
	h.add(t.Debit, t.Amount)
	h.add(t.Credit, -t.Amount)
	return h
}

// add changes an account of the seller's.
func (h *holdings) add(a ledger.Account, amount money.Amount) {
	switch a {
	case ledger.Pending:
		h.Pending += amount
	case ledger.Available:
		h.Available += amount
	case ledger.InTransit:
		h.InTransit += amount
	default: // the platform's
	}
}
