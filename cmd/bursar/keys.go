package main

import (
	"context"
	"fmt"
	"time"
)

type keysCmd struct {
	Rotate keysRotateCmd `cmd:"" help:"Sign new tokens with a new key."`
}

type keysRotateCmd struct{}

func (keysRotateCmd) Help() string {
	return "Tokens signed with the key before stay valid until they expire, so nobody is signed out. A running server notices by itself.\n\n" +
		examples("bursar keys rotate")
}

// Run adds a signing key.
func (keysRotateCmd) Run(ctx context.Context, e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	book, err := openBook(ctx, cfg)
	if err != nil {
		return err
	}
	defer book.Close()
	if err := book.keys.Rotate(time.Now()); err != nil {
		return err
	}
	kid, _ := book.keys.SigningKey()
	_, err = fmt.Fprintf(e.out, "New tokens are signed with key %s.\n", kid)
	return err
}
