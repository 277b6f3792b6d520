package sandbox

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// Health is the answer of GET /control/health.
type Health struct {
	Status string `json:"status"`
}

func (s *Sandbox) health(*http.Request) (Health, error) {
	var one int
	return Health{"ok"}, s.records.row(`SELECT 1`).Scan(&one)
}

// Move is all money that moved under one of our references.
type Move struct {
	ReferenceID string `json:"reference_id"`
	// PayoutID is the newest payout under the reference; Status and UTR are its own.
	PayoutID string `json:"payout_id"`
	// Debit went to the beneficiary and Credit came back, without fees; Net is what stayed there.
	Debit  int64 `json:"debit"`
	Credit int64 `json:"credit"`
	Net    int64 `json:"net"`
	// Count is how many payouts took money: more than one has paid twice.
	Count        int    `json:"count"`
	Status       string `json:"status"`
	UTR          string `json:"utr"`
	AccountLast4 string `json:"account_last4"`
}

func scanMove(row scanner) (Move, error) {
	var (
		m   Move
		seq int64
	)
	err := row.Scan(&m.ReferenceID, &seq, &m.Debit, &m.Credit, &m.Count, &m.Status, &m.UTR, &m.AccountLast4)
	m.PayoutID, m.Net = vendorID("pout_", seq), m.Debit-m.Credit
	return m, err
}

