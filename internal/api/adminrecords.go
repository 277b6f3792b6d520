package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/health"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/mail"
	"bursar/internal/payout"
	"bursar/internal/reconcile"
)

type bankAccountIDRequest struct{ account bank.ID }

func (req *bankAccountIDRequest) read(in *input) { req.account = in.bankAccountID() }

// adminBankAccountJSON is a bank account with what speaks for and against it.
type adminBankAccountJSON struct {
	bankAccountJSON
	SellerID       string         `json:"sellerId"`
	SellerName     string         `json:"sellerName"`
	Current        bool           `json:"current"`
	RegisteredName orNull         `json:"registeredName"`
	NameScore      *int           `json:"nameScore"`
	Decisions      []decisionJSON `json:"decisions"`
}

func (a *api) adminBankAccount(ctx context.Context, _ caller, req bankAccountIDRequest) (reply[adminBankAccountJSON], error) {
	account, err := a.o.Bank.AccountByID(ctx, req.account)
	if errors.Is(err, bank.ErrNone) {
		err = errNoBankAccount
	}
	if err != nil {
		return reply[adminBankAccountJSON]{}, err
	}
	data := adminBankAccountJSON{bankAccountJSON: a.bankAccountOf(account), SellerID: account.Seller, Current: account.Current, RegisteredName: orNull(account.RegisteredName)}
	if account.NameScore >= 0 {
		data.NameScore = &account.NameScore
	}
	names, err := a.o.Decisions.UserNames(ctx, []string{account.Seller})
	if err != nil {
		return reply[adminBankAccountJSON]{}, err
	}
	data.SellerName = names[account.Seller]
	data.Decisions, err = a.decisionsOf(ctx, string(account.ID), shownDecisions)
	return answer(data, err)
}

type usersRequest struct {
	query string
	limit int
}

func (req *usersRequest) read(in *input) {
	req.query, _ = in.parameter("q")
	req.limit = in.number("limit", defaultSelected, maxSelected)
}

type usersJSON struct {
	Users []listedUserJSON `json:"users"`
}

type listedUserJSON struct {
	foundUserJSON
	IsVerified bool   `json:"isVerified"`
	CreatedAt  string `json:"createdAt"`
}

func listedUserOf(u auth.User) listedUserJSON {
	return listedUserJSON{foundUserOf(u), u.Verified, stamp(u.CreatedAt)}
}

func (a *api) users(ctx context.Context, _ caller, req usersRequest) (reply[usersJSON], error) {
	list, err := a.o.Auth.FindUsers(ctx, req.query, req.limit)
	return answer(usersJSON{mapped(list, listedUserOf)}, err)
}

type userIDRequest struct{ user string }

func (req *userIDRequest) read(in *input) { req.user = in.userID() }

// adminUserJSON is a user with their money.
type adminUserJSON struct {
	listedUserJSON
	Balance     totalsAfter      `json:"balance"`
	Earned      json.Number      `json:"totalEarnings"`
	Withdrawn   json.Number      `json:"totalWithdrawn"`
	Frozen      bool             `json:"frozen"`
	HoldUntil   orNull           `json:"holdUntil"`
	BankAccount *bankAccountJSON `json:"bankAccount"`
	Decisions   []decisionJSON   `json:"decisions"`
}

func (a *api) user(ctx context.Context, _ caller, req userIDRequest) (reply[adminUserJSON], error) {
	u, _, err := a.o.Auth.User(ctx, req.user)
	if err != nil {
		return reply[adminUserJSON]{}, err
	}
	b, err := a.o.Ledger.Balance(ctx, u.ID)
	if err != nil {
		return reply[adminUserJSON]{}, err
	}
	data := adminUserJSON{
		listedUserJSON: listedUserOf(u), Balance: a.totalsOf(b), Earned: a.amount(b.Earned), Withdrawn: a.amount(b.Withdrawn),
		Frozen: b.Frozen, HoldUntil: stampOrNull(b.Hold(a.o.Now())),
	}
	account, err := a.o.Bank.Account(ctx, u.ID)
	if err == nil {
		shown := a.bankAccountOf(account)
		data.BankAccount = &shown
	} else if !errors.Is(err, bank.ErrNone) {
		return reply[adminUserJSON]{}, err
	}
	data.Decisions, err = a.decisionsOf(ctx, u.ID, shownDecisions)
	return answer(data, err)
}

// limitRequest asks for the newest of a list.
type limitRequest struct{ limit int }

func (req *limitRequest) read(in *input) {
	req.limit = in.number("limit", defaultSelected, maxSelected)
}

type differencesJSON struct {
	Differences []differenceJSON `json:"differences"`
}

