package payout

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"bursar/internal/decision"
	"bursar/internal/gateway"
)

// lostTransfers are transfers of sellers that a gateway listed and that the ledger could not import. Their money has left, and the balances do not say
// so. While a seller has one, no payout of theirs is requested or sent. They are kept in memory, where an attacker who can write to the database can't
// reach them. The database's list of unmatched transfers counts as well: it has those of other instances, of earlier starts, and of gateways that are gone.
type lostTransfers struct {
	sync.Mutex
	of      map[string][]lostTransfer // by seller
	count   int
	triedAt time.Time
	// triedOf is the seller whose transfer was tried last.
	triedOf string
	// named are the sellers of the database's open unmatched transfers. readAt is when they were last read, or a read was last tried.
	named  map[string]bool
	readAt time.Time
	// unwritten are payouts, by seller, whose gateway's report could not be written yet, and until when each stops its seller.
	unwritten map[string]map[ID]time.Time
}

type lostTransfer struct {
	g        gateway.Gateway
	id       ID
	transfer gateway.Transfer
}

// maxLost bounds the lost transfers that are kept, some tens of megabytes. With more of them a start does not end, and nothing is sent.
// lostAtOnce is how many are tried at once.
const maxLost, lostAtOnce = 100_000, 200

// lostWait is the wait between attempts to take in what was lost: a row may have been repaired.
const lostWait = time.Minute

// lostTime bounds how long they are tried at once. No payout is leased meanwhile.
const lostTime = 5 * time.Second

// keepLost stops the payouts of the seller of a transfer that could not be taken in, and records it as unmatched.
func (s *Service) keepLost(ctx context.Context, g gateway.Gateway, id ID, t gateway.Transfer, why string) error {
	lost := lostTransfer{g, id, t}
	isResolved, err := s.isResolved(ctx, lost)
	if err == nil && !isResolved && t.Order.Seller != "" {
		err = s.lost.add(lost)
	}
	if err != nil {
		return err
	}
	return s.recordUnmatched(ctx, g.Name(), t, why)
}

// recordUnmatched stores a transfer that matches no payout, once.
func (s *Service) recordUnmatched(ctx context.Context, at gateway.Name, t gateway.Transfer, why string) error {
	isNew := false
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		isNew, err = tx.RecordUnmatchedTransfer(ctx, UnmatchedTransfer{Gateway: at, Transfer: t, FoundAt: s.o.Now(), Why: why})
		return err
	})
	if err == nil && isNew {
		s.o.Logger.ErrorContext(ctx, "unmatched transfer found",
			slog.String("payout_id", t.Reference), slog.String("gateway", string(at)), slog.String("gateway_id", t.GatewayID), slog.String("why", why))
	}
	return err
}

func (l *lostTransfers) add(lost lostTransfer) error {
	l.Lock()
	defer l.Unlock()
	seller := lost.transfer.Order.Seller
	if slices.ContainsFunc(l.of[seller], lost.isSame) {
		return nil
	}
	if l.count >= maxLost {
		return fmt.Errorf("more than %d transfers can't be taken in", maxLost)
	}
	if l.of == nil {
		l.of = map[string][]lostTransfer{}
	}
	l.of[seller] = append(l.of[seller], lost)
	l.count++
	return nil
}

func (l *lostTransfers) remove(lost lostTransfer) {
	l.Lock()
	defer l.Unlock()
	seller := lost.transfer.Order.Seller
	before := len(l.of[seller])
	l.of[seller] = slices.DeleteFunc(l.of[seller], lost.isSame)
	l.count -= before - len(l.of[seller])
	if len(l.of[seller]) == 0 {
		delete(l.of, seller)
	}
}

// due lists those to be tried now: each minute some, of one seller after another.
func (l *lostTransfers) due(now time.Time) (some []lostTransfer) {
	l.Lock()
	defer l.Unlock()
	if l.count == 0 || now.Sub(l.triedAt) < lostWait {
		return nil
	}
	l.triedAt = now
	sellers := slices.Sorted(maps.Keys(l.of))
	next, isThere := slices.BinarySearch(sellers, l.triedOf)
	if isThere {
		next++
	}
	for i := range sellers {
		l.triedOf = sellers[(next+i)%len(sellers)]
		all := l.of[l.triedOf]
		n := min(len(all), lostAtOnce-len(some))
		some = append(some, all[:n]...)
		l.of[l.triedOf] = slices.Concat(all[n:], all[:n]) // the next ones come first the next time
		if len(some) >= lostAtOnce {
			break
		}
	}
	return some
}

func (l lostTransfer) isSame(o lostTransfer) bool {
	return l.id == o.id && l.g.Name() == o.g.Name() && l.transfer.GatewayID == o.transfer.GatewayID
}

// isOf reports whether it is the transfer of a payout, which may have another one.
func (l lostTransfer) isOf(p Payout) bool {
	return p.Gateway == l.g.Name() && p.GatewayID == l.transfer.GatewayID
}

