package sandbox

import (
	"net/http"
	"strings"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// statement is the transactions as the API lists them.
const (
	statement           = `transactions LEFT JOIN misstatements m USING (seq)`
	shown               = `coalesce(m.hidden, 0) = 0`
	misstatementColumns = `m.credit, m.debit, m.fees, m.currency, m.entity, coalesce(m.about, '')`
)

// misstatement is a false version of a transaction; nil is the true one.
type misstatement struct {
	credit, debit, fees *int64
	currency, entity    *string
	about               string
}

// misstate tells a transaction otherwise.
func (m misstatement) misstate(t razorpayx.Transaction) razorpayx.Transaction {
	for _, change := range []struct{ to, from *int64 }{{&t.Credit, m.credit}, {&t.Debit, m.debit}, {&t.Source.Fees, m.fees}} {
		if change.from != nil {
			*change.to = *change.from
		}
	}
	t.Amount = t.Credit + t.Debit
	if m.currency != nil {
		t.Currency = *m.currency
	}
	if m.entity == nil {
		return t
	}
	t.Source = razorpayx.TransactionSource{ID: "src_" + strings.TrimPrefix(t.ID, "txn_"), Entity: *m.entity, Amount: t.Amount, Fees: t.Source.Fees}
	switch {
	case *m.entity == "payout":
		t.Source.ID = "pout_" + strings.TrimPrefix(t.ID, "txn_")
		if m.about != "" {
			t.Source.ID = m.about
		}
	case m.about != "":
		t.Source.PayoutID = m.about
	}
	return t
}

// StatementChange makes the statement of our account wrong.
type StatementChange struct {
	// Change is "drop" (the line is no longer listed), "double" (the money moves once more), "alter" (the line
	// is listed with other figures) or "add" (money moves that nobody ordered).
	Change string `json:"change"`
	// Line is the line's id, or a payout by its id or our reference, whose newest line is meant. With "add"
	// it is the payout that the line is to name, which there need not be, or empty.
	Line string `json:"line,omitempty"`
	// Debit, Credit, Fees and Currency are the figures of a changed line; of an added one Debit or Credit is
	// what moves, and Entity the kind of its source, such as payout, reversal or adjustment.
	Debit    *int64  `json:"debit,omitempty"`
	Credit   *int64  `json:"credit,omitempty"`
	Fees     *int64  `json:"fees,omitempty"`
	Currency *string `json:"currency,omitempty"`
	Entity   *string `json:"entity,omitempty"`
}

func (s *Sandbox) changeStatement(r *http.Request) (razorpayx.Transaction, error) {
	in, _, err := readBody[StatementChange](r)
	if err != nil {
		return razorpayx.Transaction{}, err
	}
	var seq int64
	err = s.update(func(t *tx) (err error) {
		if in.Change == "add" {
			seq, err = s.addLine(t, in)
			return err
		}
		line, err := findLine(t, in.Line)
		if err != nil {
			return err
		}
		switch seq = line.seq; in.Change {
		case "drop":
			return misstateLine(t, seq, 1, in)
		case "alter":
			return misstateLine(t, seq, 0, in)
		case "double":
			seq, err = s.postAgain(t, line, s.o.Now())
			return err
		default:
			return invalid("change", `The change must be "drop", "double", "alter" or "add".`)
		}
	})
	if err != nil {
		return razorpayx.Transaction{}, err
	}
	line, err := findLine(s.records, vendorID("txn_", seq))
	if err != nil {
		return razorpayx.Transaction{}, err
	}
	return s.showTransaction(line)
}

// postAgain moves a line's money once more.
func (s *Sandbox) postAgain(t *tx, line transaction, now time.Time) (int64, error) {
	if err := s.post(t, line.payout, line.credit-line.debit, now); err != nil {
		return 0, err
	}
	return newestLine(t)
}

// addLine moves money that nobody ordered.
func (s *Sandbox) addLine(t *tx, in StatementChange) (int64, error) {
	debit, credit := int64(0), int64(0)
	if in.Debit != nil {
		debit = *in.Debit
	}
	if in.Credit != nil {
		credit = *in.Credit
	}
	if in.Entity == nil || debit < 0 || credit < 0 || (debit > 0) == (credit > 0) {
		return 0, invalid("debit", "A line that is added needs an entity, and either a debit or a credit.")
	}
	about := in.Line
	if about != "" { // by its id, where the reference is one of ours
		if p, err := findPayout(t, about); err == nil {
			about = vendorID("pout_", p.seq)
		}
	}
	if err := s.post(t, 0, credit-debit, s.o.Now()); err != nil {
		return 0, err
	}
	seq, err := newestLine(t)
	if err != nil {
		return 0, err
	}
	return seq, t.exec(`INSERT INTO misstatements (seq, hidden, fees, currency, entity, about) VALUES ($1, 0, $2, $3, $4, $5)`,
		seq, in.Fees, in.Currency, *in.Entity, about)
}

func newestLine(t *tx) (seq int64, err error) {
	err = t.row(`SELECT max(seq) FROM transactions`).Scan(&seq)
	return seq, err
}

func misstateLine(t *tx, seq, hidden int64, in StatementChange) error {
	return t.exec(`INSERT INTO misstatements (seq, hidden, credit, debit, fees, currency, about) VALUES ($1, $2, $3, $4, $5, $6, '')
		ON CONFLICT (seq) DO UPDATE SET hidden = $2, credit = $3, debit = $4, fees = $5, currency = $6`,
		seq, hidden, in.Credit, in.Debit, in.Fees, in.Currency)
}

// findLine finds a line by its id, or the newest of a payout.
func findLine(q queryer, name string) (transaction, error) {
	if strings.HasPrefix(name, "txn_") {
		return orUnknown(scanTransaction(q.row(`SELECT `+transactionColumns+` FROM `+statement+` WHERE transactions.seq = $1`, parseID("txn_", name))))
	}
	p, err := findPayout(q, name)
	if err != nil {
		return transaction{}, err
	}
	return orUnknown(scanTransaction(q.row(`SELECT `+transactionColumns+` FROM `+statement+` WHERE payout = $1 ORDER BY transactions.seq DESC LIMIT 1`, p.seq)))
}

// rightStatement tells every line as it was.
func (s *Sandbox) rightStatement(*http.Request) (struct{}, error) {
	return struct{}{}, s.update(func(t *tx) error {
		if err := t.exec(`DELETE FROM misstatements WHERE entity IS NULL`); err != nil {
			return err
		}
		return t.exec(`UPDATE misstatements SET hidden = 0, credit = NULL, debit = NULL, fees = NULL, currency = NULL`)
	})
}
