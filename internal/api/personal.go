package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/sale"
)

// exportPage is how many payouts or sales an export reads at once.
const exportPage = 200

// personalJSON is the beginning of an export: all but the lists that may be long.
type personalJSON struct {
	User        userJSON         `json:"user"`
	SignIns     []signInJSON     `json:"signIns"`
	Factors     []factorJSON     `json:"factors"`
	Sessions    []sessionJSON    `json:"sessions"`
	BankAccount *bankAccountJSON `json:"bankAccount"`
}

// signInJSON is a way to sign in through a provider.
type signInJSON struct {
	Provider orNull `json:"provider"`
	Issuer   string `json:"issuer"`
	Subject  string `json:"subject"`
	Email    string `json:"email"`
	LinkedAt string `json:"linkedAt"`
}

// signInsOf lists the caller's ways to sign in through a provider.
func (a *api) signInsOf(ctx context.Context, who caller) ([]signInJSON, error) {
	identities, err := a.o.Auth.Identities(ctx, who.UserID)
	shown := make([]signInJSON, len(identities))
	for n, i := range identities {
		shown[n] = signInJSON{orNull(i.Provider), i.Issuer, i.Subject, i.Email, stamp(i.Since)}
	}
	return shown, err
}

// personal reads all about the caller but their payouts and sales.
func (a *api) personal(ctx context.Context, who caller) (personalJSON, error) {
	me, err := a.me(ctx, who, none{})
	if err != nil {
		return personalJSON{}, err
	}
	sessions, err := a.sessions(ctx, who, none{})
	if err != nil {
		return personalJSON{}, err
	}
	factors, err := a.factors(ctx, who, none{})
	if err != nil {
		return personalJSON{}, err
	}
	all := personalJSON{User: me.data.User, Factors: factors.data.Factors, Sessions: sessions.data.Sessions}
	if all.SignIns, err = a.signInsOf(ctx, who); err != nil {
		return personalJSON{}, err
	}
	account, err := a.o.Bank.Account(ctx, who.UserID)
	switch {
	case err == nil:
		shown := a.bankAccountOf(account)
		all.BankAccount = &shown
	case !errors.Is(err, bank.ErrNone):
		return personalJSON{}, err
	}
	return all, nil
}

// export answers with a file of all that is stored about the caller. It is written while it is read: it may be long.
func (a *api) export(w http.ResponseWriter, r *http.Request) {
	who, err := a.signedIn(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	all, err := a.personal(r.Context(), who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="personal-data.json"`)
	if r.Method == http.MethodHead {
		return
	}
	out := &patient{w: w, controller: http.NewResponseController(w)}
	a.endFile(w, r, out, a.writeExport(r.Context(), out, who, all))
}

func (a *api) writeExport(ctx context.Context, out io.Writer, who caller, all personalJSON) error {
	head, err := json.Marshal(all)
	if err != nil {
		return err
	}
	begin := append([]byte(`{"success":true,"data":`), head[:len(head)-1]...) // the object goes on
	if _, err := out.Write(begin); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		each func(list *listWriter) error
	}{
		{"payouts", func(list *listWriter) error {
			return a.eachPayout(ctx, who.UserID, func(p payout.Payout) error { return list.add(a.payoutOf(p)) })
		}},
		{"sales", func(list *listWriter) error {
			return a.eachSale(ctx, who.UserID, func(s sale.Sale) error { return list.add(a.saleOf(s)) })
		}},
		{"adjustments", func(list *listWriter) error {
			return eachBefore(exportPage, func(before int64) ([]sale.Adjustment, error) {
				return a.o.Sales.Adjustments(ctx, who.UserID, before, exportPage)
			}, func(m sale.Adjustment) (int64, error) { return m.Entry, list.add(a.adjustmentOf(m)) })
		}},
		{"securityEvents", func(list *listWriter) error {
			return eachBefore(auth.MaxSecurityEvents, func(before int64) ([]auth.SecurityEvent, error) {
				return a.o.Auth.SecurityEvents(ctx, who.UserID, before, auth.MaxSecurityEvents)
			}, func(e auth.SecurityEvent) (int64, error) { return e.Number, list.add(securityEventOf(e)) })
		}},
	} {
		if _, err := io.WriteString(out, `,"`+part.name+`":[`); err != nil {
			return err
		}
		if err := part.each(&listWriter{out: out}); err != nil {
			return err
		}
		if _, err := io.WriteString(out, "]"); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, "}}\n")
	return err
}

// eachBefore calls fn with each item of all pages, the newest first; fn returns the number of its entry, which the next page
// goes on before.
func eachBefore[T any](pageSize int, list func(before int64) ([]T, error), fn func(T) (int64, error)) error {
	before := int64(0)
	for {
		page, err := list(before)
		if err != nil {
			return err
		}
		for _, item := range page {
			if before, err = fn(item); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// eachPayout calls fn with each payout of a seller, the newest first.
func (a *api) eachPayout(ctx context.Context, seller string, fn func(payout.Payout) error) error {
	own := payout.Caller{User: seller}
	list := func(offset int) ([]payout.Payout, error) {
		page, _, err := a.o.Payouts.History(ctx, own, payout.Filter{Limit: exportPage, Offset: offset})
		return page, err
	}
	return eachOf(list, func(p payout.Payout) string { return string(p.ID) }, func(listed payout.Payout) error {
		p, err := a.o.Payouts.Payout(ctx, own, listed.ID) // a list leaves out notes, fee and account
		if err != nil {
			return err
		}
		return fn(p)
	})
}

// eachSale calls fn with each sale of a seller, the newest first.
func (a *api) eachSale(ctx context.Context, seller string, fn func(sale.Sale) error) error {
	list := func(offset int) ([]sale.Sale, error) {
		page, _, err := a.o.Sales.List(ctx, seller, offset, exportPage)
		return page, err
	}
	return eachOf(list, func(s sale.Sale) string { return s.ID }, fn)
}

// eachOf calls fn with each item of all pages. What is added meanwhile moves items to the next page, where they come up
// again and are skipped.
func eachOf[T any](list func(offset int) ([]T, error), id func(T) string, fn func(T) error) error {
	before := map[string]bool{}
	for offset := 0; ; offset += exportPage {
		page, err := list(offset)
		if err != nil {
			return err
		}
		ids := make(map[string]bool, len(page))
		for _, item := range page {
			ids[id(item)] = true
			if before[id(item)] {
				continue
			}
			if err := fn(item); err != nil {
				return err
			}
		}
		if len(page) < exportPage {
			return nil
		}
		before = ids
	}
}

// listWriter writes the items of a JSON array.
type listWriter struct {
	out  io.Writer
	more bool
}

func (l *listWriter) add(item any) error {
	text, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if l.more {
		text = append([]byte(","), text...)
	}
	l.more = true
	_, err = l.out.Write(text)
	return err
}
