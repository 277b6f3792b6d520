// Package inbox lists what waits for a person, whose it is, and which admin is on it.
package inbox

import (
	"cmp"
	"context"
	"slices"
	"time"

	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
	"bursar/internal/webhook"
)

// Kind tells the kinds of what waits for a person apart.
type Kind string

// Kinds of tasks.
const (
	Discrepancy  Kind = "discrepancy"
	Unmatched    Kind = "unmatched-transfer"
	ManualReview Kind = "manual_review"
	NoGateway    Kind = "no-gateway"
	Difference   Kind = "difference"
	Account      Kind = "bank-account"
	Endpoint     Kind = "webhook-endpoint"
	Late         Kind = "late"
	Unknown      Kind = "unknown"
)

// Kinds lists all, the most pressing first.
func Kinds() []Kind {
	return []Kind{Discrepancy, Unmatched, ManualReview, NoGateway, Late, Difference, Account, Endpoint, Unknown}
}

// MaxPerKind bounds how many of a kind are listed.
const MaxPerKind = 100

// MaxAsked bounds about how many payouts the gateway is asked at once.
const MaxAsked = 20

// ClaimLasts is how long a claim keeps other admins from claiming the same.
const ClaimLasts = time.Hour

// Task is one thing that waits for a person.
type Task struct {
	Kind Kind
	// Subject is the id of the payout, bank account, difference, webhook endpoint or unmatched transfer.
	Subject string
	Since   time.Time
	Amount  money.Amount
	// Seller is whose it is; empty where nobody's is known. SellerName is empty for a seller whom the ledger does not know.
	Seller, SellerName string
	// Claim is who is on it; its zero value means nobody.
	Claim Claim

	// One of these is what the task is about.
	Payout     *payout.Payout
	Transfer   *payout.UnmatchedTransfer
	Difference *reconcile.Difference
	Account    *bank.Account
	Endpoint   *webhook.Endpoint
}

// Claim says that an admin is on a task.
type Claim struct {
	Subject          string
	Admin, AdminName string
	At               time.Time
}

// Until is when the claim expires.
func (c Claim) Until() time.Time { return c.At.Add(ClaimLasts) }

// Store keeps claims.
type Store interface {
	// Claims lists those made after a moment.
	Claims(ctx context.Context, after time.Time) ([]Claim, error)
	// Claim makes a claim unless another admin's that was made after expired is there, and returns the one that then is there.
	Claim(ctx context.Context, c Claim, expired time.Time) (Claim, error)
	// Release ends an admin's claim, and reports whether there was one.
	Release(ctx context.Context, subject, admin string) (bool, error)
	UserNames(ctx context.Context, ids []string) (map[string]string, error)
}

// Service lists and claims.
type Service struct {
	Payouts     *payout.Service
	Bank        *bank.Service
	Reconciling *reconcile.Service
	Webhooks    *webhook.Service
	Store       Store
	Now         func() time.Time
}

// Failures that an admin may see.
var (
	ErrNoTask     = fault.New(fault.NotFound, "task_not_found", "This does not wait for anybody any more.")
	ErrClaimed    = fault.New(fault.Conflict, "task_claimed", "Another admin is on this.")
	ErrNotClaimed = fault.New(fault.Conflict, "task_not_claimed", "You have not claimed this, or your claim has expired.")
)

// Tasks lists what waits, the oldest first, and reports whether some kind has more than is listed.
func (s Service) Tasks(ctx context.Context) (all []Task, cut bool, err error) {
	attention, err := s.Payouts.Attention(ctx)
	if err != nil {
		return nil, false, err
	}
	accounts, err := s.Bank.InReview(ctx, MaxPerKind)
	if err != nil {
		return nil, false, err
	}
	differences, err := s.Reconciling.Open(ctx, MaxPerKind)
	if err != nil {
		return nil, false, err
	}
	endpoints, err := s.Webhooks.Endpoints(ctx)
	if err != nil {
		return nil, false, err
	}
	all = ofPayouts(attention)
	for _, t := range attention.UnmatchedTransfers {
		all = append(all, Task{Kind: Unmatched, Subject: t.ID(), Since: t.FoundAt, Amount: t.Transfer.Amount, Seller: t.Transfer.Order.Seller, Transfer: &t})
	}
	for _, f := range differences {
		task, err := s.ofDifference(ctx, f)
		if err != nil {
			return nil, false, err
		}
		all = append(all, task)
	}
	for _, a := range accounts {
		all = append(all, Task{Kind: Account, Subject: string(a.ID), Since: a.CreatedAt, Seller: a.Seller, Account: &a})
	}
	for _, e := range endpoints {
		if e.NeedsAttention() {
			all = append(all, Task{Kind: Endpoint, Subject: e.ID, Since: endpointSince(e), Endpoint: &e})
		}
	}
	slices.SortStableFunc(all, func(a, b Task) int { return a.Since.Compare(b.Since) })
	cut = max(len(attention.Discrepancies), len(attention.Unclear), len(attention.WithoutGateway), len(attention.Late),
		len(attention.UnmatchedTransfers), len(accounts), len(differences)) >= MaxPerKind
	return all, cut, s.complete(ctx, all)
}

