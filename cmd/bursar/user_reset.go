package main

import (
	"context"
	"fmt"

	"bursar/internal/auth"
)

type userResetCmd struct {
	ID    string `arg:"" help:"The user's id, as \"bursar audit\" names it."`
	Email string `required:"" help:"The e-mail address to sign in with."`
	Role  string `required:"" enum:"buyer,seller,admin" help:"buyer, seller or admin."`
	passwordFlag
}

func (userResetCmd) Help() string {
	return "An account whose e-mail address, password, role, verification, suspension or external id was changed in the database is refused, and " +
		"\"bursar audit\" names it. What the database says of it is not believed, so you say it: give the address and the role that are right, and a new password. " +
		"The account is not suspended then. Its sessions, second factors, sign-ins through a provider and external id are removed, and a seller's payouts are on hold.\n\n" + examples(
		`printf '%s\n' "$PASSWORD" | bursar user reset usr_0V4xkPzj1Kq8mZ3tYb6RcW2N --email asha@example.com --role seller --password-stdin`)
}

// Run resets the account.
func (c userResetCmd) Run(ctx context.Context, e *env) error {
	password, err := c.password(ctx, e)
	if err != nil {
		return err
	}
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	users, err := datastore.Auth()
	if err != nil {
		return err
	}
	err = users.ResetUser(ctx, auth.Reset{
		UserID: c.ID, Email: c.Email, Role: auth.Role(c.Role), Password: password, Operator: operator(),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "The account %s is reset: it signs in as %s with the new password, and is %s.\n", c.ID, c.Email, c.Role)
	return err
}
