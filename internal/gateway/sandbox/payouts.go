package sandbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// Fees of a payout, of which the tax is a part, in minor units.
const (
	payoutFees = 590
	payoutTax  = 90
)

// payout is a row.
type payout struct {
	seq         int64
	fundAccount int64
	last4       string
	amount      int64
	mode        string
	purpose     string
	referenceID string
	narration   string
	notes       string
	status      string
	reason      string
	utr         string
	// step is how many steps of its story it took.
	step int
	// debited means that it took its amount from our account, credited that it returned it.
	debited   bool
	credited  bool
	createdAt int64
	// dueAt is when its next step is, nil for never.
	dueAt *int64
}

const payoutColumns = `seq, fund_account, last4, amount, mode, purpose, reference_id, narration, notes, status, reason,
	utr, step, debited, credited, created_at, due_at`

func scanPayout(row scanner) (payout, error) {
	var p payout
	err := row.Scan(&p.seq, &p.fundAccount, &p.last4, &p.amount, &p.mode, &p.purpose, &p.referenceID, &p.narration,
		&p.notes, &p.status, &p.reason, &p.utr, &p.step, &p.debited, &p.credited, &p.createdAt, &p.dueAt)
	return p, err
}

func (s *Sandbox) showPayout(p payout) razorpayx.Payout {
	out := razorpayx.Payout{
		ID: vendorID("pout_", p.seq), Entity: "payout", FundAccountID: vendorID("fa_", p.fundAccount),
		Amount: p.amount, Currency: s.o.Currency.Code(), Notes: parseNotes(p.notes), Status: p.status,
		UTR: razorpayx.Text(p.utr), Mode: p.mode, Purpose: p.purpose, ReferenceID: razorpayx.Text(p.referenceID),
		Narration: razorpayx.Text(p.narration), DebitAccountNumber: "null", // the vendor's own word for none
		StatusDetails: statusDetails(p.reason), CreatedAt: seconds(p.createdAt),
	}
	if p.debited {
		out.Fees, out.Tax, out.DebitAccountNumber = payoutFees, payoutTax, s.o.AccountNumber
	}
	if p.status == razorpayx.StatusFailed || p.status == razorpayx.StatusReversed {
		out.FailureReason = why[p.reason].Description
	}
	return out
}

var (
	narrationPattern = regexp.MustCompile(`^[A-Za-z0-9 ]*$`)
	purposes         = []string{"refund", "cashback", "payout", "salary", "utility bill", "vendor bill"}
	// amounts by mode, least and most, in minor units.
	amounts = map[string][2]int64{
		"IMPS": {razorpayx.MinAmount, 500_000_00},
		"NEFT": {razorpayx.MinAmount, 1 << 53},
		"RTGS": {200_000_00, 1 << 53},
	}
)

func (s *Sandbox) checkPayout(in razorpayx.PayoutRequest) error {
	if err := s.ours(in.AccountNumber); err != nil {
		return err
	}
	limits, knownMode := amounts[in.Mode]
	switch {
	case in.FundAccountID == "":
		return invalid("fund_account_id", "The fund account id field is required.")
	case in.Amount < razorpayx.MinAmount:
		return invalid("amount", "The amount must be at least 100.")
	case in.Currency != s.o.Currency.Code():
		return invalid("currency", "The currency is not supported.")
	case !knownMode:
		return invalid("mode", "Payout mode is invalid")
	case in.Amount < limits[0] || in.Amount > limits[1]:
		return invalid("amount", fmt.Sprintf("The amount is outside the limits of %s.", in.Mode))
	case !slices.Contains(purposes, in.Purpose):
		return invalid("purpose", "Invalid purpose: "+in.Purpose)
	case len(in.ReferenceID) > razorpayx.MaxReference:
		return invalid("reference_id", "The reference id may not be greater than 40 characters.")
	case len(in.Narration) > razorpayx.MaxNarration || !narrationPattern.MatchString(in.Narration):
		return invalid("narration", "The narration format is invalid.")
	}
	return nil
}

