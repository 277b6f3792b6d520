package auth_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

// setByLink has a link mailed to an address, and sets a password by it.
func (w *fixture) setByLink(address, password string) {
	w.t.Helper()
	w.clock.advance(time.Second) // mails of one moment are in no order
	wantErr(w.t, w.ForgotPassword(w.t.Context(), address, den), nil)
	if _, err := w.AnswerMailRequest(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	var token string
	for _, d := range w.mailbox.To(address) {
		if m, ok := d.(mail.ResetPassword); ok {
			token = m.Token
		}
	}
	wantErr(w.t, w.SetForgottenPassword(w.t.Context(), token, password, den), nil)
}

// A thief moves the account to an address of theirs, has a link mailed there that sets a password, and sets one. The owner undoes the change, and
// that password signs nobody in.
func TestUndoEmailChange_EndsPassword(t *testing.T) {
	s := newStreet(t)
	ctx := t.Context()
	in := s.squat()
	undo := s.moveAccount(s.principal(in))
	const thiefsPassword = "the thief's own phrase"
	s.setByLink(thiefs, thiefsPassword)
	wantErr(t, s.UndoEmailChange(ctx, undo, home), nil)
	if _, err := s.login(email, thiefsPassword, den); !errors.Is(err, auth.ErrCredentials) {
		t.Errorf("the change is undone, and the password that the thief set by the other address is answered with %v", err)
	}
}

// A thief who knows the password moves the account. The owner undoes the change. The password signs nobody in, and the owner sets another one by a link.
func TestUndoEmailChange_EndsKnownPassword(t *testing.T) {
	s := newStreet(t)
	ctx := t.Context()
	undo := s.moveAccount(s.principal(s.squat()))
	wantErr(t, s.UndoEmailChange(ctx, undo, home), nil)
	if _, err := s.login(email, password, den); !errors.Is(err, auth.ErrCredentials) {
		t.Errorf("the change is undone, and the password, by which the thief may have come, is answered with %v", err)
	}
	const another = "the owner's other phrase"
	wantErr(t, s.SetForgottenPassword(t.Context(), lastMailed[mail.ResetPassword](s.fixture, 1).Token, another, home), nil)
	if _, err := s.login(email, another, home); err != nil {
		t.Errorf("the owner has set another password, and is answered with %v", err)
	}
}

// A thief moves the account, and registers a bank account: the mail about it goes to the thief's address. The owner undoes the change, and nothing is
// paid to that account. One of before the change stays.
func TestUndoEmailChange_RejectsBankAccountsSince(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	in := s.squat()
	add := func(id bank.ID, isCurrent bool) {
		s.addBankAccount(bank.Account{
			ID: id, Seller: in.User.ID, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "6666", Status: bank.StatusVerified, Current: isCurrent,
			NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
		})
	}
	add("bka_owners", false) // the thief's has replaced it
	s.clock.advance(2 * time.Minute)
	undo := s.moveAccount(s.principal(in))
	s.clock.advance(time.Hour)
	add("bka_thiefs", true)
	wantErr(t, s.UndoEmailChange(t.Context(), undo, home), nil)
	for id, want := range map[string]bank.Status{"bka_owners": bank.StatusVerified, "bka_thiefs": bank.StatusRejected} {
		entries, err := s.db.EntriesAbout(t.Context(), in.User.ID, id)
		wantErr(t, err, nil)
		a, err := bank.Fold(bank.ID(id), entries)
		if err != nil || a.Status != want || a.Current {
			t.Errorf("the change is undone, and %s is %+v, %v", id, a, err)
		}
	}
	if a, err := s.db.BankAccount(t.Context(), in.User.ID); err == nil && a.Current {
		t.Errorf("payouts go to %+v", a)
	}
}

// A stolen token begins a change of the address. That there is a copy is found out and ends the session, and the change with it.
func TestRefresh_Copied_EndsPendingChange(t *testing.T) {
	s := newStreet(t)
	ctx := t.Context()
	in := s.squat()
	wantErr(t, s.VerifyEmail(ctx, lastMailed[mail.VerifyEmail](s.fixture, 1).Token), nil)
	wantErr(t, s.ChangeEmail(ctx, s.principal(in), thiefs, den), nil)
	if _, err := s.Refresh(ctx, in.RefreshToken); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(time.Hour)
	_, err := s.Refresh(ctx, in.RefreshToken) // another party has a copy
	wantErr(t, err, auth.ErrRefresh)
	s.wantDead(in)
	var confirm string
	for _, d := range s.mailbox.To(thiefs) {
		if m, ok := d.(mail.ConfirmEmail); ok {
			confirm = m.Token
		}
	}
	if err := s.ConfirmEmailChange(ctx, confirm, den); err == nil {
		t.Error("the session was ended because its token was copied, and the change of the address that it began goes on")
	}
}

// The seller's totals were changed outside the service. The owner's undo can't be recorded, and the thief's session ends all the same.
func TestUndoEmailChange_TamperedTotals_SessionsEnd(t *testing.T) {
	s := newStreet(t)
	in := s.squat()
	undo := s.moveAccount(s.principal(in))
	thief, err := s.login(thiefs, password, den)
	wantErr(t, err, nil)
	s.place.ByHand(t, `UPDATE journals SET available = available + 100 WHERE owner = '`+in.User.ID+`'`)
	wantErr(t, s.UndoEmailChange(t.Context(), undo, home), ledger.ErrTampered)
	s.wantDead(thief)
	s.wantDead(in)
}

// A thief moves the account through an instance whose clock is a day ahead, which is then corrected. What the thief adds afterwards is older than the
// change by its time, and goes all the same when the owner undoes the change.
func TestUndoEmailChange_ClockWasAhead(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	in := s.squat()
	wantErr(t, s.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](s.fixture, 1).Token), nil)
	s.clock.advance(24 * time.Hour)
	ahead, err := s.login(email, password, den)
	wantErr(t, err, nil)
	undo := s.confirmTo(s.principal(ahead), email, thiefs)
	s.clock.advance(-24*time.Hour + time.Minute)
	again, err := s.login(thiefs, password, den)
	wantErr(t, err, nil)
	s.addBankAccount(bank.Account{
		ID: "bka_thiefs", Seller: in.User.ID, Holder: "Mallory", IFSC: "HDFC0000053", Last4: "6666", Status: bank.StatusVerified, Current: true,
		NameScore: -1, CreatedAt: s.clock.Now(), VerifiedAt: s.clock.Now(),
	})
	s.enrol(s.principal(again))
	s.clock.advance(time.Hour)
	wantErr(t, s.UndoEmailChange(t.Context(), undo, home), nil)
	if a, err := s.db.BankAccount(t.Context(), in.User.ID); err == nil && a.Current {
		t.Errorf("payouts go to %+v", a)
	}
	wantErr(t, s.SetForgottenPassword(t.Context(), lastMailed[mail.ResetPassword](s.fixture, 1).Token, nextPassword, home), nil)
	if _, err := s.login(email, nextPassword, home); err != nil {
		t.Errorf("the owner is answered with %v", err)
	}
}

