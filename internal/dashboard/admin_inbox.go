package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// taskKind tells the kinds of what waits for a person apart.
type taskKind string

// Kinds of tasks.
const (
	kindDiscrepancy  taskKind = "discrepancy"
	kindUnmatched    taskKind = "unmatched-transfer"
	kindManualReview taskKind = "manual_review"
	kindNoGateway    taskKind = "no-gateway"
	kindDifference   taskKind = "difference"
	kindAccount      taskKind = "bank-account"
	kindLate         taskKind = "late"
	kindUnknown      taskKind = "unknown"
)

// taskKinds lists all, the most pressing first.
var taskKinds = []taskKind{kindDiscrepancy, kindUnmatched, kindManualReview, kindNoGateway, kindLate, kindDifference, kindAccount, kindUnknown}

// Label is a kind in a word or two.
func (k taskKind) Label() label {
	switch k {
	case kindDiscrepancy:
		return label{"Discrepancy", bad}
	case kindUnmatched:
		return label{"Unmatched transfer", bad}
	case kindManualReview:
		return label{"In review", bad}
	case kindNoGateway:
		return label{"No gateway", bad}
	case kindLate:
		return label{"Late", bad}
	case kindDifference:
		return label{"Difference", bad}
	case kindAccount:
		return label{"Bank account", busy}
	default:
		return label{"Unknown", busy}
	}
}

func inboxAddress(k taskKind) string {
	return adminHome + "/inbox?" + url.Values{"kind": {string(k)}}.Encode()
}

// The inbox shows so many of each part, and looks at so many bank accounts.
const (
	tasksShown      = 30
	accountsToShow  = 100
	tasksPerKindMax = 100
)

// task is one thing that waits for a person.
type task struct {
	Kind   taskKind
	Path   string
	Since  time.Time
	Amount money.Amount
	// Name is what it is called where it is not about a seller.
	Name string
	// SellerName is empty for a seller whom the ledger does not know.
	Seller, SellerName string
	// Evidence is what is known, in sentences.
	Evidence []string
	// Names are compared where the task is a bank account.
	Names *namePair
}

// Title is what the link to the task says where there is no amount.
func (t task) Title() string {
	return cmp.Or(t.Name, t.SellerName, t.Seller, "unknown seller")
}

// SinceWord says what happened then.
func (t task) SinceWord() string {
	switch t.Kind {
	case kindUnmatched, kindDifference:
		return "Found"
	case kindAccount:
		return "Registered"
	case kindLate:
		return "Should have arrived"
	case kindDiscrepancy, kindNoGateway:
		return "Requested"
	default:
		return "First sent"
	}
}

// inboxView is what waits for a person.
type inboxView struct {
	Kind    taskKind // "" for all
	Filters []filter
	// Tasks wait for a decision; Looked are still looked for by themselves.
	Tasks, Looked []task
	// Cut says that there are more than are shown.
	Cut bool
}

// adminInbox lists what waits for a person, the oldest first.
func (d *dashboard) adminInbox(ctx context.Context, v *pageRequest) (page, error) {
	kind := taskKind(v.query("kind"))
	if !slices.Contains(taskKinds, kind) {
		kind = ""
	}
	all, full, err := d.tasks(ctx)
	if err != nil {
		return page{}, err
	}
	in := inboxView{Kind: kind, Filters: inboxFilters(all, kind), Cut: full}
	for _, t := range all {
		if kind != "" && t.Kind != kind {
			continue
		}
		list := &in.Tasks
		if t.Kind == kindUnknown {
			list = &in.Looked
		}
		if len(*list) == tasksShown {
			in.Cut = true
			continue
		}
		*list = append(*list, t)
	}
	if err := d.nameTasks(ctx, in.Tasks, in.Looked); err != nil {
		return page{}, err
	}
	return show("admin-inbox", "Inbox", in), nil
}

// tasks lists what waits, the oldest first, and reports whether some kind has more than is looked at.
func (d *dashboard) tasks(ctx context.Context) (all []task, full bool, err error) {
	attention, err := d.o.Payouts.Attention(ctx)
	if err != nil {
		return nil, false, err
	}
	accounts, err := d.o.Bank.InReview(ctx, accountsToShow)
	if err != nil {
		return nil, false, err
	}
	differences, err := d.o.Reconciling.Open(ctx, tasksPerKindMax)
	if err != nil {
		return nil, false, err
	}
	withDiscrepancy, late := map[payout.ID]bool{}, map[payout.ID]bool{}
	for _, p := range attention.Late {
		late[p.ID] = true
		all = append(all, d.lateTask(p))
	}
	for _, p := range attention.Discrepancies {
		withDiscrepancy[p.ID] = true
		all = append(all, d.payoutTask(p))
	}
	for _, p := range attention.Unclear {
		if !withDiscrepancy[p.ID] && !late[p.ID] {
			all = append(all, d.payoutTask(p))
		}
	}
	for _, p := range attention.WithoutGateway {
		if !withDiscrepancy[p.ID] {
			all = append(all, d.withoutGatewayTask(p))
		}
	}
	for _, s := range attention.UnmatchedTransfers {
		all = append(all, d.unmatchedTask(s))
	}
	for _, f := range differences {
		all = append(all, d.differenceTask(f))
	}
	for _, a := range accounts {
		all = append(all, d.accountTask(a))
	}
	slices.SortStableFunc(all, func(a, b task) int { return a.Since.Compare(b.Since) })
	full = max(len(attention.Discrepancies), len(attention.Unclear), len(attention.WithoutGateway), len(attention.Late), len(attention.UnmatchedTransfers), len(accounts), len(differences)) >= tasksPerKindMax
	return all, full, nil
}

