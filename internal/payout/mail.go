package payout

import (
	"context"
	"errors"
	"time"

	"bursar/internal/mail"
)

// toldWithin is how long a failure is news. After a restore, or where nothing was numbered for long, older ones are not mailed.
const toldWithin = 48 * time.Hour

// MailFailure queues the mail that tells the seller of a payout that failed or was returned: they expect money, and nothing else
// tells them that it does not come. It queues none for a payout in another state.
func (s *Service) MailFailure(ctx context.Context, tx mail.Tx, id ID) error {
	p, err := s.o.Store.Payout(ctx, id)
	if errors.Is(err, ErrNotFound) { // an attacker deleted the row, and the audit names it
		return nil
	}
	if err != nil || p.State != Failed && p.State != Returned || s.o.Now().Sub(p.EndedAt) > toldWithin {
		return err
	}
	_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: p.Seller, Data: mail.PayoutFailed{
		Payout: string(p.ID), Amount: s.o.Currency.Display(p.Amount), Account: p.AccountLast4,
		RequestedAt: p.RequestedAt, At: p.EndedAt, Returned: p.State == Returned, Reason: p.Reason,
	}})
	return err
}