// unmatchedID is [UnmatchedTransfer.ID].
func (l lostTransfer) unmatchedID() string {
	return UnmatchedTransfer{Gateway: l.g.Name(), Transfer: l.transfer}.ID()
}

// hasTransfer reports whether a lost transfer, by [UnmatchedTransfer.ID], stops a seller's payouts.
func (l *lostTransfers) hasTransfer(seller, id string) bool {
	l.Lock()
	defer l.Unlock()
	return slices.ContainsFunc(l.of[seller], func(lost lostTransfer) bool { return lost.unmatchedID() == id })
}

// hasLost reports whether a lost transfer stops a seller's payouts, or what a gateway has told and is not written yet.
func (s *Service) hasLost(seller string) bool {
	s.lost.Lock()
	defer s.lost.Unlock()
	now := s.o.Now()
	for _, until := range s.lost.unwritten[seller] {
		if now.Before(until) {
			return true
		}
	}
	return len(s.lost.of[seller]) > 0 || s.lost.named[seller]
}

// readNamed reads whom the open unmatched transfers of the database name.
func (s *Service) readNamed(ctx context.Context) error {
	sellers, err := s.o.Store.UnmatchedSellers(ctx, maxLost)
	if err != nil {
		return fmt.Errorf("read whom unmatched transfers name: %w", err)
	}
	if len(sellers) >= maxLost {
		return fmt.Errorf("unmatched transfers name more than %d sellers", maxLost)
	}
	named := make(map[string]bool, len(sellers))
	for _, seller := range sellers {
		named[seller] = true
	}
	s.lost.Lock()
	defer s.lost.Unlock()
	s.lost.named, s.lost.readAt = named, s.o.Now()
	return nil
}

// namedAreOld reports, each minute once, that it is time to read again whom unmatched transfers name.
func (l *lostTransfers) namedAreOld(now time.Time) bool {
	l.Lock()
	defer l.Unlock()
	if now.Sub(l.readAt) < lostWait {
		return false
	}
	l.readAt = now
	return true
}

// stop stops the payouts of a payout's seller until a time; none lets them go on, as far as this payout goes.
func (l *lostTransfers) stop(p Payout, until time.Time) {
	l.Lock()
	defer l.Unlock()
	if until.IsZero() {
		if delete(l.unwritten[p.Seller], p.ID); len(l.unwritten[p.Seller]) == 0 {
			delete(l.unwritten, p.Seller)
		}
		return
	}
	if l.unwritten == nil {
		l.unwritten = map[string]map[ID]time.Time{}
	}
	if l.unwritten[p.Seller] == nil {
		l.unwritten[p.Seller] = map[ID]time.Time{}
	}
	l.unwritten[p.Seller][p.ID] = until
}

// retryLost tries once more to take in what was lost, now and then, and forgets what was, or what an admin has resolved. Then it reads whom the
// transfers name that are left.
func (s *Service) retryLost(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lostTime)
	defer cancel()
	for _, lost := range s.lost.due(s.o.Now()) {
		if ctx.Err() != nil { // the others are tried the next time
			break
		}
		isEnded, err := s.isResolved(ctx, lost)
		if err == nil && !isEnded {
			isEnded, err = s.takeInLost(ctx, lost)
		}
		if err != nil {
			s.o.Logger.WarnContext(ctx, "payout not taken in from the gateway", slog.String("payout_id", string(lost.id)), slog.Any("error", err))
		} else if isEnded {
			s.lost.remove(lost)
		}
	}
	if s.lost.namedAreOld(s.o.Now()) {
		if err := s.readNamed(ctx); err != nil { // those that were read before stand
			s.o.Logger.WarnContext(ctx, "unmatched transfers not read", slog.Any("error", err))
		}
	}
}

// takeInLost reports whether the ledger has a lost transfer now.
func (s *Service) takeInLost(ctx context.Context, lost lostTransfer) (bool, error) {
	if err := s.reconcilePage(ctx, lost.g, []gateway.Transfer{lost.transfer}); err != nil {
		return false, err
	}
	entries, err := s.o.Store.EntriesAbout(ctx, lost.transfer.Order.Seller, string(lost.id))
	if isTampered(err) {
		return false, nil
	}
	known, _ := foldAndFind(lost.id, entries, "", false)
	return lost.isOf(known), err
}

// isResolved is wasResolved, and says no if the platform's journal was changed: the seller stays stopped then.
func (s *Service) isResolved(ctx context.Context, lost lostTransfer) (bool, error) {
	is, err := s.wasResolved(ctx, lost.unmatchedID())
	if isTampered(err) {
		return false, nil
	}
	return is, err
}

// wasResolved reports whether an admin has resolved an unmatched transfer, by its [UnmatchedTransfer.ID]. That is asked of the journal: the row may have
// been changed by hand. It fails with [ledger.ErrTampered].
func (s *Service) wasResolved(ctx context.Context, id string) (bool, error) {
	entries, err := s.o.Store.EntriesAbout(ctx, decision.Platform, id)
	return slices.ContainsFunc(entries, isDecision(decision.ResolveUnmatchedTransfer)), err
}