type differenceJSON struct {
	ID         string         `json:"id"`
	Kind       reconcile.Kind `json:"kind"`
	Meaning    string         `json:"meaning"`
	Gateway    string         `json:"gateway"`
	Subject    string         `json:"subject"`
	PayoutID   orNull         `json:"payoutId"`
	Detail     string         `json:"detail"`
	At         string         `json:"at"`
	AtGateway  json.Number    `json:"atGateway"`
	InLedger   json.Number    `json:"inLedger"`
	FirstSeen  string         `json:"firstSeenAt"`
	LastSeen   string         `json:"lastSeenAt"`
	GoneAt     orNull         `json:"goneAt"`
	ResolvedAt orNull         `json:"resolvedAt"`
}

func (a *api) differenceOf(d reconcile.Difference) differenceJSON {
	return differenceJSON{
		d.ID, d.Kind, d.Kind.Meaning(), string(d.Gateway), d.Subject, orNull(d.Payout), d.Detail, stamp(d.At), a.amount(d.AtGateway), a.amount(d.InLedger),
		stamp(d.FirstSeen), stamp(d.LastSeen), stampOrNull(d.GoneAt), stampOrNull(d.ResolvedAt),
	}
}

func (a *api) differences(ctx context.Context, _ caller, req limitRequest) (reply[differencesJSON], error) {
	open, err := a.o.Reconciling.Open(ctx, req.limit)
	return answer(differencesJSON{mapped(open, a.differenceOf)}, err)
}

type differenceRequest struct{ id string }

func (req *differenceRequest) read(in *input) {
	req.id = in.r.PathValue("differenceId")
	if limits.Reference(req.id) != "" {
		in.refuse(reconcile.ErrNotFound)
	}
}

type evidenceJSON struct {
	differenceJSON
	Payout    *selectedPayoutJSON `json:"payout"`
	Lines     []lineJSON          `json:"lines"`
	Decisions []decisionJSON      `json:"decisions"`
}

// lineJSON is a line of the gateway's statement.
type lineJSON struct {
	ID       string      `json:"id"`
	Gateway  string      `json:"gateway"`
	At       string      `json:"at"`
	Debit    json.Number `json:"debit"`
	Credit   json.Number `json:"credit"`
	Currency string      `json:"currency"`
	Kind     string      `json:"kind"`
	UTR      orNull      `json:"utr"`
	// Missing means that a later reading of the statement did not find the line.
	Missing bool `json:"missing"`
}

func (a *api) lineOf(l reconcile.Line) lineJSON {
	return lineJSON{l.ID, string(l.Gateway), stamp(l.At), a.amount(l.Debit), a.amount(l.Credit), l.Currency, l.RawKind, orNull(l.UTR), l.Missing}
}

func (a *api) difference(ctx context.Context, _ caller, req differenceRequest) (reply[evidenceJSON], error) {
	e, err := a.o.Reconciling.Evidence(ctx, req.id)
	if err != nil {
		return reply[evidenceJSON]{}, err
	}
	data := evidenceJSON{differenceJSON: a.differenceOf(e.Difference), Lines: mapped(e.Lines, a.lineOf)}
	if p := e.Payout; p != nil {
		names, err := a.o.Decisions.UserNames(ctx, []string{p.Seller})
		if err != nil {
			return reply[evidenceJSON]{}, err
		}
		shown := a.selectedPayout(payout.Selected{Payout: *p, SellerName: names[p.Seller]})
		data.Payout = &shown
	}
	data.Decisions, err = a.decisionsOf(ctx, e.ID, shownDecisions)
	return answer(data, err)
}

type resolveDifferenceRequest struct {
	differenceRequest
	seen, note string
}

func (req *resolveDifferenceRequest) read(in *input) {
	req.differenceRequest.read(in)
	req.seen = in.text("detail", checkProse(maxSeen))
	req.note = in.text("note", checkReason)
}

type resolvedDifferenceJSON struct {
	ID string `json:"id"`
}

func (a *api) resolveDifference(ctx context.Context, who caller, req resolveDifferenceRequest) (reply[resolvedDifferenceJSON], error) {
	err := a.o.Reconciling.Resolve(ctx, decision.By{Admin: who.UserID, Note: req.note}, req.id, req.seen)
	return reply[resolvedDifferenceJSON]{message: "The difference is resolved. No money was moved.", data: resolvedDifferenceJSON{req.id}}, err
}

type reconciliationJSON struct {
	Reached  orNull    `json:"reachedAt"`
	Failures int       `json:"failures"`
	RetryAt  orNull    `json:"retryAt"`
	Runs     []runJSON `json:"runs"`
}

