package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"bursar/internal/auth"
	"bursar/internal/health"
	"bursar/internal/inbox"
	"bursar/internal/payout"
)

// adminHome is where admins arrive. All their pages are below it.
const adminHome = "/dashboard/admin"

// adminRoutes are the pages for admins. Whatever changes something is asked for on a page of its own,
// which shows the evidence first.
func (d *dashboard) adminRoutes() []route {
	return append(slices.Concat(d.stopRoutes(), d.webhookRoutes(), d.keyRoutes()), []route{
		{"GET", adminHome, admins, d.adminHomePage},
		{"GET", inboxPath, admins, d.adminInbox},
		{"POST", inboxPath + "/claim", admins, d.adminClaim},
		{"POST", inboxPath + "/ask", admins, d.adminAsk},
		{"GET", searchPath, admins, d.adminSearch},
		{"GET", adminHome + "/payouts", admins, d.adminPayouts},
		{"GET", adminHome + "/payouts/{id}", admins, d.adminPayout},
		{"GET", adminHome + "/payouts/{id}/{decision}", admins, d.adminDecision},
		{"POST", adminHome + "/payouts/{id}/{decision}", admins, d.adminDecide},
		{"GET", adminHome + "/bank-accounts/{id}", admins, d.adminAccount},
		{"POST", adminHome + "/bank-accounts/{id}", admins, d.adminResolve},
		{"GET", adminHome + "/unmatched-transfers/{id}", admins, d.adminUnmatched},
		{"POST", adminHome + "/unmatched-transfers/{id}", admins, d.adminResolveUnmatched},
		{"GET", adminHome + "/differences/{id}", admins, d.adminDifference},
		{"POST", adminHome + "/differences/{id}", admins, d.adminResolveDifference},
		{"GET", reconciliationPath, admins, d.adminReconciliation},
		{"GET", adminHome + "/sellers", admins, d.adminPeople},
		{"GET", adminHome + "/sellers/{id}", admins, d.adminPerson},
		{"GET", adminHome + "/sellers/{id}/access", admins, d.adminAccess},
		{"POST", adminHome + "/sellers/{id}/access", admins, d.adminSetAccess},
		{"GET", adminHome + "/sellers/{id}/hold", admins, d.adminHold},
		{"POST", adminHome + "/sellers/{id}/hold", admins, d.adminLiftHold},
		{"POST", adminHome + "/sellers/{id}/notes", admins, d.adminAddNote},
		{"GET", adminHome + "/sellers/{id}/adjust", admins, d.adminAdjust},
		{"POST", adminHome + "/sellers/{id}/adjust", admins, d.adminDoAdjust},
		{"GET", adminHome + "/ledger", admins, d.adminLedger},
		{"POST", adminHome + "/ledger", admins, d.adminAudit},
		{"GET", adminHome + "/health", admins, d.adminHealth},
		{"GET", decisionsPath, admins, d.adminDecisions},
		{"GET", mailsPath, admins, d.adminMails},
		{"GET", mailsPath + "/{id}", admins, d.adminMail},
	}...)
}

// adminNav lists where admins go.
func adminNav() []navEntry {
	return []navEntry{
		{adminHome, "Home", "home", 0},
		{inboxPath, "Inbox", "inbox", 0},
		{payoutsPath, "Payouts", "payout", 0},
		{adminHome + "/sellers", "Users", "people", 0},
		{adminHome + "/ledger", "Ledger", "ledger", 0},
		{adminHome + "/health", "Health", "pulse", 0},
	}
}

// homePayouts is how many of the newest payouts the admin home shows.
const homePayouts = 8

// homeView is what an operator sees first.
type homeView struct {
	// Waiting are the kinds of things that wait for a person, with how many there are of each.
	Waiting           []waiting
	Unknown           int64
	StartupReconciled bool
	// Paused says that all payouts are paused; nil if they are not.
	Paused  *pausedView
	Numbers figuresView
	Payouts []payoutRow
	Loops   []loopRow
	Ledger  auditView
}

// PausePath is where all payouts are paused.
func (v homeView) PausePath() string { return pausePath }

// Nothing reports whether nothing waits for a person.
func (v homeView) Nothing() bool { return len(v.Waiting) == 0 }

// Trouble reports whether a loop needs a look.
func (v homeView) Trouble() bool {
	for _, l := range v.Loops {
		if l.Label().Kind == bad {
			return true
		}
	}
	return false
}

// waiting is how many of one kind wait for a person.
type waiting struct {
	Count int64
	What  string
	Path  string
}

