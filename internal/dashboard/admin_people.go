package dashboard

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/id"
	"bursar/internal/ledger"
	"bursar/internal/payout"
)

// peopleShown is how many users are listed at once.
const peopleShown = 25

// peopleView is who there is.
type peopleView struct {
	People []personRow
	// Cut says that there are more than are shown.
	Cut bool
}

// personRow is a user as a list shows them.
type personRow struct{ auth.User }

// Path is their page.
func (p personRow) Path() string { return personAddress(p.ID) }

// RoleWord is what they may do, in a word.
func (p personRow) RoleWord() string { return roleWord(p.Role) }

// Label says whether they can sign in.
func (p personRow) Label() label {
	if p.Suspended {
		return label{"Suspended", bad}
	}
	return label{"Active", good}
}

func roleWord(r auth.Role) string {
	switch r {
	case auth.Admin:
		return "Admin"
	case auth.Seller:
		return "Seller"
	default:
		return "Buyer"
	}
}

// adminPeople lists users.
func (d *dashboard) adminPeople(ctx context.Context, _ *pageRequest) (page, error) {
	var shown peopleView
	users, err := d.o.Auth.FindUsers(ctx, "", peopleShown+1)
	if err != nil {
		return page{}, err
	}
	if shown.Cut = len(users) > peopleShown; shown.Cut {
		users = users[:peopleShown]
	}
	for _, u := range users {
		shown.People = append(shown.People, personRow{u})
	}
	return show("admin-people", "Users", shown), nil
}

// personView is all about one user.
type personView struct {
	personRow
	Stats      auth.Stats
	Identities []auth.LinkedIdentity
	Balance    ledger.Balance
	Account    *bank.Account
	Branch     bank.Branch
	Payouts    []payoutRow
	History    accountHistory
	Decisions  []decisionRow
	Notes      []noteRow
	NoteForm   *form
	// OlderNotes is how many notes there are beside the newest, which are shown.
	OlderNotes int64
	// NotesTampered says that the notes can't be shown, because one was changed outside Bursar.
	NotesTampered bool
	// Adjustments are the newest of their balance.
	Adjustments []adjustmentRow
	// Self says that it is the admin who looks.
	Self bool
	// HoldUntil is when the hold on their payouts ends, zero without one.
	HoldUntil time.Time
}

// FreezePath is where their payouts are frozen, and UnfreezePath where they are resumed.
func (p personView) FreezePath() string   { return p.Path() + "/freeze" }
func (p personView) UnfreezePath() string { return p.Path() + "/unfreeze" }

// AdjustPath is where their balance is adjusted.
func (p personView) AdjustPath() string { return adjustPath(p.ID) }

// Sells reports whether their balance can be adjusted.
func (p personView) Sells() bool { return p.Role == auth.Seller || p.Role == auth.Admin }

// HoldPath is where the hold on their payouts is lifted.
func (p personView) HoldPath() string { return p.Path() + "/hold" }

// AccessPath is where their access is changed.
func (p personView) AccessPath() string { return p.Path() + "/access" }

// PayoutsPath lists their payouts.
func (p personView) PayoutsPath() string { return payoutsAddress(url.Values{"sellerId": {p.ID}}) }

// AccountPath is their bank account's page.
func (p personView) AccountPath() string { return accountAddress(p.Account.ID) }

// AccountLabel is how far its verification is.
func (p personView) AccountLabel() label { return accountLabel(p.Account.Status) }

// HasHistory reports whether they ever sold anything or were paid.
func (p personView) HasHistory() bool {
	return p.Balance != (ledger.Balance{}) || p.Role == auth.Seller
}

// user finds the user that the address names.
func (d *dashboard) user(ctx context.Context, v *pageRequest) (auth.User, auth.Stats, error) {
	given := v.r.PathValue("id")
	if !id.Valid(auth.UserIDPrefix, given) {
		return auth.User{}, auth.Stats{}, errNobody
	}
	user, stats, err := d.o.Auth.User(ctx, given)
	if errors.Is(err, auth.ErrUserNotFound) {
		err = errNobody
	}
	return user, stats, err
}

var errNobody = auth.ErrUserNotFound.WithMessage("There is nobody with this id. It may have been mistyped.")

// adminPerson shows one user with their money.
func (d *dashboard) adminPerson(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.personPage(ctx, v)
	return p, err
}

func (d *dashboard) personPage(ctx context.Context, v *pageRequest) (page, *personView, error) {
	user, stats, err := d.user(ctx, v)
	if err != nil {
		return page{}, nil, err
	}
	shown := &personView{personRow: personRow{user}, Stats: stats, Self: user.ID == v.who.UserID, NoteForm: noteForm(user.ID)}
	if shown.Identities, err = d.o.Auth.Identities(ctx, user.ID); err != nil {
		return page{}, nil, err
	}
	if err := d.moneyOf(ctx, v, shown); err != nil {
		return page{}, nil, err
	}
	shown.Notes, shown.OlderNotes, err = d.noteRows(ctx, user.ID)
	if shown.NotesTampered = errors.Is(err, ledger.ErrTampered); err != nil && !shown.NotesTampered {
		return page{}, nil, err
	}
	shown.Decisions, err = d.decisionsAbout(ctx, user.ID)
	return show("admin-person", user.Name, shown), shown, err
}

