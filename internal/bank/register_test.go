package bank_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/mail"
)

func TestRegister_InvalidFields_Refused(t *testing.T) {
	tests := []struct {
		about  string
		change func(*bank.Registration)
		want   []string
	}{
		{"no holder", func(r *bank.Registration) { r.Holder = "" }, []string{"accountHolder"}},
		{"two letters", func(r *bank.Registration) { r.Holder = " Al " }, []string{"accountHolder"}},
		{"too long", func(r *bank.Registration) { r.Holder = strings.Repeat("आ", 121) }, []string{"accountHolder"}},
		{"no letters", func(r *bank.Registration) { r.Holder = "12345" }, []string{"accountHolder"}},
		{"a control character", func(r *bank.Registration) { r.Holder = "Asha\x00Desai" }, []string{"accountHolder"}},
		{"a hidden direction mark", func(r *bank.Registration) { r.Holder = "Asha \u202eDesai" }, []string{"accountHolder"}},
		{"broken text", func(r *bank.Registration) { r.Holder = "Asha \xff Desai" }, []string{"accountHolder"}},
		{"no number", func(r *bank.Registration) { r.Number = bank.Number{} }, []string{"accountNumber"}},
		{"no IFSC", func(r *bank.Registration) { r.IFSC = "" }, []string{"ifsc"}},
		{"a bad IFSC", func(r *bank.Registration) { r.IFSC = "HDFC" }, []string{"ifsc"}},
		{"nothing", func(r *bank.Registration) { *r = bank.Registration{Seller: "usr_asha"} }, []string{"accountHolder", "accountNumber", "ifsc"}},
	}
	h := newFixture(t)
	for _, tt := range tests {
		r := h.ashas()
		tt.change(&r)
		_, err := h.service.Register(t.Context(), r)
		f := fault.From(err)
		if f == nil || f.Kind != fault.Invalid {
			t.Errorf("%s: err = %v, want one about fields", tt.about, err)
			continue
		}
		if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(f.Details))); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", tt.about, diff)
		}
	}
	if _, err := h.service.Account(t.Context(), "usr_asha"); !errors.Is(err, bank.ErrNone) {
		t.Errorf("a refused registration left an account behind: %v", err)
	}
}

func TestCheckHolder_Length(t *testing.T) {
	for name, right := range map[string]bool{"Al": false, "Raj": true, strings.Repeat("आ", 120): true, strings.Repeat("आ", 121): false} {
		if problem := bank.CheckHolder(name); (problem == "") != right {
			t.Errorf("%.9q may be a holder: %q, want %t", name, problem, right)
		}
	}
}

func TestRegister_SameAccountAgain_Unchanged(t *testing.T) {
	h := newFixture(t, valid("ASHA DESAI", 100))
	first := h.register(h.ashas())
	again := h.ashas()
	again.Holder = "  Asha   Desai "
	if diff := cmp.Diff(first, h.register(again)); diff != "" {
		t.Errorf("again while unverified (-first +again):\n%s", diff)
	}
	h.mustStep()
	verified := h.account()
	if diff := cmp.Diff(verified, h.register(h.ashas())); diff != "" {
		t.Errorf("again when verified (-first +again):\n%s", diff)
	}
	if len(h.gateway.started) != 1 {
		t.Errorf("%d verifications were begun, want 1", len(h.gateway.started))
	}
}

func TestRegister_AnyDifference_NewAccount(t *testing.T) {
	tests := []struct {
		about  string
		change func(*bank.Registration)
	}{
		{"another number with the same end", func(r *bank.Registration) { r.Number = mustNumber(t, "50200123456789") }},
		{"the number without a leading zero", func(r *bank.Registration) { r.Number = mustNumber(t, "0"+r.Number.Reveal()) }},
		{"another branch", func(r *bank.Registration) { r.IFSC = "HDFC0000054" }},
		{"another holder", func(r *bank.Registration) { r.Holder = "Asha R Desai" }},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			h := newFixture(t, valid("ASHA DESAI", 100))
			first := h.register(h.ashas())
			h.mustStep()
			r := h.ashas()
			tt.change(&r)
			second := h.register(r)
			if second.ID == first.ID || second.Status != bank.StatusUnverified || h.account().ID != second.ID {
				t.Errorf("registered %+v after %s", second, first.ID)
			}
			kept, err := h.store.BankAccountByID(t.Context(), first.ID)
			if err != nil || kept.Status != bank.StatusVerified {
				t.Errorf("the account of earlier payouts: %+v, %v", kept, err)
			}
		})
	}
}

