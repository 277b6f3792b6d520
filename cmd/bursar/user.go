package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"bursar/internal/app"
	"bursar/internal/auth"
)

type userCmd struct {
	Create      userCreateCmd      `cmd:"" help:"Make a user of any role. It is the only way to a first admin."`
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
	Name          string `required:"" help:"The user's name, 2 to 50 characters."`
	Email         string `required:"" help:"The e-mail address to sign in with."`
	Role          string `required:"" enum:"buyer,seller,admin" help:"buyer, seller or admin."`
	PasswordStdin bool   `help:"Read the password from standard input, one line."`
}

var errPasswordNeeded = errors.New("a password is needed, and a command line is no place for one: add --password-stdin and give it as one line of standard input")

// errUserExists is for an operator, who does not sign in as that user.
var errUserExists = auth.ErrEmailTaken.WithMessage(
	"A user with this e-mail address exists already, and was left as it is. Give another address with --email.")

func (userCreateCmd) Help() string {
	return "Prints the user as JSON. It works beside a running server.\n\n" + examples(
		`printf '%s\n' "$PASSWORD" | bursar user create --name "Asha Rao" --email asha@example.com --role admin --password-stdin`)
}

// Run makes the user and prints it.
func (c userCreateCmd) Run(ctx context.Context, e *env) error {
	if !c.PasswordStdin {
		return usageError{errPasswordNeeded}
	}
	cfg, err := e.config()
	if err != nil {
		return err
	}
	password, err := readLine(e.in)
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
	return json.NewEncoder(e.out).Encode(struct {
		ID    string    `json:"id"`
		Name  string    `json:"name"`
		Email string    `json:"email"`
		Role  auth.Role `json:"role"`
	}{user.ID, user.Name, user.Email, user.Role})
}

// readLine reads one line, without its end.
func readLine(r io.Reader) (string, error) {
	const most = 4096 // more than any password may have
	line, err := bufio.NewReader(io.LimitReader(r, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if line == "" {
		return "", usageError{errors.New("standard input holds no password; give it as one line")}
	}
	return line, nil
}