func (s *Sandbox) createPayout(r *http.Request) (razorpayx.Payout, error) {
	key := r.Header.Get(razorpayx.IdempotencyHeader)
	if !razorpayx.ValidKey(key) {
		return razorpayx.Payout{}, invalid(razorpayx.IdempotencyHeader, "The X-Payout-Idempotency header must be 4 to 36 letters, digits, hyphens, underscores or spaces.")
	}
	in, body, err := readBody[razorpayx.PayoutRequest](r)
	if err != nil {
		return razorpayx.Payout{}, err
	}
	if err := s.checkPayout(in); err != nil {
		return razorpayx.Payout{}, err
	}
	hash := sha256.Sum256(body)
	p, repeated, err := s.insertPayout(in, key, hash[:])
	if errors.Is(err, errOrderLost) {
		panic(http.ErrAbortHandler) // net/http's own way to cut a connection
	}
	if err != nil {
		return razorpayx.Payout{}, err
	}
	if story := storyOf(p.last4); !repeated && story.eventsFirst {
		s.settleAndDeliver(r.Context(), p.seq)
	} else if !repeated && story.answerLost {
		panic(http.ErrAbortHandler) // net/http's own way to cut a connection
	}
	return s.showPayout(p), nil
}

// errOrderLost ends a request as if it had never arrived.
var errOrderLost = errors.New("sandbox: the order is lost")

// insertPayout makes a payout, or finds the one that was made under the key and reports that it is a
// repeat.
func (s *Sandbox) insertPayout(in razorpayx.PayoutRequest, key string, hash []byte) (p payout, repeated bool, err error) {
	err = s.update(func(t *tx) (err error) {
		if p, repeated, err = s.findRepeat(t, key, hash); err != nil || repeated {
			return err
		}
		if p, err = s.draft(t, in); err != nil {
			return err
		}
		if storyOf(p.last4).orderLost {
			return errOrderLost
		}
		affordable, err := s.affords(t, p)
		if err != nil {
			return err
		}
		change := begun
		if storyOf(p.last4).queued {
			change = bankDown
		}
		if !affordable && !in.QueueIfLowBalance {
			return errLowBalance
		} else if !affordable {
			change = waits
		}
		return s.move(t, &p, change, s.o.Now(), func(t *tx, p payout) error {
			err := t.exec(`INSERT INTO payouts (idempotency_key, body_hash, `+payoutColumns+`)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`, key, hash,
				p.seq, p.fundAccount, p.last4, p.amount, p.mode, p.purpose, p.referenceID, p.narration, p.notes,
				p.status, p.reason, p.utr, p.step, p.debited, p.credited, p.createdAt, p.dueAt)
			return err
		})
	})
	return p, repeated, err
}

// findRepeat finds the payout that was made under the key, as it is now, and reports whether there is
// one. It refuses another body than the first. A key that the profile honours no longer finds nothing.
func (s *Sandbox) findRepeat(t *tx, key string, hash []byte) (payout, bool, error) {
	var (
		seq   int64
		first []byte
	)
	repeated, err := found(t.row(`SELECT seq, body_hash FROM payouts WHERE idempotency_key = $1 AND created_at > $2
		ORDER BY seq DESC LIMIT 1`, key, s.o.Profile.keysHonouredSince(s.o.Now())).Scan(&seq, &first))
	if err != nil || !repeated {
		return payout{}, false, err
	}
	if !bytes.Equal(first, hash) {
		return payout{}, false, errOtherBody
	}
	p, err := payoutBySeq(t, seq)
	return p, true, err
}

// draft is a payout before anything has happened to it.
func (s *Sandbox) draft(t *tx, in razorpayx.PayoutRequest) (payout, error) {
	account, err := findBeneficiary(t, in.FundAccountID)
	if err != nil {
		return payout{}, err
	}
	notes, err := s.notesText(in.Notes)
	return payout{
		seq: s.records.newSeq(), fundAccount: account.seq, last4: account.last4, amount: in.Amount, mode: in.Mode,
		purpose: in.Purpose, referenceID: in.ReferenceID, narration: in.Narration, notes: notes, createdAt: s.o.Now().UnixMicro(),
	}, err
}