func TestRegister_AfterRejection_NewVerification(t *testing.T) {
	h := newFixture(t, valid("RAVI KUMAR", 0), valid("ASHA DESAI", 100))
	first := h.register(h.ashas())
	h.mustStep()
	if got := h.account().Status; got != bank.StatusRejected {
		t.Fatalf("the first is %s, want rejected", got)
	}
	second := h.register(h.ashas())
	h.mustStep()
	if got := h.account(); got.ID != second.ID || got.ID == first.ID || got.Status != bank.StatusVerified {
		t.Errorf("after the second: %+v", got)
	}
}

func TestRegister_Replacement_StopsEarlierVerification(t *testing.T) {
	h := newFixture(t, pending(), valid("ASHA DESAI", 100))
	first := h.register(h.ashas())
	h.mustStep()
	other := h.ashas()
	other.IFSC = "SBIN0000001"
	second := h.register(other)

	h.now = h.now.Add(time.Hour)
	if diff := cmp.Diff([]bank.ID{second.ID}, h.due()); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	// A step that was under way when it was replaced changes nothing.
	if err := h.service.Step(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := h.store.BankAccountByID(t.Context(), first.ID); err != nil || got.Status != bank.StatusUnverified || !got.DueAt.IsZero() {
		t.Errorf("the replaced account: %+v, %v", got, err)
	}
}

// Many equal registrations at once make one account, with one verification due.
func TestRegister_SameAtOnce_OneAccount(t *testing.T) {
	h := newFixture(t, pending())
	const many = 16
	ids := make([]bank.ID, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			a, err := h.service.Register(t.Context(), h.ashas())
			if err != nil {
				t.Error(err)
			}
			ids[i] = a.ID
		})
	}
	wg.Wait()
	if distinct := slices.Compact(slices.Sorted(slices.Values(ids))); len(distinct) != 1 {
		t.Errorf("%d accounts were registered, want 1", len(distinct))
	}
	if got := h.due(); len(got) != 1 {
		t.Errorf("%d verifications are due, want 1", len(got))
	}
}

func TestRegister_IsLimited(t *testing.T) {
	h := newFixture(t, pending())
	numbered := func(i int) bank.Registration {
		r := h.ashas()
		r.Number = mustNumber(t, "5010012345"+string(rune('0'+i/10))+string(rune('0'+i%10)))
		return r
	}
	const limit = 10
	for i := range limit {
		h.register(numbered(i))
		h.register(numbered(i)) // the same again costs nothing and so counts for nothing
	}
	current := h.account()
	_, err := h.service.Register(t.Context(), numbered(limit))
	f := fault.From(err)
	if !errors.Is(err, bank.ErrTooMany) || f.Kind != fault.TooMany || f.RetryAfter <= 0 || f.RetryAfter > 24*time.Hour {
		t.Fatalf("the eleventh: err = %+v, want ErrTooMany with a time to wait", f)
	}
	if got := h.account(); got.ID != current.ID {
		t.Error("a refused registration replaced the account")
	}
	if got := h.register(numbered(limit - 1)); got.ID != current.ID {
		t.Error("the current account again is another one")
	}
	ravis := h.ashas()
	ravis.Seller = "usr_ravi"
	h.register(ravis)

	h.now = h.now.Add(f.RetryAfter - time.Second)
	if _, err := h.service.Register(t.Context(), numbered(limit)); !errors.Is(err, bank.ErrTooMany) {
		t.Errorf("a second too early: err = %v, want ErrTooMany", err)
	}
	h.now = h.now.Add(time.Second)
	h.register(numbered(limit))
	if _, err := h.service.Register(t.Context(), numbered(limit+1)); !errors.Is(err, bank.ErrTooMany) {
		t.Errorf("one more at once: err = %v, want ErrTooMany", err)
	}
}

