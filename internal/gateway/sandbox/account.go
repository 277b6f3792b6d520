package sandbox

import (
	"database/sql"
	"net/http"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// openingBalance is what a new sandbox's account holds: more than any test pays, and exact in every
// JSON reader.
const openingBalance = 1_000_000_000_000_00

// openAccount puts the first money into a new account.
func (s *Sandbox) openAccount() error {
	return s.records.update(func(t *tx) error {
		var one int
		if ok, err := found(t.row(`SELECT 1 FROM transactions LIMIT 1`).Scan(&one)); err != nil || ok {
			return err
		}
		return s.post(t, 0, openingBalance, s.o.Now())
	})
}

// currentBalance is that of the last transaction.
func (t *tx) currentBalance() (int64, error) {
	if t.balance == nil {
		t.balance = new(int64)
		if _, err := found(t.row(`SELECT balance FROM transactions ORDER BY seq DESC LIMIT 1`).Scan(t.balance)); err != nil {
			t.balance = nil
			return 0, err
		}
	}
	return *t.balance, nil
}

// post adds amount to the account, or takes it when it is below zero. Payout 0 is none: money that
// was put in or taken out by hand.
func (s *Sandbox) post(t *tx, payout, amount int64, now time.Time) error {
	balance, err := t.currentBalance()
	if err != nil {
		return err
	}
	balance += amount
	*t.balance = balance
	err = t.exec(`INSERT INTO transactions (seq, payout, credit, debit, balance, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		s.records.newSeq(), sql.NullInt64{Int64: payout, Valid: payout != 0}, max(amount, 0), max(-amount, 0), balance, now.UnixMicro())
	return err
}

func (s *Sandbox) affords(t *tx, p payout) (bool, error) {
	balance, err := t.currentBalance()
	return balance >= p.amount+payoutFees, err
}

func (s *Sandbox) listBalances(*http.Request) (razorpayx.Collection[razorpayx.BankingBalance], error) {
	var balance int64
	err := s.records.row(`SELECT balance FROM transactions ORDER BY seq DESC LIMIT 1`).Scan(&balance)
	return razorpayx.Collection[razorpayx.BankingBalance]{
		Entity: "collection", Count: 1,
		Items: []razorpayx.BankingBalance{{
			AccountNumber: s.o.AccountNumber, AccountType: "razorpayx_lite", BankName: bankName("RATN"), BankCode: "RATN",
			Currency: s.o.Currency.Code(), Amount: balance, AvailableAmount: balance, RefreshedAt: s.o.Now().Unix(),
		}},
	}, err
}

// transaction is a row; payout 0 is none.
type transaction struct {
	seq, payout, credit, debit, balance, createdAt int64
	misstatement
}

const transactionColumns = `transactions.seq, coalesce(payout, 0), transactions.credit, transactions.debit, balance, created_at, ` + misstatementColumns

func scanTransaction(row scanner) (transaction, error) {
	var t transaction
	m := &t.misstatement
	err := row.Scan(&t.seq, &t.payout, &t.credit, &t.debit, &t.balance, &t.createdAt, &m.credit, &m.debit, &m.fees, &m.currency, &m.entity, &m.about)
	return t, err
}

func (s *Sandbox) showTransaction(t transaction) (razorpayx.Transaction, error) {
	out := razorpayx.Transaction{
		ID: vendorID("txn_", t.seq), Entity: "transaction", AccountNumber: s.o.AccountNumber, Amount: t.credit + t.debit,
		Currency: s.o.Currency.Code(), Credit: t.credit, Debit: t.debit, Balance: t.balance, CreatedAt: seconds(t.createdAt),
	}
	if t.payout == 0 {
		out.Source = razorpayx.TransactionSource{
			ID: vendorID("bt_", t.seq), Entity: "bank_transfer", PayerName: "Sandbox", PayerAccount: "000000000000",
			PayerIFSC: "SBOX0000001", BankReference: newUTR("NEFT", t.seq, time.UnixMicro(t.createdAt)), Mode: "NEFT", Amount: out.Amount,
		}
		return t.misstate(out), nil
	}
	p, err := payoutBySeq(s.records, t.payout)
	from := s.showPayout(p)
	out.Source = razorpayx.TransactionSource{
		ID: from.ID, Entity: "payout", FundAccountID: from.FundAccountID, Mode: from.Mode, Amount: from.Amount, Notes: &from.Notes,
		Fees: from.Fees, Tax: from.Tax, Status: from.Status, UTR: &from.UTR, CreatedAt: from.CreatedAt,
	}
	return t.misstate(out), err
}

func (s *Sandbox) readTransaction(r *http.Request) (razorpayx.Transaction, error) {
	t, err := orUnknown(scanTransaction(s.records.row(`SELECT `+transactionColumns+` FROM `+statement+` WHERE transactions.seq = $1 AND `+shown,
		parseID("txn_", r.PathValue("id")))))
	if err != nil {
		return razorpayx.Transaction{}, err
	}
	return s.showTransaction(t)
}

func (s *Sandbox) listTransactions(r *http.Request) (razorpayx.Collection[razorpayx.Transaction], error) {
	var none razorpayx.Collection[razorpayx.Transaction]
	if err := s.ours(r.URL.Query().Get("account_number")); err != nil {
		return none, err
	}
	p, err := readPage(r)
	if err != nil {
		return none, err
	}
	f := filter{conditions: []string{shown}}
	if err := f.between(r); err != nil {
		return none, err
	}
	query, args := f.query(transactionColumns, statement, p)
	return collect(s.records, query, args, scanTransaction, s.showTransaction)
}