func payoutBySeq(q queryer, seq int64) (payout, error) {
	return orUnknown(scanPayout(q.row(`SELECT `+payoutColumns+` FROM payouts WHERE seq = $1`, seq)))
}

// move changes a payout's status, moves the money that goes with it, sets its next step, saves and
// announces it. All changes of payouts are made here.
func (s *Sandbox) move(t *tx, p *payout, change step, now time.Time, save func(*tx, payout) error) error {
	before := *p
	p.status, p.reason = change.status, change.reason
	if change.utr && p.utr == "" {
		p.utr = newUTR(p.mode, p.seq, now)
	}
	if err := s.settleMoney(t, p, now); err != nil {
		return err
	}
	p.dueAt = nil
	if p.atBank() && p.step < len(storyOf(p.last4).steps) {
		p.dueAt = micros(now.Add(time.Duration(s.settleAfter.Load())))
	}
	if err := save(t, *p); err != nil {
		return err
	}
	return s.announcePayout(t, before, *p, now)
}

// settleMoney takes a payout's amount and fees when the bank begins with it, and returns them when
// it ends unpaid.
func (s *Sandbox) settleMoney(t *tx, p *payout, now time.Time) error {
	switch {
	case p.atBank() && !p.debited:
		p.debited = true
		return s.post(t, p.seq, -(p.amount + payoutFees), now)
	case p.endedUnpaid() && p.debited && !p.credited:
		p.credited = true
		s.funded.Store(true)
		return s.post(t, p.seq, p.amount+payoutFees, now)
	default:
		return nil
	}
}

// atBank reports whether the bank is at work on p, or has paid it.
func (p payout) atBank() bool {
	return p.status == razorpayx.StatusProcessing || p.status == razorpayx.StatusProcessed
}

func (p payout) endedUnpaid() bool {
	switch p.status {
	case razorpayx.StatusReversed, razorpayx.StatusFailed, razorpayx.StatusRejected, razorpayx.StatusCancelled:
		return true
	default:
		return false
	}
}

func savePayout(t *tx, p payout) error {
	err := t.exec(`UPDATE payouts SET status = $1, reason = $2, utr = $3, step = $4, debited = $5, credited = $6, due_at = $7
		WHERE seq = $8`, p.status, p.reason, p.utr, p.step, p.debited, p.credited, p.dueAt, p.seq)
	return err
}

func (s *Sandbox) readPayout(r *http.Request) (razorpayx.Payout, error) {
	p, err := payoutBySeq(s.records, parseID("pout_", r.PathValue("id")))
	return s.showPayout(p), err
}

func (s *Sandbox) listPayouts(r *http.Request) (razorpayx.Collection[razorpayx.Payout], error) {
	var none razorpayx.Collection[razorpayx.Payout]
	asked := r.URL.Query()
	if err := s.ours(asked.Get("account_number")); err != nil {
		return none, err
	}
	p, err := readPage(r)
	if err != nil {
		return none, err
	}
	f := filter{}
	for _, column := range []string{"reference_id", "status", "mode"} {
		f.equal(column, asked.Get(column))
	}
	f.equalID("fund_account", "fa_", asked.Get("fund_account_id"))
	if contact := asked.Get("contact_id"); contact != "" {
		f.where("fund_account IN (SELECT seq FROM fund_accounts WHERE contact = $%d)", parseID("cont_", contact))
	}
	if err := f.between(r); err != nil {
		return none, err
	}
	query, args := f.query(payoutColumns, "payouts", p)
	return collect(s.records, query, args, scanPayout, func(p payout) (razorpayx.Payout, error) { return s.showPayout(p), nil })
}

// cancelPayout cancels what is queued, and nothing else, as the vendor does.
func (s *Sandbox) cancelPayout(r *http.Request) (razorpayx.Payout, error) {
	var p payout
	err := s.update(func(t *tx) (err error) {
		if p, err = payoutBySeq(t, parseID("pout_", r.PathValue("id"))); err != nil {
			return err
		}
		if p.status != razorpayx.StatusQueued {
			return errNotCancellable
		}
		return s.move(t, &p, step{status: razorpayx.StatusCancelled}, s.o.Now(), savePayout)
	})
	return s.showPayout(p), err
}
