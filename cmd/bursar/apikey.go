package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

type apikeyCmd struct {
	Create apikeyCreateCmd `cmd:"" help:"Make a key for a server of the marketplace."`
	List   apikeyListCmd   `cmd:"" help:"List the keys that were made."`
	Rotate apikeyRotateCmd `cmd:"" help:"Replace a key by a new one, and accept both for a while."`
	Revoke apikeyRevokeCmd `cmd:"" help:"End a key for good."`
}

type apikeyCreateCmd struct {
	Name    string   `required:"" help:"What the key is for. No two keys ever have the same name."`
	Scope   []string `placeholder:"SCOPE" help:"What the key may do; repeat it for more. None is all."`
	Expires string   `placeholder:"WHEN" help:"When the key ends: a day such as 2027-12-31 (to its end, in UTC), a time, or 90d or 12h from now."`
}

func (apikeyCreateCmd) Help() string {
	return "Prints the key, once, alone on the last line of standard output. It works beside a running server. " +
		"Scopes are " + strings.Join(auth.AllScopes().List(), ", ") + ".\n\n" +
		examples("bursar apikey create --name shop", "KEY=$(bursar apikey create --name shop)",
			"bursar apikey create --name till --scope sales:write --expires 90d")
}

// Run makes a key and prints it.
func (c apikeyCreateCmd) Run(ctx context.Context, e *env) error {
	expires, err := parseExpiry(c.Expires, time.Now())
	if err != nil {
		return err
	}
	_, datastore, err := e.open(ctx, app.OpenDatastore)
	if err != nil {
		return err
	}
	defer datastore.Close()
	users, err := datastore.Auth()
	if err != nil {
		return err
	}
	key, _, err := users.CreateServiceKey(ctx, auth.NewServiceKey{Name: c.Name, Scopes: c.Scope, ExpiresAt: expires}, ledger.ActorOperator+operator())
	if err != nil {
		return err
	}
	return printKey(e, key)
}

// printKey prints a new key, for the only time.
func printKey(e *env, key string) error {
	fmt.Fprintln(e.err, "This is the only time the key is shown: what is stored is its hash. Send it as \"Authorization: Bearer KEY\".")
	_, err := fmt.Fprintln(e.out, key)
	return err
}

const day = 24 * time.Hour

// parseExpiry reads when a key is to end: a day, a time, or how long from now. Nothing is never.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at.Add(day), nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	if days, found := strings.CutSuffix(s, "d"); found {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= maxExpiryDays {
			return now.Add(time.Duration(n) * day), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fault.Field("expires", "must be a day such as 2027-12-31, a time such as 2027-12-31T18:00:00Z, or 90d or 12h from now")
}

// maxExpiryDays is about a hundred years.
const maxExpiryDays = 36500

type apikeyRotateCmd struct {
	Key   string        `arg:"" help:"The key's name or id, as \"bursar apikey list\" shows it."`
	Grace time.Duration `default:"24h" placeholder:"24h" help:"For how long the key before is still accepted, at most 720h; 0 ends it now."`
}

func (apikeyRotateCmd) Help() string {
	return "The new key works at once and has the same id, name and scopes. The key before is accepted until the grace ends, so " +
		"that you can replace it everywhere. Prints the new key, once, alone on the last line of standard output. If that is lost, " +
		"rotate again: the key in use keeps its grace. It works beside a running server.\n\n" +
		examples("bursar apikey rotate shop", "KEY=$(bursar apikey rotate shop --grace 1h)", "bursar apikey rotate shop --grace 0")
}

