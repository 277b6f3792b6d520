package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// openUsers opens an existing datastore and the service that knows users.
func openUsers(ctx context.Context, e *env) (*app.Datastore, *auth.Service, error) {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	users, err := datastore.Auth()
	if err != nil {
		return nil, nil, errors.Join(err, datastore.Close())
	}
	return datastore, users, nil
}

// userJSON is a user as commands print it.
type userJSON struct {
	ID          string    `json:"id"`
	ExternalID  string    `json:"externalId,omitempty"`
	Name        string    `json:"name"`
	Email       string    `json:"email"`
	Role        auth.Role `json:"role"`
	IsVerified  bool      `json:"isVerified"`
	IsSuspended bool      `json:"isSuspended"`
	Password    string    `json:"password"`
	CreatedAt   string    `json:"createdAt"`
}

const millis = "2006-01-02T15:04:05.000Z"

func asJSON(u auth.User) userJSON {
	return userJSON{u.ID, u.ExternalID, u.Name, u.Email, u.Role, u.Verified, u.Suspended, auth.PasswordFormat(u), u.CreatedAt.UTC().Format(millis)}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// tamperedUser stands for the password of a user who can't sign in, because they were changed in the database.
const tamperedUser = "tampered"

type userListCmd struct {
	Role      string `enum:"any,buyer,seller,admin" default:"any" help:"Only those with this role."`
	Suspended bool   `help:"Only those who are suspended."`
	JSON      bool   `help:"Print them as JSON."`
}

func (userListCmd) Help() string {
	return "Columns on a terminal, and elsewhere tab-separated: id, e-mail address, role, whether verified, whether suspended, the format of the password's hash (\"tampered\" for a user who was changed in the database), " +
		"when they registered, external id, name. The oldest come first.\n\n" +
		examples("bursar user list", "bursar user list --role admin", "bursar user list --json | jq -r '.[] | select(.isVerified | not) | .email'")
}

// Run prints the users as they are read.
func (c userListCmd) Run(ctx context.Context, e *env) error {
	datastore, users, err := openUsers(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	filter := auth.UserFilter{Suspended: c.Suspended}
	if c.Role != "any" {
		filter.Role = auth.Role(c.Role)
	}
	if c.JSON {
		return writeUsersJSON(ctx, e.out, users, filter)
	}
	out := bufio.NewWriter(e.out)
	t := newTable(e.out, "ID", "E-MAIL", "ROLE", "VERIFIED", "SUSPENDED", "PASSWORD", "CREATED", "EXTERNAL ID", "NAME")
	if !isTerminal(e.out) {
		t.w = out
	}
	err = users.EachUser(ctx, filter, func(u auth.ListedUser) error {
		password := auth.PasswordFormat(u.User)
		if u.Tampered {
			password = tamperedUser
		}
		t.row(u.ID, u.Email, string(u.Role), yesNo(u.Verified), yesNo(u.Suspended), password, u.CreatedAt.UTC().Format(time.RFC3339), u.ExternalID, u.Name)
		return nil
	})
	return errors.Join(err, t.Flush(), out.Flush())
}

// writeUsersJSON writes one array, a user on each line, without holding them all.
func writeUsersJSON(ctx context.Context, w io.Writer, users *auth.Service, filter auth.UserFilter) error {
	out := bufio.NewWriter(w)
	separator := "[\n"
	err := users.EachUser(ctx, filter, func(u auth.ListedUser) error {
		shown := asJSON(u.User)
		if u.Tampered {
			shown.Password = tamperedUser
		}
		line, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s%s", separator, line)
		separator = ",\n"
		return err
	})
	if separator == "[\n" {
		fmt.Fprint(out, "[")
	}
	fmt.Fprint(out, "\n]\n")
	return errors.Join(err, out.Flush())
}

type userShowCmd struct {
	User string `arg:"" help:"The user's id or e-mail address, or ext: and the external id."`
	JSON bool   `help:"Print the user as JSON."`
}

func (userShowCmd) Help() string {
	return examples("bursar user show asha@example.com", "bursar user show usr_0VbYw0dwbhHp3QTDSE0ztuuB --json", "bursar user show ext:4711")
}

// Run prints the user.
func (c userShowCmd) Run(ctx context.Context, e *env) error {
	datastore, users, err := openUsers(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	u, err := users.FindUser(ctx, c.User)
	if err != nil {
		return err
	}
	signIns, err := users.Identities(ctx, u.ID)
	if err != nil {
		return err
	}
	sessions, err := users.Sessions(ctx, auth.Principal{UserID: u.ID})
	if err != nil {
		return err
	}
	decisions, err := datastore.DB().Decisions(ctx, u.ID, 20)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.out).Encode(detailsJSON(u, len(sessions), signIns, decisions))
	}
	t := newTable(e.out)
	t.row("Id", u.ID)
	t.row("External id", u.ExternalID)
	t.row("Name", u.Name)
	t.row("E-mail", u.Email)
	t.row("Role", string(u.Role))
	t.row("Verified", yesNo(u.Verified))
	t.row("Suspended", yesNo(u.Suspended))
	t.row("Password", auth.PasswordFormat(u))
	t.row("Created", u.CreatedAt.UTC().Format(time.RFC3339))
	t.row("Sessions", strconv.Itoa(len(sessions)))
	for _, i := range signIns {
		t.row("Signs in through", i.Issuer+" ("+i.Email+")")
	}
	for _, d := range decisions {
		t.row("Decision", d.At.UTC().Format(time.RFC3339)+" "+string(d.Action)+" by "+ledger.DecidedBy(d)+": "+d.Note)
	}
	return t.Flush()
}

func detailsJSON(u auth.User, sessions int, signIns []auth.LinkedIdentity, decisions []decision.Decision) any {
	type signIn struct {
		Issuer string `json:"issuer"`
		Email  string `json:"email"`
	}
	out := struct {
		userJSON
		Profile   map[string]string `json:"profile"`
		Sessions  int               `json:"sessions"`
		SignIns   []signIn          `json:"signIns"`
		Decisions []decidedJSON     `json:"decisions"`
	}{asJSON(u), map[string]string{"avatar": u.Profile.Avatar, "bio": u.Profile.Bio, "website": u.Profile.Website}, sessions, []signIn{}, decisionsJSON(decisions)}
	for _, i := range signIns {
		out.SignIns = append(out.SignIns, signIn{i.Issuer, i.Email})
	}
	return out
}

// decidedJSON is a decision as commands print it.
type decidedJSON struct {
	At     string          `json:"at"`
	Action decision.Action `json:"action"`
	By     string          `json:"by"`
	Note   string          `json:"note"`
}

func decisionsJSON(decisions []decision.Decision) []decidedJSON {
	all := make([]decidedJSON, len(decisions))
	for i, d := range decisions {
		all[i] = decidedJSON{d.At.UTC().Format(millis), d.Action, ledger.DecidedBy(d), d.Note}
	}
	return all
}

// userChange is what commands that change a user have in common.
type userChange struct {
	User string `arg:"" help:"The user's id or e-mail address, or ext: and the external id."`
	By   string `placeholder:"NAME" help:"Who runs it, for the record. Default: the user of the system."`
	Note string `placeholder:"TEXT" help:"Why, for the record."`
	JSON bool   `help:"Print the user as JSON."`
}

// run finds the user, has them changed, and says what happened.
func (c userChange) run(ctx context.Context, e *env, change func(*auth.Service, decision.By, auth.User) (auth.User, string, error)) error {
	by, err := whoRuns(c.By)
	if err != nil {
		return err
	}
	datastore, users, err := openUsers(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	u, err := users.FindUser(ctx, c.User)
	if err != nil {
		return err
	}
	u, said, err := change(users, decision.By{Operator: by, Note: c.Note}, u)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.out).Encode(asJSON(u))
	}
	_, err = fmt.Fprintln(e.out, printable(said))
	return err
}

