package main

import (
	"context"
	"fmt"

	"bursar/internal/app"
)

type apikeyCmd struct {
	Create apikeyCreateCmd `cmd:"" help:"Make a key for the marketplace to record sales with."`
}

type apikeyCreateCmd struct {
	Name string `required:"" help:"What the key is for."`
}

func (apikeyCreateCmd) Help() string {
	return "Prints the key, once, alone on the last line of standard output. It works beside a running server.\n\n" +
		examples("bursar apikey create --name shop", "KEY=$(bursar apikey create --name shop)")
}

// Run makes a key and prints it.
func (c apikeyCreateCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
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
	key, err := users.CreateServiceKey(ctx, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.err, "This is the only time the key is shown: what is stored is its hash. Send it as \"Authorization: Bearer KEY\".")
	_, err = fmt.Fprintln(e.out, key)
	return err
}