// A user signs in through an instance whose clock is a day ahead, which is then corrected. Hours later the sign-in is not a fresh one.
func TestFreshSignIn_ClockWasAhead(t *testing.T) {
	s := newStreet(t)
	s.squat()
	wantErr(t, s.VerifyEmail(t.Context(), lastMailed[mail.VerifyEmail](s.fixture, 1).Token), nil)
	s.clock.advance(24 * time.Hour)
	in, err := s.login(email, password, home)
	wantErr(t, err, nil)
	s.clock.advance(-24 * time.Hour)
	p := s.principal(s.refresh(in.RefreshToken))
	s.clock.advance(10 * time.Hour)
	wantErr(t, s.ChangeEmail(t.Context(), p, thiefs, den), auth.ErrStepUp)
}

// A thief moves the account and has as many links mailed to the other address as a user gets in a day. The owner undoes the change, and gets the link that
// sets another password all the same.
func TestUndoEmailChange_ThiefUsedUpLimit_LinkIsMailed(t *testing.T) {
	s := newStreet(t)
	ctx := t.Context()
	undo := s.moveAccount(s.principal(s.squat()))
	for range 14 {
		s.clock.advance(13 * time.Minute)
		wantErr(t, s.ForgotPassword(ctx, thiefs, den), nil)
		if _, err := s.AnswerMailRequest(ctx); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, s.UndoEmailChange(ctx, undo, home), nil)
	isLink := func(d mail.Data) bool { return d.Kind() == mail.KindResetPassword }
	if !slices.ContainsFunc(s.mailbox.To(email), isLink) {
		t.Error("the owner has no password and no link")
	}
}

// The owner undid the change, and set no password. A week later an operator is talked into setting one: payouts are on hold, as they would be if the undo had not
// removed the password.
func TestResetPassword_AfterUndo_PayoutsAreOnHold(t *testing.T) {
	s := newStreet(t, func(o *auth.Options) { o.CoolDown = 72 * time.Hour })
	ctx := t.Context()
	undo := s.moveAccount(s.principal(s.squat()))
	wantErr(t, s.UndoEmailChange(ctx, undo, home), nil)
	s.clock.advance(8 * 24 * time.Hour)
	_, err := s.ResetPassword(ctx, decision.By{Operator: "ops", Note: "They asked for it."}, s.user().ID, "quite another phrase", false)
	wantErr(t, err, nil)
	if m := lastMailed[mail.PasswordChanged](s.fixture, 1); m.HoldUntil.IsZero() {
		t.Error("payouts are not on hold")
	}
}
