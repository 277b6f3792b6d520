package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/user"
	"text/tabwriter"
	"time"

	"bursar/internal/app"
	"bursar/internal/auth"
)

type apikeyCmd struct {
	Create apikeyCreateCmd `cmd:"" help:"Make a key for the marketplace to record sales with."`
	List   apikeyListCmd   `cmd:"" help:"List the keys that were made."`
	Revoke apikeyRevokeCmd `cmd:"" help:"End a key for good."`
}

type apikeyCreateCmd struct {
	Name string `required:"" help:"What the key is for. No two keys ever have the same name."`
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
	key, err := users.CreateServiceKey(ctx, c.Name, operator())
	if err != nil {
		return err
	}
	fmt.Fprintln(e.err, "This is the only time the key is shown: what is stored is its hash. Send it as \"Authorization: Bearer KEY\".")
	_, err = fmt.Fprintln(e.out, key)
	return err
}

// operator names the person who runs the command, for the journal.
func operator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "operator:" + u.Username
	}
	return "operator:unknown"
}

type apikeyListCmd struct {
	JSON bool `help:"Print the list as JSON."`
}

func (apikeyListCmd) Help() string {
	return "Shows the oldest key first, with those that were revoked. The keys themselves are not stored. " +
		"A key that was put into the database by hand is marked as not valid; the service refuses it.\n\n" +
		examples("bursar apikey list", "bursar apikey list --json | jq -r '.[] | select(.status == \"active\") | .name'")
}

// Run lists all keys.
func (c apikeyListCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	users, err := datastore.Auth()
	if err != nil {
		return err
	}
	keys, err := users.ServiceKeys(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeKeysJSON(e.out, keys)
	}
	return writeKeys(e.out, keys)
}

// statusOf says in a word whether a key is accepted.
func statusOf(k auth.ServiceKey) string {
	switch {
	case k.Tampered != "":
		return "not valid"
	case k.RevokedAt.IsZero():
		return "active"
	default:
		return "revoked"
	}
}

func writeKeys(w io.Writer, keys []auth.ServiceKey) error {
	if len(keys) == 0 {
		_, err := fmt.Fprintln(w, "There are no service keys. Make one with: bursar apikey create --name NAME")
		return err
	}
	const padding = 2
	table := tabwriter.NewWriter(w, 0, 0, padding, ' ', 0)
	fmt.Fprintln(table, "NAME\tID\tSTATUS\tCREATED\tLAST USED\tREVOKED")
	for _, k := range keys {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.ID, statusOf(k), k.CreatedAt.Format(time.DateOnly), orNever(k.UsedOn), dayOf(k.RevokedAt))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, k := range keys {
		if k.Tampered != "" {
			fmt.Fprintf(w, "%s (%s) %s. The service refuses it. Look into who changed the database, then run: bursar apikey revoke %[2]s\n", k.Name, k.ID, k.Tampered)
		}
	}
	return nil
}

func orNever(day string) string {
	if day == "" {
		return "never"
	}
	return day
}

// dayOf is the day of a time, or nothing.
func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

// keyJSON is a service key as programs read it.
type keyJSON struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Status     string     `json:"status"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedOn *string    `json:"lastUsedOn"`
	RevokedAt  *time.Time `json:"revokedAt"`
	Problem    string     `json:"problem,omitempty"`
}

func keyJSONOf(k auth.ServiceKey) keyJSON {
	out := keyJSON{ID: k.ID, Name: k.Name, Status: statusOf(k), CreatedAt: k.CreatedAt, Problem: k.Tampered}
	if k.Tampered != "" {
		out.Status = "invalid"
	}
	if k.UsedOn != "" {
		out.LastUsedOn = &k.UsedOn
	}
	if !k.RevokedAt.IsZero() {
		out.RevokedAt = &k.RevokedAt
	}
	return out
}

func writeKeysJSON(w io.Writer, keys []auth.ServiceKey) error {
	all := make([]keyJSON, 0, len(keys))
	for _, k := range keys {
		all = append(all, keyJSONOf(k))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(all)
}

type apikeyRevokeCmd struct {
	Key  string `arg:"" help:"The key's name or id, as \"bursar apikey list\" shows it."`
	JSON bool   `help:"Print the key as JSON."`
}

func (apikeyRevokeCmd) Help() string {
	return "The key is refused from the next request on, on every instance. It can't be undone: make another key instead. " +
		"It works beside a running server.\n\n" +
		examples("bursar apikey revoke shop", "bursar apikey revoke key_0V4xkPzj1Kq8mZ3tYb6RcW2N")
}

// Run revokes the key.
func (c apikeyRevokeCmd) Run(ctx context.Context, e *env) error {
	_, datastore, err := openExisting(ctx, e)
	if err != nil {
		return err
	}
	defer datastore.Close()
	users, err := datastore.Auth()
	if err != nil {
		return err
	}
	key, err := users.RevokeServiceKey(ctx, c.Key, operator())
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(e.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(keyJSONOf(key))
	}
	_, err = fmt.Fprintf(e.out, "The key %s (%s) is revoked since %s.\n", key.Name, key.ID, key.RevokedAt.Format(time.RFC3339))
	return err
}