type runJSON struct {
	ID           string      `json:"id"`
	Gateway      string      `json:"gateway"`
	From         string      `json:"from"`
	To           string      `json:"to"`
	Daily        bool        `json:"daily"`
	EndedAt      string      `json:"endedAt"`
	Lines        int         `json:"lines"`
	Payouts      int         `json:"payouts"`
	Unjudged     int         `json:"unjudged"`
	Open         int         `json:"open"`
	AtGateway    json.Number `json:"atGateway"`
	InLedger     json.Number `json:"inLedger"`
	Fees         json.Number `json:"fees"`
	UnderWay     json.Number `json:"underWay"`
	OtherPeriod  json.Number `json:"otherPeriod"`
	OtherGateway json.Number `json:"otherGateway"`
	Differing    json.Number `json:"differing"`
	Rest         json.Number `json:"unexplained"`
}

func (a *api) runOf(r reconcile.Run) runJSON {
	s := r.Result.Sums
	return runJSON{
		r.ID, string(r.Gateway), stamp(r.Period.From), stamp(r.Period.To), r.Daily, stamp(r.EndedAt), r.Result.Lines, r.Result.Payouts, r.Result.Unjudged, r.Result.Open,
		a.amount(s.AtGateway()), a.amount(s.InLedger()), a.amount(s.Fees), a.amount(s.UnderWay), a.amount(s.OtherPeriod), a.amount(s.OtherGateway), a.amount(s.Differing), a.amount(s.Rest()),
	}
}

func (a *api) reconciliation(ctx context.Context, _ caller, req limitRequest) (reply[reconciliationJSON], error) {
	o, err := a.o.Reconciling.Overview(ctx, req.limit)
	return answer(reconciliationJSON{stampOrNull(o.Reached), o.Failures, stampOrNull(o.RetryAt), mapped(o.Runs, a.runOf)}, err)
}

type auditStateJSON struct {
	Running bool       `json:"running"`
	BeganAt orNull     `json:"beganAt"`
	Last    *auditJSON `json:"last"`
}