// TestRegister_SessionEnded_Refused ends the session of a seller who registers another account.
func TestRegister_SessionEnded_Refused(t *testing.T) {
	h := newFixture(t)
	session := auth.Session{ID: "ses_asha", UserID: "usr_asha", CreatedAt: h.now, ExpiresAt: h.now.Add(time.Hour), CapAt: h.now.Add(time.Hour)}
	inTx := func(fn func(auth.Tx) error) {
		t.Helper()
		if err := h.db.Auth().InTx(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	inTx(func(tx auth.Tx) error { return tx.InsertSession(t.Context(), session) })
	r := h.ashas()
	r.Session = session.ID
	first, err := h.service.Register(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	inTx(func(tx auth.Tx) error { return tx.EndSession(t.Context(), session.ID, "logout", h.now) })
	r.Number = mustNumber(t, "50100234566666")
	if _, err := h.service.Register(t.Context(), r); !errors.Is(err, bank.ErrSessionEnded) {
		t.Errorf("registered by an ended session: %v", err)
	}
	if a := h.account(); a.ID != first.ID {
		t.Errorf("the account is %+v", a)
	}
}

// TestRegister_HoldComesFirst replaces a verified account: who cuts the newest entries off the journal must not be left with the account and without the hold.
func TestRegister_HoldComesFirst(t *testing.T) {
	h := newFixture(t)
	if _, err := h.service.Resolve(t.Context(), ada, h.register(h.ashas()).ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	other := h.ashas()
	other.Number = mustNumber(t, "50100987654321")
	added := h.register(other)
	entries, err := h.db.EntriesAfter(t.Context(), "usr_asha", 0, 100)
	held := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Type == ledger.PayoutsOnHold })
	begins := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Subject == string(added.ID) })
	if err != nil || held < 0 || begins < 0 || held > begins {
		t.Errorf("the hold is entry %d, and the account begins with entry %d of %+v (error %v)", held, begins, entries, err)
	}
}

func TestRegister_AReplacementIsMailedToTheSeller(t *testing.T) {
	h := newFixture(t)
	h.register(h.ashas())
	h.register(h.ashas()) // the same again
	if notices := h.mailbox.To("usr_asha@example.com"); len(notices) != 0 {
		t.Fatalf("the first account was told: %+v", notices)
	}
	other := h.ashas()
	other.Number = mustNumber(t, "50100987654321")
	h.register(other)
	want := []mail.Data{mail.BankAccountReplaced{At: h.now.UTC(), Was: "6789", Now: "4321"}} // nothing could have been paid to it
	if diff := cmp.Diff(want, h.mailbox.To("usr_asha@example.com")); diff != "" {
		t.Error(diff)
	}
	if _, err := h.service.Resolve(t.Context(), ada, h.account().ID, bank.Verdict{Verified: true}); err != nil {
		t.Fatal(err)
	}
	h.register(h.ashas())
	want = append(want, mail.BankAccountReplaced{At: h.now.UTC(), Was: "4321", Now: "6789", HoldUntil: h.now.UTC().Add(72 * time.Hour)})
	if diff := cmp.Diff(want, h.mailbox.To("usr_asha@example.com")); diff != "" {
		t.Error(diff)
	}
}

// A thief moves the account to another address and registers a bank account, which the owner's undo rejects. The account that is registered next
// takes the place of the owner's all the same, which is verified and a former one by then.
func TestRegister_AfterARejectedOne_FormerVerifiedCounts(t *testing.T) {
	h := newFixture(t, valid("ASHA DESAI", 100), valid("ASHA DESAI", 100), valid("ASHA DESAI", 100))
	h.register(h.ashas())
	h.mustStep()
	h.now = h.now.Add(1000 * time.Hour)
	since := h.now
	thiefs := h.ashas()
	thiefs.Number = mustNumber(t, "50200123456789")
	h.register(thiefs)
	err := h.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
		return tx.RejectBankAccountsSince(t.Context(), thiefs.Seller, "undone", since, h.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(200 * time.Hour) // the thief's hold is over
	const asha = "usr_asha@example.com"
	before := len(h.mailbox.To(asha))
	next := h.ashas()
	next.Number, next.Actor = mustNumber(t, "50200123450000"), "key:key_leaked"
	h.register(next)
	b, err := h.db.Balance(t.Context(), next.Seller)
	if err != nil {
		t.Fatal(err)
	}
	if mails := len(h.mailbox.To(asha)) - before; !b.Hold(h.now).After(h.now) || mails != 1 {
		t.Errorf("payouts are on hold until %v and %d mails went out; want a hold and one mail", b.Hold(h.now), mails)
	}
}