type userSetPasswordCmd struct {
	userChange
	passwordFlag
	RemoveFactors bool `help:"Remove the user's second factors and unlink the providers too: all were lost, or another person added or controls one."`
}

func (userSetPasswordCmd) Help() string {
	return "The user is signed out everywhere, and signs in with the new password from the next request on. It works beside a running server.\n\n" +
		examples(`bursar user set-password asha@example.com`, `printf '%s\n' "$PASSWORD" | bursar user set-password asha@example.com --password-stdin --note "Ticket 812"`,
			`printf '%s\n' "$PASSWORD" | bursar user set-password asha@example.com --password-stdin --remove-factors --note "Lost her phone"`)
}

// Run sets the password.
func (c userSetPasswordCmd) Run(ctx context.Context, e *env) error {
	password, err := c.password(ctx, e)
	if err != nil {
		return err
	}
	return c.run(ctx, e, func(users *auth.Service, by decision.By, u auth.User) (auth.User, string, error) {
		u, err := users.ResetPassword(ctx, by, u.ID, password, c.RemoveFactors)
		return u, fmt.Sprintf("%s (%s) has a new password. Their sessions ended.", u.Email, u.ID), err
	})
}

type userSetRoleCmd struct {
	userChange
	Role string `arg:"" enum:"buyer,seller,admin" help:"buyer, seller or admin."`
}

