package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/gateway"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// ErrChanged means that a difference is not what was seen of it any more.
var ErrChanged = fault.New(fault.Refused, "difference_changed", "This difference is resolved or gone by now, or says something else. Look at it again.")

// Resolve records that an admin has explained a difference, which said seen to them. It moves no money and
// changes nothing else. The difference opens again if it comes to say something else. It fails with
// [ErrChanged].
func (s *Service) Resolve(ctx context.Context, by decision.By, id, seen string) error {
	if err := by.RequireNote(); err != nil {
		return err
	}
	if !isID(id) {
		return ErrNotFound
	}
	now := s.o.Now()
	made := decision.New(by, decision.ResolveDifference, decision.Platform, id, now)
	err := s.o.Store.InTx(ctx, func(tx Tx) error {
		resolved, err := tx.ResolveDifference(ctx, id, seen, now)
		if err != nil {
			return err
		}
		if !resolved {
			return ErrChanged
		}
		return ledger.RecordDecision(ctx, tx, made)
	})
	if err == nil {
		s.o.Logger.WarnContext(ctx, "admin decided", slog.String("decision", made.ID), slog.String("action", string(made.Action)),
			slog.String("admin", made.Admin), slog.String("subject", made.Subject))
	}
	return err
}

// Open lists the differences of all gateways that wait for a person, the first found first.
func (s *Service) Open(ctx context.Context, limit int) ([]Difference, error) {
	return s.o.Store.OpenDifferences(ctx, Difference{}, limit)
}

// Evidence is a difference with what both sides have.
type Evidence struct {
	Difference
	// Payout is nil where the ledger has none.
	Payout *payout.Payout
	Lines  []Line
}

// Evidence finds a difference with what both sides have, or [ErrNotFound].
func (s *Service) Evidence(ctx context.Context, id string) (e Evidence, err error) {
	if !isID(id) {
		return e, ErrNotFound
	}
	if e.Difference, err = s.o.Store.Difference(ctx, id); err != nil {
		return e, err
	}
	switch {
	case e.Difference.Payout != "":
		all, err := s.caseFiles(ctx, []payout.ID{e.Difference.Payout}, nil)
		if err != nil {
			return e, err
		}
		for _, d := range all {
			e.Payout, e.Lines = &d.p, d.lines
		}
	case e.Kind == LineWithoutPayout:
		all, err := s.unmatched(ctx, e.Gateway, []string{e.Subject})
		if err != nil {
			return e, err
		}
		e.Lines = all[e.Subject].lines
	default:
		e.Lines, err = s.o.Store.LinesByID(ctx, []string{e.Subject})
		e.Lines = slices.DeleteFunc(e.Lines, func(l Line) bool { return l.Gateway != e.Gateway })
	}
	return e, err
}

// Overview is how reconciling with one gateway's statement goes.
type Overview struct {
	Gateway gateway.Name
	// Reached is up to when the service has come by itself; zero for nowhere yet.
	Reached time.Time
	// Failures counts those since the last success; the next try is at RetryAt.
	Failures int
	RetryAt  time.Time
	// Runs are the newest comparisons of all gateways, the newest first.
	Runs []Run
}

// Overview tells how reconciling goes, with some of the newest runs.
func (s *Service) Overview(ctx context.Context, runs int) (o Overview, err error) {
	o.Gateway = s.at()
	if o.Reached, err = s.o.Store.Reached(ctx, s.o.Now()); err != nil {
		return o, err
	}
	pace, err := s.o.Store.Pace(ctx)
	if err != nil {
		return o, err
	}
	o.Failures, o.RetryAt = pace.Failures, pace.DueAt
	o.Runs, err = s.o.Store.LastRuns(ctx, runs)
	return o, err
}