// moneyOf reads what a seller has, where it goes and where it came from.
func (d *dashboard) moneyOf(ctx context.Context, v *pageRequest, shown *personView) error {
	before, err := strconv.ParseInt(v.query("before"), 10, 64)
	if err != nil || before < 1 {
		before = 0 // the newest
	}
	if shown.History, shown.Balance, err = d.readHistory(ctx, shown.ID, before); err != nil {
		return err
	}
	shown.HoldUntil = shown.Balance.Hold(d.o.Now())
	if shown.Adjustments, err = d.adjustmentRows(ctx, shown.ID); err != nil && !errors.Is(err, ledger.ErrTampered) { // the ledger below says so
		return err
	}
	account, err := d.o.Bank.Account(ctx, shown.ID)
	switch {
	case err == nil:
		shown.Account = &account
		shown.Branch, _ = d.o.Bank.Branch(account.IFSC) // an unlisted branch has no name
	case !errors.Is(err, bank.ErrNone):
		return err
	}
	list, _, err := d.o.Payouts.History(ctx, v.caller(), payout.Filter{Seller: shown.ID, Limit: homePayouts})
	for _, p := range list {
		shown.Payouts = append(shown.Payouts, payoutRow{p, shown.Name})
	}
	return err
}

// accessView is the page that changes a user's access.
type accessView struct {
	personRow
	Self bool
	Form *form
}

// suspendedFrozen is the choice to freeze payouts with a suspension.
const suspendedFrozen = "suspended-frozen"

// stateOf is whether a user may sign in, as the form has it.
func stateOf(u auth.User) string {
	if u.Suspended {
		return "suspended"
	}
	return "active"
}

// accessOf is what a user's access is. The form carries it along, so that nobody undoes unseen what
// another admin did meanwhile.
func accessOf(u auth.User) string { return string(u.Role) + " " + stateOf(u) }

func accessForm(u auth.User) *form {
	states := []choice{
		{"active", "Active", "May sign in."},
		{"suspended", "Suspended", "Is signed out everywhere and can't sign in. Payouts that were requested are still sent."},
	}
	if u.Role == auth.Seller {
		states = append(states, choice{suspendedFrozen, "Suspended, with payouts frozen", "As above, and none of their payouts is sent until an admin resumes them."})
	}
	return &form{Action: personAddress(u.ID) + "/access", Submit: "Change access", Hidden: []hidden{{"seen", accessOf(u)}}, Fields: []field{
		{Name: "role", Label: "Role", Type: "choice", Value: string(u.Role), Choices: []choice{
			{string(auth.Buyer), "Buyer", "Signs in, and has no payouts."},
			{string(auth.Seller), "Seller", "Is paid what they earn."},
			{string(auth.Admin), "Admin", "Sees everybody's money, and decides as you do."},
		}},
		{Name: "state", Label: "Sign-in", Type: "choice", Value: stateOf(u), Choices: states},
		{
			Name: "confirm", Label: "Their e-mail address", Type: "text", Autocomplete: "off", Max: 254,
			Hint: "Type it, to be sure whom this is about.",
		},
		noteField(false),
	}}
}

func (d *dashboard) accessPage(ctx context.Context, v *pageRequest, u auth.User, f *form) (page, error) {
	return show("admin-access", "Change access", &accessView{personRow{u}, u.ID == v.who.UserID, f}), d.askForCode(ctx, v, f)
}

// adminAccess shows the form that changes a user's access.
func (d *dashboard) adminAccess(ctx context.Context, v *pageRequest) (page, error) {
	user, _, err := d.user(ctx, v)
	if err != nil {
		return page{}, err
	}
	return d.accessPage(ctx, v, user, accessForm(user))
}

// adminSetAccess changes a user's access.
func (d *dashboard) adminSetAccess(ctx context.Context, v *pageRequest) (page, error) {
	user, _, err := d.user(ctx, v)
	if err != nil {
		return page{}, err
	}
	role, state, by := auth.Role(v.form.Get("role")), v.form.Get("state"), byOf(v)
	freezes := state == suspendedFrozen
	if freezes {
		state = "suspended"
	}
	switch {
	case state != "active" && state != "suspended":
		err = fault.Field("state", "must be active or suspended")
	case v.form.Get("seen") != accessOf(user):
		err = auth.ErrAccessMoved
	case role == user.Role && (state == "suspended") == user.Suspended && !freezes:
		err = errNoChange
	case auth.EmailKey(strings.TrimSpace(v.form.Get("confirm"))) != auth.EmailKey(user.Email):
		err = fault.Field("confirm", "must be "+user.Email)
	default:
		err = by.RequireNote()
	}
	if err == nil {
		err = d.proveDecision(ctx, v, decision.ChangeAccess, user.ID)
	}
	if err == nil && freezes { // first, so that a failure leaves no payout to be sent
		err = d.freezeWith(ctx, by, user)
	}
	if err == nil {
		err = d.o.Auth.ReplaceAccess(ctx, by, user.ID, user.Access(), auth.Access{Role: role, Suspended: state == "suspended"})
	}
	switch {
	case err != nil:
		if errors.Is(err, auth.ErrAccessMoved) { // what was chosen was chosen for something else
			v.form.Del("role")
			v.form.Del("state")
		}
		f := accessForm(user).fill(v.form)
		p, showErr := d.accessPage(ctx, v, user, f)
		if showErr != nil {
			return page{}, errors.Join(err, showErr)
		}
		return d.again(ctx, p, f, err)
	case user.ID == v.who.UserID:
		return goTo(home).saying("access-changed"), nil
	case freezes:
		return goTo(personAddress(user.ID)).saying("access-frozen"), nil
	default:
		return goTo(personAddress(user.ID)).saying("access-changed"), nil
	}
}

var errNoChange = fault.New(fault.Refused, "no_change", "That is their access already. Choose what it is to be.")

func historyAddress(seller string, before int64) string {
	if before == 0 {
		return personAddress(seller) + "#history"
	}
	return personAddress(seller) + "?" + url.Values{"before": {strconv.FormatInt(before, 10)}}.Encode() + "#history"
}
