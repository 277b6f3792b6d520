package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/proof"
)

type verifyCmd struct {
	File string  `arg:"" help:"The statement, as it was downloaded; - for standard input."`
	JSON bool    `help:"Print what is proven, and what is not, as JSON."`
	Key  keyName `placeholder:"FILE|KID" help:"Who must have signed: a file such as the service's /.well-known/checkpoint-keys.json, or a key's id."`
}

func (verifyCmd) Help() string {
	return "It asks nobody: all it needs is the statement, JSON or CSV, and the key to trust. The exit code is 0 when everything in the file is " +
		"proven, and 1 when anything does not fit, which it says in a sentence each.\n\n" +
		"Without --key it checks the statement with the key that it brings. Then 0 says that nothing in it was changed since it was signed, and not who signed it.\n\n" +
		examples("curl -s https://payouts.example.com/.well-known/checkpoint-keys.json >keys.json", "bursar verify statement.json --key keys.json",
			"bursar verify - --key 9ZP03Nu8GrXPAUkbKNxHOKBzxPX83SShgFkRNK-f2lw <october.csv")
}

// Run checks a statement and tells what it proves.
func (c verifyCmd) Run(_ context.Context, e *env) error {
	keys, err := c.keys()
	if err != nil {
		return usageError{err}
	}
	file := e.in
	if c.File != "-" {
		opened, err := os.Open(c.File)
		if err != nil {
			return usageError{fmt.Errorf("read the statement: %w", err)}
		}
		defer opened.Close()
		file = opened
	}
	progress := progressOn(e.err)
	progress("Checking")
	v, err := proof.Verify(file, keys)
	progress("")
	if err != nil {
		return err
	}
	if c.JSON {
		if err := writeJSON(e.out, verifiedOf(v)); err != nil || len(v.Problems) == 0 {
			return err
		}
		return errReported
	}
	if len(v.Problems) > 0 {
		if err := printProblems(e.out, v); err != nil {
			return err
		}
		return errReported
	}
	return printProven(e.out, v)
}

// keyName says which key: its id, or a file. An id is in base64url and may begin with a hyphen, as one in 64 does,
// where the command line would expect a flag.
type keyName string

// Decode reads what was given for the flag.
func (k *keyName) Decode(ctx *kong.DecodeContext) error {
	if next, ok := ctx.Scan.Peek().Value.(string); ok && keyName(next).isID() {
		ctx.Scan.Pop()
		*k = keyName(next)
		return nil
	}
	if err := ctx.Scan.PopValueInto("key", (*string)(k)); err != nil {
		return err
	}
	if *k == "" {
		return errors.New("it is empty: name the file with the keys, or a key's id")
	}
	return nil
}

// isID tells whether this has the form of an id, which is a thumbprint (RFC 7638) with SHA-256.
func (k keyName) isID() bool {
	id, err := base64.RawURLEncoding.DecodeString(string(k))
	return err == nil && len(id) == sha256.Size
}

// keys are those to trust; nil for none given.
func (c verifyCmd) keys() (proof.Keys, error) {
	if c.Key == "" {
		return nil, nil
	}
	text, err := os.ReadFile(string(c.Key))
	if errors.Is(err, fs.ErrNotExist) && c.Key.isID() {
		return proof.Keys{string(c.Key): {ID: string(c.Key)}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--key is neither a file that can be read nor a key's id: %w", err)
	}
	keys, err := proof.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("--key %s: %w", c.Key, err)
	}
	return keys, nil
}

// verifiedJSON is what a statement proves, for programs. Amounts are in major units.
type verifiedJSON struct {
	Proven   bool          `json:"proven"`
	Trusted  bool          `json:"trusted"`
	Problems []string      `json:"problems"`
	SellerID string        `json:"sellerId"`
	Currency string        `json:"currency"`
	From     time.Time     `json:"from"`
	To       time.Time     `json:"to"`
	Entries  int64         `json:"entries"`
	IsNewest bool          `json:"isNewest"`
	Opening  balancesJSON  `json:"opening"`
	Closing  balancesJSON  `json:"closing"`
	Signed   checkpointRef `json:"checkpoint"`
}

type balancesJSON struct {
	Available json.Number `json:"available"`
	Pending   json.Number `json:"pending"`
	InTransit json.Number `json:"inTransit"`
}

type checkpointRef struct {
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
	KeyID  string    `json:"kid"`
}

func verifiedOf(v proof.Verified) verifiedJSON {
	balances := func(b ledger.Balances) balancesJSON {
		number := func(a money.Amount) json.Number { return json.Number(v.Currency.Format(a)) }
		return balancesJSON{number(b.Available), number(b.Pending), number(b.InTransit)}
	}
	problems := v.Problems
	if problems == nil {
		problems = []string{}
	}
	return verifiedJSON{
		len(problems) == 0, v.Trusted, problems, v.Seller, v.Currency.Code(), v.From, v.To, v.Entries, v.IsNewest,
		balances(v.Opening), balances(v.Closing),
		checkpointRef{v.Checkpoint.Number, v.Checkpoint.At, v.Checkpoint.KeyID},
	}
}

func printProblems(w io.Writer, v proof.Verified) error {
	_, err := fmt.Fprintf(w, "NOT proven: this statement of %s is not what the ledger holds.\n  %s\n", v.Seller, strings.Join(v.Problems, "\n  "))
	return err
}

func printProven(w io.Writer, v proof.Verified) error {
	moment := func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }
	balance := func(s ledger.Balances) string {
		return fmt.Sprintf("%s %s available, %s pending, %s in transit", v.Currency.FormatFixed(s.Available), v.Currency,
			v.Currency.FormatFixed(s.Pending), v.Currency.FormatFixed(s.InTransit))
	}
	numbers := ""
	if v.Entries > 0 {
		numbers = fmt.Sprintf(", numbers %d to %d", v.First, v.Last)
	}
	newest := "There are newer entries after the period."
	if v.IsNewest {
		newest = "There was nothing newer when the checkpoint was made."
	}
	who := "This key is one of those given."
	if !v.Trusted {
		who = "The file itself brought this key, and anybody can make one: compare its id with one that you have from the service, or give that with --key."
	}
	verdict := fmt.Sprintf("Proven: this is what the ledger of %s holds.", v.Seller)
	if !v.Trusted {
		verdict = fmt.Sprintf("Whole, but NOT proven to be the service's: the owner of the key below signed that this is what the ledger of %s holds.", v.Seller)
	}
	_, err := fmt.Fprintf(w, `%s
  Period     %s to %s: %d entries%s
  Opening    %s
  Closing    %s
  Checkpoint %d of %s, over %d journals. %s
  Signed     with key %s. %s
`, verdict, moment(v.From), moment(v.To), v.Entries, numbers, balance(v.Opening), balance(v.Closing),
		v.Checkpoint.Number, moment(v.Checkpoint.At), v.Checkpoint.Journals, newest, v.Checkpoint.KeyID, who)
	return err
}