// Run rotates the key and prints the new one.
func (c apikeyRotateCmd) Run(ctx context.Context, e *env) error {
	if c.Grace < 0 || c.Grace > auth.MaxRotationGrace {
		return fault.Field("grace", "must be from 0 to 720h, which is 30 days")
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
	key, stored, err := users.RotateServiceKey(ctx, c.Key, c.Grace, ledger.ActorOperator+operator())
	if err != nil {
		return err
	}
	if until := stored.RotatedUntil; until.IsZero() {
		fmt.Fprintf(e.err, "The key %s (%s) is rotated. The one before is refused from now on.\n", stored.Name, stored.ID)
	} else {
		fmt.Fprintf(e.err, "The key %s (%s) is rotated. The one before is accepted until %s.\n", stored.Name, stored.ID, until.Format(time.RFC3339))
	}
	return printKey(e, key)
}

// operator is the name of the person who runs the command.
func operator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

type apikeyListCmd struct {
	JSON bool `help:"Print the list as JSON."`
}

func (apikeyListCmd) Help() string {
	return "Shows the oldest key first, with those that were revoked. The keys themselves are not stored. " +
		"A key that was put into the database by hand is marked as invalid; the service refuses it.\n\n" +
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
		return writeKeysJSON(e.out, keys, time.Now())
	}
	return writeKeys(e.out, keys, time.Now())
}

// scopesIn says in a word what a key may do.
func scopesIn(k auth.ServiceKey) string {
	if k.Scopes == auth.AllScopes() {
		return "all"
	}
	return strings.Join(k.Scopes.List(), ",")
}

func writeKeys(w io.Writer, keys []auth.ServiceKey, now time.Time) error {
	if len(keys) == 0 {
		_, err := fmt.Fprintln(w, "There are no service keys. Make one with: bursar apikey create --name NAME")
		return err
	}
	const padding = 2
	table := tabwriter.NewWriter(w, 0, 0, padding, ' ', 0)
	fmt.Fprintln(table, "NAME\tID\tSTATUS\tCREATED\tLAST USED\tEXPIRES\tREVOKED\tSCOPES")
	for i := range keys { // one that was put into the database by hand may have any
		keys[i].Name, keys[i].ID = printable(keys[i].Name), printable(keys[i].ID)
	}
	for _, k := range keys {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.ID, k.Status(now), k.CreatedAt.Format(time.DateOnly), orNever(k.UsedOn),
			orNever(dayOf(k.ExpiresAt)), dayOf(k.RevokedAt), scopesIn(k))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, k := range keys {
		switch {
		case k.Tampered != "":
			fmt.Fprintf(w, "%s (%s) %s. The service refuses it. Look into who changed the database, then run: bursar apikey revoke %[2]s\n", k.Name, k.ID, k.Tampered)
		case k.RevokedAt.IsZero() && k.RotatedUntil.After(now):
			fmt.Fprintf(w, "%s (%s) was rotated. The one before is accepted until %s.\n", k.Name, k.ID, k.RotatedUntil.Format(time.RFC3339))
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
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Status       string     `json:"status"`
	Scopes       []string   `json:"scopes"`
	CreatedAt    time.Time  `json:"createdAt"`
	ExpiresAt    *time.Time `json:"expiresAt"`
	LastUsedOn   *string    `json:"lastUsedOn"`
	RotatedUntil *time.Time `json:"rotatedUntil"`
	RevokedAt    *time.Time `json:"revokedAt"`
	Problem      string     `json:"problem,omitempty"`
}

func keyJSONOf(k auth.ServiceKey, now time.Time) keyJSON {
	out := keyJSON{ID: k.ID, Name: k.Name, Status: k.Status(now), Scopes: k.Scopes.List(), CreatedAt: k.CreatedAt, Problem: k.Tampered}
	if k.UsedOn != "" {
		out.LastUsedOn = &k.UsedOn
	}
	if !k.ExpiresAt.IsZero() {
		out.ExpiresAt = &k.ExpiresAt
	}
	if k.RotatedUntil.After(now) {
		out.RotatedUntil = &k.RotatedUntil
	}
	if !k.RevokedAt.IsZero() {
		out.RevokedAt = &k.RevokedAt
	}
	return out
}

func writeKeysJSON(w io.Writer, keys []auth.ServiceKey, now time.Time) error {
	all := make([]keyJSON, 0, len(keys))
	for _, k := range keys {
		all = append(all, keyJSONOf(k, now))
	}
	return writeJSON(w, all)
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
	key, err := users.RevokeServiceKey(ctx, c.Key, ledger.ActorOperator+operator())
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(e.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(keyJSONOf(key, time.Now()))
	}
	_, err = fmt.Fprintf(e.out, "The key %s (%s) is revoked since %s.\n", printable(key.Name), printable(key.ID), key.RevokedAt.Format(time.RFC3339))
	return err
}
