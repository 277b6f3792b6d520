package payout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// repeatable is what makes a call safe to repeat: its user and idempotency key, the fingerprint of the request, and the
// payout that it makes or changes.
type repeatable struct {
	user        string
	key         string
	fingerprint string
	payout      ID
	// made reports whether the call can have made or changed a payout, so that a key that was edited in the database shows nothing of
	// another one.
	made func(Payout) bool
	// confirm fails for a caller who may not call, and not learn of an earlier answer either. It may be nil.
	confirm func(ChangeTx) error
	// ownTx says that the call locks rows that a unit of work can't name, so that it needs a transaction of its own.
	ownTx bool
}

// The fingerprint of a request says what was asked for: the amount and the notes of a payout, or the payout to cancel.
const (
	FingerprintRequest = "request "
	FingerprintCancel  = "cancel "
)

// idempotent runs act in a transaction and stores its answer, a payout or a refusal, under the idempotency key in
// that same transaction. A repeat gets the first answer; so does a call beside it, because one of the
// two commits first. Without a key it just runs act. It reports whether the answer is an earlier one.
func (s *Service) idempotent(
	ctx context.Context, scope ledger.Scope, now time.Time, call repeatable, act func(ChangeTx) (Payout, error),
) (Payout, bool, error) {
	var (
		p        Payout
		replayed bool
		refusal  error
	)
	scope.Owner, scope.Key = call.user, call.key
	run := func(fn func(ChangeTx) error) error { return s.o.Store.InGroup(ctx, scope, fn) }
	if call.ownTx {
		run = func(fn func(ChangeTx) error) error { return s.o.Store.InTx(ctx, func(tx Tx) error { return fn(tx) }) }
	}
	err := run(func(tx ChangeTx) (err error) {
		replayed, refusal = false, nil
		if call.confirm != nil {
			if err := call.confirm(tx); err != nil {
				return err
			}
		}
		if call.key == "" {
			p, err = act(tx)
			return err
		}
		isNew, err := tx.SaveIdempotency(ctx, call.user, call.key, Idempotency{Fingerprint: call.fingerprint, Payout: call.payout}, now)
		if err != nil {
			return err
		}
		if !isNew {
			replayed = true
			p, err = replay(ctx, tx, call)
			return err
		}
		p, err = act(tx)
		if refused := fault.From(err); refused != nil && refused.Kind == fault.Refused {
			refusal = err
			return saveRefusal(ctx, tx, call, refused)
		}
		return err
	})
	if err == nil {
		err = refusal
	}
	if f := fault.From(err); err != nil && (f == nil || f.Kind != fault.Refused) { // no answer that was stored
		replayed = false
	}
	return p, replayed, err
}

func saveRefusal(ctx context.Context, tx RequestTx, call repeatable, f *fault.Error) error {
	text, err := json.Marshal(refusalRecord{Kind: f.Kind, Code: f.Code, Message: f.Message})
	if err != nil {
		return err
	}
	return tx.SaveIdempotencyRefusal(ctx, call.user, call.key, string(text))
}

func replay(ctx context.Context, tx RequestTx, call repeatable) (Payout, error) {
	first, err := tx.Idempotency(ctx, call.user, call.key)
	if err != nil {
		return Payout{}, err
	}
	if first.Fingerprint != call.fingerprint {
		return Payout{}, ErrKeyReused
	}
	if first.Refusal != "" {
		var r refusalRecord
		err := json.Unmarshal([]byte(first.Refusal), &r)
		if err == nil && (r.Code == "" || r.Message == "") {
			err = errors.New("it says nothing")
		}
		if err != nil {
			return Payout{}, ledger.ErrTampered.Because(fmt.Errorf("read a stored refusal: %w", err))
		}
		return Payout{}, fault.New(r.Kind, r.Code, r.Message)
	}
	p, err := tx.Payout(ctx, first.Payout)
	if errors.Is(err, ErrNotFound) || err == nil && !call.made(p) {
		err = ledger.ErrTampered.Because(fmt.Errorf("an idempotency key of %s stands for payout %q, which it was not used for", call.user, first.Payout))
	}
	if err != nil {
		return Payout{}, err
	}
	return p, nil
}

// refusalRecord is a refusal as it is stored.
type refusalRecord struct {
	Kind    fault.Kind `json:"kind"`
	Code    string     `json:"code"`
	Message string     `json:"message"`
}
