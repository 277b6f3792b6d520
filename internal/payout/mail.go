package payout

import (
	"context"
	"log/slog"
	"time"

	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// mailedWithin is how old a failure may be that is mailed. After a restore, or where nothing was numbered for long, older ones are not mailed.
const mailedWithin = 48 * time.Hour

// MailTx queues a mail about a payout, and reads what the journal says of it.
type MailTx interface {
	mail.Tx
	ledger.EntriesReader
}

// MailFailure queues the mail that tells the seller of a payout that failed or was returned: they expect money, and nothing else
// tells them that it does not come. It queues none for a payout in another state, or one whose entries were changed.
func (s *Service) MailFailure(ctx context.Context, tx MailTx, seller string, id ID) error {
	p, account, err := readEntries(ctx, tx, seller, id)
	if isTampered(err) {
		s.o.Logger.WarnContext(ctx, "mail suppressed", slog.String("kind", string(mail.PayoutFailed{}.Kind())), slog.String("user", seller),
			slog.String("reason", "an entry about payout "+string(id)+" was changed outside the service"))
		return nil
	}
	if err != nil || p.State != Failed && p.State != Returned || s.o.Now().Sub(p.EndedAt) > mailedWithin {
		return err
	}
	_, err = s.o.Mails.Queue(ctx, tx, mail.Mail{User: seller, Data: mail.PayoutFailed{
		Payout: string(id), Amount: s.o.Currency.Display(p.Amount), Account: account.Last4,
		RequestedAt: p.RequestedAt, At: p.EndedAt, Returned: p.State == Returned, Reason: p.Reason,
	}})
	return err
}

// readEntries is a payout and its bank account, as the entries about them tell.
func readEntries(ctx context.Context, from ledger.EntriesReader, seller string, id ID) (p Payout, a bank.Account, err error) {
	entries, err := from.EntriesAbout(ctx, seller, string(id))
	if err != nil {
		return p, a, err
	}
	if p, err = Fold(id, entries); err != nil {
		return p, a, ledger.ErrTampered.Because(err)
	}
	if entries, err = from.EntriesAbout(ctx, seller, string(p.BankAccountID)); err != nil {
		return p, a, err
	}
	if a, err = bank.Fold(p.BankAccountID, entries); err != nil {
		return p, a, ledger.ErrTampered.Because(err)
	}
	return p, a, nil
}