// adminHomePage shows the review queue, the latest payouts, the background jobs and the ledger status.
func (d *dashboard) adminHomePage(ctx context.Context, v *pageRequest) (page, error) {
	backlog, err := d.o.Health.Backlog(ctx)
	if err != nil {
		return page{}, err
	}
	list, _, err := d.o.Payouts.History(ctx, v.caller(), payout.Filter{Limit: homePayouts})
	if err != nil {
		return page{}, err
	}
	rows, err := d.payoutRows(ctx, list)
	if err != nil {
		return page{}, err
	}
	paused, err := d.paused(ctx)
	if err != nil {
		return page{}, err
	}
	numbers, err := d.figures(ctx, v)
	if err != nil {
		return page{}, err
	}
	return show("admin", "Home", homeView{
		Paused: paused, Numbers: numbers,
		Waiting: waitingOf(backlog, d.o.Now()), Unknown: backlog.Unknown, StartupReconciled: d.o.Payouts.StartupReconciled(),
		Payouts: rows, Loops: d.loopRows(), Ledger: auditView{d.o.Audits.State()},
	}), nil
}

// waitingOf lists what waits for a person, the most pressing first. Payouts that are unknown are still
// looked for by themselves.
func waitingOf(b health.Backlog, now time.Time) []waiting {
	var all []waiting
	add := func(count int64, one, many string, kind inbox.Kind) {
		switch {
		case count == 1:
			all = append(all, waiting{count, one, inboxAddress(kind)})
		case count > 1:
			all = append(all, waiting{count, many, inboxAddress(kind)})
		}
	}
	add(b.Discrepancies, "payout with a discrepancy", "payouts with a discrepancy", inbox.Discrepancy)
	add(b.UnmatchedTransfers, "unmatched transfer at the gateway", "unmatched transfers at the gateway", inbox.Unmatched)
	add(b.ManualReview, "payout in review, whose outcome is not known", "payouts in review, whose outcome is not known", inbox.ManualReview)
	late := ""
	if !b.LateSince.IsZero() {
		late = ", the oldest by " + lateBy(now.Sub(b.LateSince))
	}
	add(b.Late, "late payout, which should have arrived"+late, "late payouts, which should have arrived"+late, inbox.Late)
	add(b.Differences, "difference between the gateway's statement and the ledger", "differences between the gateway's statement and the ledger", inbox.Difference)
	add(b.AccountsInReview, "bank account to compare", "bank accounts to compare", inbox.Account)
	add(b.WebhooksDisabled, "webhook endpoint that was disabled", "webhook endpoints that were disabled", inbox.Endpoint)
	return all
}

// lateBy is how late a payout is, in words.
func lateBy(d time.Duration) string {
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	switch {
	case d >= 48*time.Hour:
		return count(int(d/(24*time.Hour)), "day")
	case d >= time.Hour:
		return count(int(d/time.Hour), "hour")
	default:
		return count(int(d/time.Minute), "minute")
	}
}

// people finds users' names by their ids. Who is not in the ledger has none.
func (d *dashboard) people(ctx context.Context, ids ...string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range ids {
		if _, known := names[id]; known || id == "" {
			continue
		}
		user, _, err := d.o.Auth.User(ctx, id)
		if errors.Is(err, auth.ErrUserNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names[id] = user.Name
	}
	return names, nil
}

// payoutRow is a payout as the admin's lists show it.
type payoutRow struct {
	payout.Payout
	SellerName string
}

// Label says where it stands.
func (p payoutRow) Label() label { return stateLabel(p.Payout) }

// Path is its page.
func (p payoutRow) Path() string { return adminPayoutAddress(p.ID) }

// SellerPath is its seller's page.
func (p payoutRow) SellerPath() string { return personAddress(p.Seller) }

// Bank is what the IFSC calls the bank that is paid.
func (p payoutRow) Bank() string { return p.AccountIFSC[:min(4, len(p.AccountIFSC))] }

// payoutRows names the sellers of payouts.
func (d *dashboard) payoutRows(ctx context.Context, list []payout.Payout) ([]payoutRow, error) {
	sellers := make([]string, 0, len(list))
	for _, p := range list {
		sellers = append(sellers, p.Seller)
	}
	names, err := d.people(ctx, sellers...)
	if err != nil {
		return nil, err
	}
	rows := make([]payoutRow, 0, len(list))
	for _, p := range list {
		rows = append(rows, payoutRow{p, names[p.Seller]})
	}
	return rows, nil
}

// The addresses of what admins look at. What comes from outside is escaped.
func adminPayoutAddress(id payout.ID) string {
	return adminHome + "/payouts/" + url.PathEscape(string(id))
}
func personAddress(id string) string { return adminHome + "/sellers/" + url.PathEscape(id) }
func unmatchedAddress(id string) string {
	return adminHome + "/unmatched-transfers/" + url.PathEscape(id)
}
