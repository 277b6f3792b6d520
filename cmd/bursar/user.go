package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"bursar/internal/app"
	"bursar/internal/auth"
)

type userCmd struct {
	Create      userCreateCmd      `cmd:"" help:"Make a user of any role, such as the first admin."`
	List        userListCmd        `cmd:"" help:"List the users."`
	Show        userShowCmd        `cmd:"" help:"Show one user."`
	SetPassword userSetPasswordCmd `cmd:"" help:"Give a user another password, and end their sessions."`
	SetRole     userSetRoleCmd     `cmd:"" help:"Make a user a buyer, a seller or an admin."`
	Suspend     userSuspendCmd     `cmd:"" help:"Keep a user out, and end their sessions."`
	Restore     userRestoreCmd     `cmd:"" help:"Let a suspended user in again."`
	Import      userImportCmd      `cmd:"" help:"Import users of another system, with their passwords."`
	Export      userExportCmd      `cmd:"" help:"Write all users, as the import reads them."`
	Reset       userResetCmd       `cmd:"" help:"Give an account that was changed in the database a new password."`
}

type userCreateCmd struct {
	Name  string `help:"The user's name, 2 to 50 characters. On a terminal it is asked for unless given."`
	Email string `help:"The e-mail address to sign in with. On a terminal it is asked for unless given."`
	Role  string `required:"" enum:"buyer,seller,admin" help:"buyer, seller or admin."`
	JSON  bool   `help:"Print the user as JSON, as is done anyway where standard output is no terminal."`
	passwordFlag
}

// errUserExists is for an operator, who does not sign in as that user.
var errUserExists = auth.ErrEmailTaken.WithMessage(
	"A user with this e-mail address exists already, and was left as it is. Give another address with --email.")

func (userCreateCmd) Help() string {
	return "On a terminal it asks for what is not given, and for the password. The user is mailed a link to confirm the address with. It works beside a running server.\n\n" + examples(
		"bursar user create --role admin",
		`printf '%s\n' "$PASSWORD" | bursar user create --name "Asha Rao" --email asha@example.com --role admin --password-stdin`)
}

// Run makes the user and prints it.
func (c userCreateCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	password, err := c.complete(ctx, e)
	if err != nil {
		return err
	}
	datastore, err := app.OpenDatastore(ctx, cfg)
	if err != nil {
		return err
	}
	defer datastore.Close()
	users, err := datastore.Auth()
	if err != nil {
		return err
	}
	user, err := users.CreateUser(ctx, auth.Registration{Name: c.Name, Email: c.Email, Password: password, Role: auth.Role(c.Role)})
	if errors.Is(err, auth.ErrEmailTaken) {
		return errUserExists
	}
	if err != nil {
		return err
	}
	if isTerminal(e.out) && !c.JSON {
		_, err := fmt.Fprintf(e.out, "%s (%s) is made, as %s.\n", printable(user.Email), user.ID, user.Role)
		return err
	}
	return json.NewEncoder(e.out).Encode(struct {
		ID    string    `json:"id"`
		Name  string    `json:"name"`
		Email string    `json:"email"`
		Role  auth.Role `json:"role"`
	}{user.ID, user.Name, user.Email, user.Role})
}

// complete asks on a terminal for what the command line lacks, and returns the password.
func (c *userCreateCmd) complete(ctx context.Context, e *env) (string, error) {
	var missing []string
	for _, f := range []struct{ flag, value string }{{"--name", c.Name}, {"--email", c.Email}} {
		if f.value == "" {
			missing = append(missing, f.flag)
		}
	}
	if len(missing) == 0 {
		return c.password(ctx, e)
	}
	if c.PasswordStdin || !isTerminalInput(e.in) {
		return "", usageError{errors.New("missing flags: " + strings.Join(missing, ", "))}
	}
	d, err := openDialog(ctx, e)
	if err != nil {
		return "", err
	}
	defer d.close()
	for _, q := range []struct {
		question string
		answer   *string
	}{{"Name", &c.Name}, {"E-mail address", &c.Email}} {
		if *q.answer == "" {
			if *q.answer, err = d.ask(q.question); err != nil {
				return "", err
			}
		}
	}
	return d.newPassword()
}