// streamMoves writes moves as they are read, however many there are. Status, UTR and account come
// from the row of the largest seq (SQLite docs: bare columns in an aggregate query).
func (s *Sandbox) streamMoves(w http.ResponseWriter, r *http.Request) {
	where, args := "", []any{}
	if reference := r.URL.Query().Get("reference_id"); reference != "" {
		where, args = " AND reference_id = $1", []any{reference}
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriter(w)
	separator := "["
	err := s.records.each(`SELECT reference_id, max(seq), sum(amount), sum(amount * credited), count(*), status, utr, last4
		FROM payouts WHERE debited = 1`+where+` GROUP BY reference_id ORDER BY reference_id`, func(row scanner) error {
		m, err := scanMove(row)
		if err != nil {
			return err
		}
		line, err := json.Marshal(m)
		_, _ = out.WriteString(separator)
		_, _ = out.Write(line)
		separator = ",\n"
		return err
	}, args...)
	if err != nil {
		s.o.Logger.ErrorContext(r.Context(), "sandbox transfers not listed", slog.Any("error", err))
		panic(http.ErrAbortHandler) // half a list must not look like a whole one
	}
	if separator == "[" {
		_, _ = out.WriteString("[")
	}
	_, _ = out.WriteString("]\n")
	_ = out.Flush() // the caller has gone
}

// Deliveries is the answer of GET /control/webhooks: how many events wait, arrived or were given up,
// and the newest of them.
type Deliveries struct {
	Waiting   int        `json:"waiting"`
	Delivered int        `json:"delivered"`
	GivenUp   int        `json:"given_up"`
	Events    []Delivery `json:"events"`
}

// Delivery is how the delivery of an event stands. Instants are seconds since 1970, null for never.
type Delivery struct {
	EventID     string `json:"event_id"`
	Event       string `json:"event"`
	PayoutID    string `json:"payout_id,omitempty"`
	ReferenceID string `json:"reference_id,omitempty"`
	Copies      int    `json:"copies"`
	Attempts    int    `json:"attempts"`
	LastStatus  int    `json:"last_status"`
	CreatedAt   int64  `json:"created_at"`
	DeliveredAt *int64 `json:"delivered_at"`
	DueAt       *int64 `json:"due_at"`
}

func scanDelivery(row scanner) (Delivery, error) {
	var (
		d           Delivery
		seq, payout int64
	)
	err := row.Scan(&seq, &d.Event, &payout, &d.ReferenceID, &d.Copies, &d.Attempts, &d.LastStatus, &d.CreatedAt, &d.DeliveredAt, &d.DueAt)
	d.EventID = vendorID("evt_", seq)
	if payout != 0 {
		d.PayoutID = vendorID("pout_", payout)
	}
	return d, err
}

func (s *Sandbox) listEvents(r *http.Request) (Deliveries, error) {
	var d Deliveries
	limit, err := readInt(r, "limit", 100, 1, 1000)
	if err != nil {
		return d, err
	}
	err = s.records.row(`SELECT count(due_at), count(delivered_at), count(*) FROM events`).Scan(&d.Waiting, &d.Delivered, &d.GivenUp)
	if err != nil {
		return d, err
	}
	d.GivenUp -= d.Waiting + d.Delivered
	where, args := "", []any{limit}
	if reference := r.URL.Query().Get("reference_id"); reference != "" {
		where, args = "WHERE p.reference_id = $2", append(args, reference)
	}
	d.Events, err = rowsOf(s.records, scanDelivery, `SELECT e.seq, e.name, coalesce(e.payout, 0), coalesce(p.reference_id, ''), e.copies,
		e.attempts, e.last_status, e.created_at / 1000000, e.delivered_at / 1000000, e.due_at / 1000000
		FROM events e LEFT JOIN payouts p ON p.seq = e.payout `+where+` ORDER BY e.seq DESC LIMIT $1`, args...)
	if d.Events == nil {
		d.Events = []Delivery{}
	}
	return d, err
}

// Faults is the answer to every call about faults: those that are yet to happen.
type Faults struct {
	Faults []Fault `json:"faults"`
}

func (s *Sandbox) listFaults(*http.Request) (Faults, error) { return Faults{s.faults.all()}, nil }

func (s *Sandbox) addFault(r *http.Request) (Faults, error) {
	in, _, err := readBody[Fault](r)
	if err != nil {
		return Faults{}, err
	}
	fault, err := in.prepared()
	if err != nil {
		return Faults{}, err
	}
	s.faults.add(fault)
	return s.listFaults(r)
}

func (s *Sandbox) clearFaults(r *http.Request) (Faults, error) {
	s.faults.clear()
	return s.listFaults(r)
}

// Balance is what our account holds.
type Balance struct {
	Amount *int64 `json:"amount"`
}

func (s *Sandbox) setBalance(r *http.Request) (Balance, error) {
	in, _, err := readBody[Balance](r)
	if err == nil && in.Amount == nil {
		err = invalid("amount", "The amount field is required.")
	}
	if err != nil {
		return in, err
	}
	err = s.records.update(func(t *tx) error {
		balance, err := t.currentBalance()
		if err != nil {
			return err
		}
		return s.post(t, 0, *in.Amount-balance, s.o.Now())
	})
	s.funded.Store(true)
	nudge(s.settleSoon)
	return in, err
}

// SettleAfter is how long each step of a payout takes from now on.
type SettleAfter struct {
	SettleAfter string `json:"settle_after"`
}

func (s *Sandbox) setSettleAfter(r *http.Request) (SettleAfter, error) {
	in, _, err := readBody[SettleAfter](r)
	if err != nil {
		return in, err
	}
	d, err := time.ParseDuration(in.SettleAfter)
	if err != nil || d < 0 {
		return in, invalid("settle_after", `It must be a duration such as "1.5s".`)
	}
	s.settleAfter.Store(int64(d))
	return in, nil
}

// HandMove is where to move a payout to.
type HandMove struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (s *Sandbox) movePayoutByHand(r *http.Request) (razorpayx.Payout, error) {
	in, _, err := readBody[HandMove](r)
	if err != nil {
		return razorpayx.Payout{}, err
	}
	if _, known := eventNames[in.Status]; !known && in.Status != razorpayx.StatusCancelled && in.Status != razorpayx.StatusScheduled {
		return razorpayx.Payout{}, invalid("status", "There is no such status.")
	}
	var p payout
	err = s.update(func(t *tx) (err error) {
		if p, err = findPayout(t, r.PathValue("id")); err != nil {
			return err
		}
		if p.endedUnpaid() && !(payout{status: in.Status}).endedUnpaid() {
			return invalid("status", "The payout has ended without paying, and stays so.")
		}
		p.step = len(storyOf(p.last4).steps)
		return s.move(t, &p, step{in.Status, in.Reason, in.Status == razorpayx.StatusProcessed}, s.o.Now(), savePayout)
	})
	return s.showPayout(p), err
}

// findPayout finds a payout by its id, or the newest by our reference.
func findPayout(q queryer, idOrReference string) (payout, error) {
	if strings.HasPrefix(idOrReference, "pout_") {
		return payoutBySeq(q, parseID("pout_", idOrReference))
	}
	return orUnknown(scanPayout(q.row(`SELECT `+payoutColumns+` FROM payouts WHERE reference_id = $1 ORDER BY seq DESC LIMIT 1`, idOrReference)))
}