// nameTasks names the sellers of those tasks that are shown.
func (d *dashboard) nameTasks(ctx context.Context, lists ...[]task) error {
	var sellers []string
	for _, list := range lists {
		for _, t := range list {
			sellers = append(sellers, t.Seller)
		}
	}
	names, err := d.people(ctx, sellers...)
	if err != nil {
		return err
	}
	for _, list := range lists {
		for i := range list {
			list[i].SellerName = names[list[i].Seller]
		}
	}
	return nil
}

func (d *dashboard) payoutTask(p payout.Payout) task {
	t := task{Path: adminPayoutAddress(p.ID), Since: cmp.Or(p.SentAt, p.RequestedAt), Amount: p.Amount, Seller: p.Seller}
	switch {
	case p.Discrepancy != "":
		t.Kind = kindDiscrepancy
		t.Since = p.RequestedAt
		t.Evidence = []string{"The gateway says: " + sentenceOf(p.Discrepancy)}
		if p.IsTampered() {
			t.Evidence = []string{"Tampered with: " + sentenceOf(p.Discrepancy)}
		}
	case p.State == payout.ManualReview:
		t.Kind = kindManualReview
		t.Evidence = []string{"It was sent, and the gateway could not say what became of it."}
	default:
		t.Kind = kindUnknown
		t.Evidence = []string{fmt.Sprintf("The answer is missing; looked for %s by now.", times(p.Tries))}
	}
	return t
}

func (d *dashboard) withoutGatewayTask(p payout.Payout) task {
	return task{
		Kind: kindNoGateway, Path: adminPayoutAddress(p.ID), Since: p.RequestedAt, Amount: p.Amount, Seller: p.Seller,
		Evidence: []string{fmt.Sprintf("Its gateway, %s, is not configured, so nothing more is sent or asked. Configure it again, or cancel the payout where that is offered.", p.Gateway)},
	}
}

func (d *dashboard) lateTask(p payout.Payout) task {
	evidence := "The gateway has it and has not said that the bank paid. Ask the gateway, with the payout's id as the reference."
	switch {
	case p.OnHold():
		evidence = "It waits because payouts are frozen for this seller or paused for all."
	case p.State == payout.Unknown:
		evidence = fmt.Sprintf("The gateway's answer is missing; looked for %s by now.", times(p.Tries))
	case p.State == payout.Waiting:
		evidence = fmt.Sprintf("It is not sent yet; tried %s by now.", times(p.Tries))
	}
	return task{Kind: kindLate, Path: adminPayoutAddress(p.ID), Since: p.ArriveAt, Amount: p.Amount, Seller: p.Seller, Evidence: []string{evidence}}
}

func (d *dashboard) unmatchedTask(s payout.UnmatchedTransfer) task {
	return task{
		Kind: kindUnmatched, Path: unmatchedAddress(s.Transfer.GatewayID), Since: s.FoundAt,
		Amount: s.Transfer.Amount, Seller: s.Transfer.Order.Seller,
		Evidence: []string{
			fmt.Sprintf("The gateway has transfer %s, which is %s, and the ledger has no payout for it: %s",
				s.Transfer.GatewayID, progressWords(s.Transfer.Progress), sentenceOf(s.Why)),
		},
	}
}

func (d *dashboard) accountTask(a bank.Account) task {
	t := task{Kind: kindAccount, Path: accountAddress(a.ID), Since: a.CreatedAt, Seller: a.Seller, Names: compareNames(a)}
	if a.RegisteredName == "" {
		t.Evidence = []string{"The bank told no name. " + sentenceOf(a.Reason)}
	} else {
		t.Evidence = []string{"The names are " + likenessWords(a.NameScore) + "."}
	}
	return t
}

// inboxFilters leads to the kinds that there are.
func inboxFilters(all []task, current taskKind) []filter {
	counts := make(map[taskKind]int)
	for _, t := range all {
		counts[t.Kind]++
	}
	filters := []filter{{"All", adminHome + "/inbox", current == ""}}
	for _, k := range taskKinds {
		if counts[k] > 0 || k == current {
			filters = append(filters, filter{fmt.Sprintf("%s (%d)", k.Label().Word, counts[k]), inboxAddress(k), k == current})
		}
	}
	return filters
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// sentenceOf ends a text as sentences end.
func sentenceOf(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
