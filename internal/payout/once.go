package payout

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"bursar/internal/fault"
)

// memo is what makes a call repeatable: whose key it is, what tells this call from another, and the
// payout that it makes or changes.
type memo struct {
	user        string
	key         string
	fingerprint string
	payout      ID
}

// transactor runs a closure in a transaction.
type transactor[T RequestTx] func(ctx context.Context, fn func(T) error) error

// once runs act in a transaction and keeps its answer, a payout or a refusal, under the memo's key in
// that same transaction. A repeat gets the first answer; so does a call beside it, because one of the
// two commits first. Without a key it just runs act. It reports whether the answer is an earlier one.
func once[T RequestTx](
	ctx context.Context, inTx transactor[T], now time.Time, m memo, act func(T) (Payout, error),
) (Payout, bool, error) {
	var (
		p        Payout
		replayed bool
		refusal  error
	)
	err := inTx(ctx, func(tx T) (err error) {
		replayed, refusal = false, nil
		if m.key == "" {
			p, err = act(tx)
			return err
		}
		isNew, err := tx.Remember(ctx, m.user, m.key, Remembered{Fingerprint: m.fingerprint, Payout: m.payout}, now)
		if err != nil {
			return err
		}
		if !isNew {
			replayed = true
			p, err = replay(ctx, tx, m)
			return err
		}
		p, err = act(tx)
		if refused := fault.From(err); refused != nil && refused.Kind == fault.Refused {
			refusal = err
			return rememberRefusal(ctx, tx, m, refused)
		}
		return err
	})
	if err == nil {
		err = refusal
	}
	return p, replayed, err
}

func rememberRefusal(ctx context.Context, tx RequestTx, m memo, f *fault.Error) error {
	text, err := json.Marshal(refusalRecord{Kind: f.Kind, Code: f.Code, Message: f.Message})
	if err != nil {
		return err
	}
	return tx.RememberRefusal(ctx, m.user, m.key, string(text))
}

func replay(ctx context.Context, tx RequestTx, m memo) (Payout, error) {
	first, err := tx.Remembered(ctx, m.user, m.key)
	if err != nil {
		return Payout{}, err
	}
	if first.Fingerprint != m.fingerprint {
		return Payout{}, ErrKeyReused
	}
	if first.Refusal != "" {
		var r refusalRecord
		if err := json.Unmarshal([]byte(first.Refusal), &r); err != nil {
			return Payout{}, fmt.Errorf("read a remembered refusal: %w", err)
		}
		return Payout{}, fault.New(r.Kind, r.Code, r.Message)
	}
	return tx.Payout(ctx, first.Payout)
}

// refusalRecord is a refusal as it is stored.
type refusalRecord struct {
	Kind    fault.Kind `json:"kind"`
	Code    string     `json:"code"`
	Message string     `json:"message"`
}