// ofPayouts lists each payout once, as what presses most.
func ofPayouts(a payout.Attention) (all []Task) {
	listed := map[payout.ID]bool{}
	add := func(kind Kind, p payout.Payout, since time.Time) {
		if !listed[p.ID] {
			listed[p.ID] = true
			all = append(all, Task{Kind: kind, Subject: string(p.ID), Since: since, Amount: p.Amount, Seller: p.Seller, Payout: &p})
		}
	}
	for _, p := range a.Discrepancies {
		add(Discrepancy, p, p.RequestedAt)
	}
	for _, p := range a.Late {
		add(Late, p, p.ArriveAt)
	}
	for _, p := range a.Unclear {
		kind := Unknown
		if p.State == payout.ManualReview {
			kind = ManualReview
		}
		add(kind, p, cmp.Or(p.SentAt, p.RequestedAt))
	}
	for _, p := range a.WithoutGateway {
		add(NoGateway, p, p.RequestedAt)
	}
	return all
}

// endpointSince is when an endpoint stopped taking events. One that answered 410 right after a delivery never failed.
func endpointSince(e webhook.Endpoint) time.Time {
	switch {
	case e.Tampered, e.FailingSince.IsZero() && e.LastDeliveredAt.IsZero():
		return e.CreatedAt
	case e.FailingSince.IsZero():
		return e.LastDeliveredAt
	default:
		return e.FailingSince
	}
}

// ofDifference is the task of a difference, whose seller is that of its payout.
func (s Service) ofDifference(ctx context.Context, f reconcile.Difference) (Task, error) {
	apart := f.AtGateway - f.InLedger
	task := Task{Kind: Difference, Subject: f.ID, Since: f.FirstSeen, Amount: max(apart, -apart), Difference: &f}
	if f.Payout == "" {
		return task, nil
	}
	p, err := s.Payouts.Payout(ctx, payout.Caller{Admin: true}, f.Payout)
	if fault.From(err) != nil && fault.From(err).Kind == fault.NotFound {
		err = nil
	}
	task.Seller = p.Seller
	return task, err
}

// complete adds to tasks the names of sellers, and who is on them.
func (s Service) complete(ctx context.Context, all []Task) error {
	claims, err := s.Store.Claims(ctx, s.Now().Add(-ClaimLasts))
	if err != nil {
		return err
	}
	of, ids := map[string]Claim{}, []string{}
	for _, c := range claims {
		of[c.Subject] = c
		ids = append(ids, c.Admin)
	}
	for _, t := range all {
		if t.Seller != "" {
			ids = append(ids, t.Seller)
		}
	}
	names, err := s.Store.UserNames(ctx, ids)
	for i := range all {
		t := &all[i]
		t.SellerName, t.Claim = names[t.Seller], of[t.Subject]
		t.Claim.AdminName = names[t.Claim.Admin]
	}
	return err
}

// Task finds what waits by its subject, or fails with [ErrNoTask].
func (s Service) Task(ctx context.Context, subject string) (Task, error) {
	all, cut, err := s.Tasks(ctx)
	if err != nil {
		return Task{}, err
	}
	i := slices.IndexFunc(all, func(t Task) bool { return t.Subject == subject })
	switch {
	case i >= 0:
		return all[i], nil
	case cut:
		return Task{}, ErrNoTask.WithMessage("This does not wait for anybody any more, or is not among the first %d of its kind: those come first.", MaxPerKind)
	default:
		return Task{}, ErrNoTask
	}
}

// Claim has an admin be on a task for an hour. Claimed again by the same admin, it lasts another hour. It fails with [ErrClaimed] while another admin is on it.
func (s Service) Claim(ctx context.Context, admin, subject string) (Claim, error) {
	if _, err := s.Task(ctx, subject); err != nil {
		return Claim{}, err
	}
	now := s.Now()
	claim, err := s.Store.Claim(ctx, Claim{Subject: subject, Admin: admin, At: now}, now.Add(-ClaimLasts))
	if err == nil && claim.Admin != admin {
		err = ErrClaimed
	}
	return claim, err
}

// Release ends an admin's own claim, or fails with [ErrNotClaimed].
func (s Service) Release(ctx context.Context, admin, subject string) error {
	released, err := s.Store.Release(ctx, subject, admin)
	if err == nil && !released {
		err = ErrNotClaimed
	}
	return err
}