type auditJSON struct {
	BeganAt  string        `json:"beganAt"`
	EndedAt  string        `json:"endedAt"`
	Finished bool          `json:"finished"`
	Clean    bool          `json:"clean"`
	Sellers  int64         `json:"sellers"`
	Sales    int64         `json:"sales"`
	Payouts  int64         `json:"payouts"`
	Entries  int64         `json:"entries"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Name       string          `json:"name"`
	Promise    string          `json:"promise"`
	Passed     bool            `json:"passed"`
	Violations []violationJSON `json:"violations"`
}

type violationJSON struct {
	SellerID orNull `json:"sellerId"`
	Subject  orNull `json:"subject"`
	Problem  string `json:"problem"`
	Next     orNull `json:"next"`
}

func auditStateOf(s health.AuditState) *auditStateJSON {
	data := &auditStateJSON{Running: s.Running}
	if s.Running {
		data.BeganAt = orNull(stamp(s.Began))
	}
	if l := s.Last; l != nil {
		r := l.Report
		data.Last = &auditJSON{stamp(l.Began), stamp(l.Ended), !l.Failed, l.Clean(), r.Sellers, r.Sales, r.Payouts, r.Entries, findingsOf(r)}
	}
	return data
}

func findingsOf(r ledger.Report) []findingJSON {
	violation := func(v ledger.Violation) violationJSON {
		return violationJSON{orNull(v.Seller), orNull(v.Subject), v.Problem, orNull(v.Next)}
	}
	return mapped(r.Findings, func(f ledger.Finding) findingJSON {
		return findingJSON{f.Name, f.Promise, len(f.Violations) == 0, mapped(f.Violations, violation)}
	})
}

func (a *api) audit(context.Context, caller, none) (reply[*auditStateJSON], error) {
	return reply[*auditStateJSON]{data: auditStateOf(a.o.Audits.State())}, nil
}

// beginAudit starts an audit, or joins the one that runs.
func (a *api) beginAudit(context.Context, caller, none) (reply[*auditStateJSON], error) {
	return reply[*auditStateJSON]{status: http.StatusAccepted, message: "The audit runs. GET /api/admin/ledger/audit tells how it ends.", data: auditStateOf(a.o.Audits.Begin())}, nil
}

type workHealthJSON struct {
	Version           string      `json:"version"`
	StartedAt         string      `json:"startedAt"`
	StartupReconciled bool        `json:"startupReconciled"`
	Loops             []loopJSON  `json:"loops"`
	Pools             []poolJSON  `json:"pools"`
	Backlog           backlogJSON `json:"backlog"`
}

type loopJSON struct {
	Name          string       `json:"name"`
	State         health.State `json:"state"`
	Steps         int64        `json:"steps"`
	Failures      int64        `json:"failures"`
	LastPollAt    orNull       `json:"lastPollAt"`
	LastStepAt    orNull       `json:"lastStepAt"`
	LastFailureAt orNull       `json:"lastFailureAt"`
	LastError     orNull       `json:"lastError"`
}

type poolJSON struct {
	Name   string `json:"name"`
	InUse  int    `json:"inUse"`
	Max    int    `json:"max"`
	Waits  int64  `json:"waits"`
	Waited int64  `json:"waitedMs"`
}

type backlogJSON struct {
	Unknown            int64  `json:"unknown"`
	ManualReview       int64  `json:"manualReview"`
	Discrepancies      int64  `json:"discrepancies"`
	UnmatchedTransfers int64  `json:"unmatchedTransfers"`
	AccountsInReview   int64  `json:"bankAccountsInReview"`
	Differences        int64  `json:"differences"`
	WebhooksDisabled   int64  `json:"webhookEndpointsDisabled"`
	Late               int64  `json:"late"`
	LateSince          orNull `json:"lateSince"`
	PayoutDue          orNull `json:"payoutDueSince"`
	AccountDue         orNull `json:"bankAccountDueSince"`
	SaleDue            orNull `json:"saleDueSince"`
	MailDue            orNull `json:"mailDueSince"`
}

func (a *api) loopOf(l health.Loop) loopJSON {
	return loopJSON{
		l.Name, l.State(a.o.Now()), l.Steps, l.Failures, stampOrNull(l.LastPollAt), stampOrNull(l.LastStepAt), stampOrNull(l.LastFailureAt), orNull(l.LastError),
	}
}

func poolOf(p health.Pool) poolJSON {
	return poolJSON{p.Name, p.InUse, p.Max, p.Waits, int64(p.Waited / time.Millisecond)}
}

func (a *api) workHealth(ctx context.Context, _ caller, _ none) (reply[workHealthJSON], error) {
	b, err := a.o.Health.Backlog(ctx)
	if err != nil {
		return reply[workHealthJSON]{}, err
	}
	i := a.o.Health.Instance()
	data := workHealthJSON{i.Version, stamp(i.StartedAt), a.o.Payouts.StartupReconciled(), mapped(a.o.Health.Loops(), a.loopOf), mapped(i.Pools, poolOf), backlogJSON{
		b.Unknown, b.ManualReview, b.Discrepancies, b.UnmatchedTransfers, b.AccountsInReview, b.Differences, b.WebhooksDisabled, b.Late, stampOrNull(b.LateSince),
		stampOrNull(b.PayoutDue), stampOrNull(b.AccountDue), stampOrNull(b.SaleDue), stampOrNull(b.MailDue),
	}}
	return reply[workHealthJSON]{data: data}, nil
}

type mailsJSON struct {
	Mails []mailJSON `json:"mails"`
}

type mailJSON struct {
	ID        string     `json:"id"`
	Kind      mail.Kind  `json:"kind"`
	UserID    string     `json:"userId"`
	To        string     `json:"to"`
	State     mail.State `json:"state"`
	Tries     int64      `json:"tries"`
	LastError orNull     `json:"lastError"`
	CreatedAt string     `json:"createdAt"`
	DueAt     orNull     `json:"dueAt"`
	EndedAt   orNull     `json:"endedAt"`
}

func mailOf(m mail.Row) mailJSON {
	return mailJSON{m.ID, m.Kind, m.User, m.Masked, m.State, m.Tries, orNull(m.LastError), stamp(m.CreatedAt), stampOrNull(m.DueAt), stampOrNull(m.EndedAt)}
}

func (a *api) mails(ctx context.Context, _ caller, req limitRequest) (reply[mailsJSON], error) {
	rows, err := a.o.Mails.Latest(ctx, req.limit)
	return answer(mailsJSON{mapped(rows, mailOf)}, err)
}

type mailRequest struct{ id string }

var errNoMail = fault.New(fault.NotFound, "mail_not_found", "There is no mail with this id. Mails that ended long ago are deleted.")

func (req *mailRequest) read(in *input) {
	req.id = in.r.PathValue("mailId")
	if !id.Valid("mai_", req.id) {
		in.refuse(errNoMail)
	}
}

type wholeMailJSON struct {
	mailJSON
	// Body is the message, on a developer's machine alone.
	Body orNull `json:"body"`
}

func (a *api) mail(ctx context.Context, _ caller, req mailRequest) (reply[wholeMailJSON], error) {
	m, found, err := a.o.Mails.Mail(ctx, req.id)
	if err == nil && !found {
		err = errNoMail
	}
	if err != nil {
		return reply[wholeMailJSON]{}, err
	}
	body, _, err := a.o.Mails.Body(req.id)
	return answer(wholeMailJSON{mailOf(m), orNull(body)}, err)
}