func (userSetRoleCmd) Help() string {
	return "It holds from the user's next request on, and works beside a running server. The last admin stays one.\n\n" +
		examples("bursar user set-role asha@example.com seller", "bursar user set-role usr_0VbYw0dwbhHp3QTDSE0ztuuB admin --note \"Joined operations\"")
}

// Run sets the role.
func (c userSetRoleCmd) Run(ctx context.Context, e *env) error {
	return c.run(ctx, e, func(users *auth.Service, by decision.By, u auth.User) (auth.User, string, error) {
		u, changed, err := users.SetRole(ctx, by, u.ID, auth.Role(c.Role))
		said := accessSaid(u, changed, "is now "+c.Role, "was "+c.Role+" already, and was left as they are")
		if changed && u.Role == auth.Admin && !u.Verified {
			said += " Nobody has confirmed this e-mail address: make sure that it is theirs."
		}
		return u, said, err
	})
}

// accessSaid says what became of a user's access.
func accessSaid(u auth.User, changed bool, became, was string) string {
	if !changed {
		became = was
	}
	return fmt.Sprintf("%s (%s) %s.", u.Email, u.ID, became)
}

type userSuspendCmd struct{ userChange }

func (userSuspendCmd) Help() string {
	return "The user is signed out everywhere and can't sign in. Payouts that were requested go on. It works beside a running server.\n\n" +
		examples(`bursar user suspend asha@example.com --note "Reported as stolen, ticket 812"`)
}

// Run suspends the user.
func (c userSuspendCmd) Run(ctx context.Context, e *env) error {
	return c.run(ctx, e, func(users *auth.Service, by decision.By, u auth.User) (auth.User, string, error) {
		u, changed, err := users.SetSuspended(ctx, by, u.ID, true)
		return u, accessSaid(u, changed, "is suspended. Their sessions ended", "was suspended already"), err
	})
}

type userRestoreCmd struct{ userChange }

func (userRestoreCmd) Help() string {
	return "The user can sign in again, with the password that they had. It works beside a running server.\n\n" +
		examples(`bursar user restore asha@example.com --note "Spoke with her, ticket 812"`)
}

// Run lets the user in again.
func (c userRestoreCmd) Run(ctx context.Context, e *env) error {
	return c.run(ctx, e, func(users *auth.Service, by decision.By, u auth.User) (auth.User, string, error) {
		u, changed, err := users.SetSuspended(ctx, by, u.ID, false)
		return u, accessSaid(u, changed, "is not suspended any more", "was not suspended"), err
	})
}
