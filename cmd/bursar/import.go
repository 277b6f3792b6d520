package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"bursar/internal/app"
	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/limits"
	"bursar/internal/money"
	"bursar/internal/sale"
	"bursar/internal/strictjson"
)

// importCmd takes over what another system knows.
type importCmd struct {
	Sellers      importSellersCmd      `cmd:"" help:"Import sellers, with their passwords if there are any."`
	Balances     importBalancesCmd     `cmd:"" help:"Import what sellers are owed."`
	BankAccounts importBankAccountsCmd `cmd:"" name:"bank-accounts" help:"Import sellers' bank accounts."`
	Sales        importSalesCmd        `cmd:"" help:"Import sales."`
}

// importFlags are those of every import.
type importFlags struct {
	File   string `arg:"" help:"A file of JSON lines; - for standard input."`
	DryRun bool   `help:"Check every line, and change nothing."`
	By     string `placeholder:"NAME" help:"Who runs it, for the record. Default: the user of the system."`
	Note   string `placeholder:"TEXT" help:"Why, for the record."`
	JSON   bool   `help:"Report each line as JSON."`
}

// afterImport is what the help of every import ends with, before its examples.
const afterImport = "\n\nEach line is reported. A line that was imported before changes nothing, so a run that was stopped is run again. " +
	"The exit code is 1 if any line failed.\n\n"

type importSellersCmd struct{ importFlags }

func (importSellersCmd) Help() string {
	return "A line is an object with externalId, email and name and, where there is one, emailVerified, passwordHash, createdAt, profile and suspended, " +
		"as in \"bursar user import\". The other imports name a seller by ext: and the externalId." + afterImport +
		examples("bursar import sellers sellers.ndjson --dry-run", "bursar import sellers sellers.ndjson")
}

// Run imports the file.
func (c importSellersCmd) Run(ctx context.Context, e *env) error {
	return c.users(ctx, e, false, func(text []byte) (auth.ImportLine, error) {
		line, err := readImportLine(text)
		switch {
		case err != nil:
		case line.Role != "" && line.Role != auth.Seller:
			err = badLine{"role", "must be seller"}
		case line.ExternalID == "":
			err = badLine{"externalId", "is missing"}
		}
		line.Role = auth.Seller
		return line, err
	})
}

type importBalancesCmd struct{ importFlags }

func (importBalancesCmd) Help() string {
	return "A line is an object with sellerId, available and pending, in major units, and availableAt for when what is pending can be withdrawn; " +
		"without it, after the holding period. A balance is a seller's first money: it is refused once other money has moved." + afterImport +
		examples("bursar import balances balances.ndjson --dry-run", `echo '{"sellerId":"ext:42","available":1499.50,"pending":200}' | bursar import balances -`)
}

// Run imports the file.
func (c importBalancesCmd) Run(ctx context.Context, e *env) error {
	return c.each(ctx, e, "Balances", func(s importServices, text []byte) (reported, addLine, error) {
		var in struct {
			SellerID    string          `json:"sellerId"`
			Available   json.RawMessage `json:"available"`
			Pending     json.RawMessage `json:"pending"`
			AvailableAt string          `json:"availableAt"`
		}
		err := decodeLine(text, &in, "a balance")
		said := reported{SellerID: in.SellerID}
		n := sale.NewOpening{By: s.by}
		err = errors.Join(err, s.amount("available", in.Available, &n.Available), s.amount("pending", in.Pending, &n.Pending), instantOf("availableAt", in.AvailableAt, &n.AvailableAt))
		return said, func(ctx context.Context) (created bool, err error) {
			if n.Seller, err = s.seller(ctx, in.SellerID); err != nil {
				return false, err
			}
			if c.DryRun {
				return s.sales.WouldOpen(ctx, n)
			}
			return s.sales.Open(ctx, n)
		}, err
	})
}

type importSalesCmd struct{ importFlags }

func (importSalesCmd) Help() string {
	return "A line is an object with saleId, sellerId, amount in major units, occurredAt and, where it is known, availableAt, as POST /api/marketplace/sales takes it. " +
		"Without availableAt, a sale can be withdrawn after the holding period." + afterImport +
		examples("bursar import sales sales.ndjson --dry-run", `bursar import sales sales.ndjson --json | jq 'select(.outcome == "failed")'`)
}

// Run imports the file.
func (c importSalesCmd) Run(ctx context.Context, e *env) error {
	return c.each(ctx, e, "Sales", func(s importServices, text []byte) (reported, addLine, error) {
		var in struct {
			SaleID      string          `json:"saleId"`
			SellerID    string          `json:"sellerId"`
			Amount      json.RawMessage `json:"amount"`
			OccurredAt  string          `json:"occurredAt"`
			AvailableAt string          `json:"availableAt"`
		}
		err := decodeLine(text, &in, "a sale")
		said := reported{SaleID: in.SaleID, SellerID: in.SellerID}
		n := sale.NewSale{ID: in.SaleID, Actor: ledger.ActorOperator + s.by.Operator}
		err = errors.Join(err, s.amount("amount", in.Amount, &n.Amount), instantOf("occurredAt", in.OccurredAt, &n.OccurredAt), instantOf("availableAt", in.AvailableAt, &n.AvailableAt))
		switch problem := limits.Reference(in.SaleID); {
		case err != nil:
		case problem != "":
			err = badLine{"saleId", problem}
		case n.Amount <= 0:
			err = badLine{"amount", "must be above zero"}
		case n.OccurredAt.IsZero(): // a default would make another sale of the line in a second run
			err = badLine{"occurredAt", "must be a time such as 2024-05-01T10:00:00Z"}
		}
		return said, func(ctx context.Context) (created bool, err error) {
			if n.Seller, err = s.seller(ctx, in.SellerID); err != nil {
				return false, err
			}
			record := s.sales.Record
			if c.DryRun {
				record = s.sales.WouldRecord
			}
			_, created, err = record(ctx, n)
			return created, err
		}, err
	})
}

type importBankAccountsCmd struct{ importFlags }

func (importBankAccountsCmd) Help() string {
	return "A line is an object with sellerId, accountHolder, accountNumber and ifsc. Each account is verified by the gateway, as one that a seller registers; " +
		"serve does that, and it costs what a verification costs." + afterImport +
		examples("bursar import bank-accounts accounts.ndjson --dry-run", "bursar import bank-accounts accounts.ndjson")
}

// Run imports the file.
func (c importBankAccountsCmd) Run(ctx context.Context, e *env) error {
	return c.each(ctx, e, "Bank accounts", func(s importServices, text []byte) (reported, addLine, error) {
		var in struct {
			SellerID      string `json:"sellerId"`
			AccountHolder string `json:"accountHolder"`
			AccountNumber string `json:"accountNumber"`
			IFSC          string `json:"ifsc"`
		}
		err := decodeLine(text, &in, "a bank account")
		said := reported{SellerID: in.SellerID}
		r := bank.Registration{Holder: in.AccountHolder, Actor: ledger.ActorOperator + s.by.Operator}
		if err == nil {
			var numberErr, ifscErr error
			r.Number, numberErr = bank.ParseNumber(in.AccountNumber)
			r.IFSC, ifscErr = bank.ParseIFSC(in.IFSC)
			err = errors.Join(numberErr, ifscErr)
		}
		return said, func(ctx context.Context) (created bool, err error) {
			if r.Seller, err = s.seller(ctx, in.SellerID); err != nil {
				return false, err
			}
			if c.DryRun {
				return s.accounts.WouldImport(ctx, r)
			}
			return s.accounts.Import(ctx, r)
		}, err
	})
}

// importServices are what lines are imported into.
type importServices struct {
	by       decision.By
	currency money.Currency
	users    *auth.Service
	sales    *sale.Service
	accounts *bank.Service
}

// seller finds the id of a seller, by that or by ext: and the external id.
func (s importServices) seller(ctx context.Context, name string) (string, error) {
	if problem := auth.CheckSellerName(name); problem != "" {
		return "", badLine{"sellerId", problem}
	}
	u, err := s.users.Seller(ctx, name)
	if errors.Is(err, auth.ErrSellerNotFound) {
		err = badLine{"sellerId", "names no seller"}
	}
	return u.ID, err
}

// amount reads an amount of major units, which may be absent, and may be a number in quotes.
func (s importServices) amount(field string, text json.RawMessage, to *money.Amount) (err error) {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	*to, err = s.currency.Parse(strings.Trim(string(text), `"`))
	switch {
	case errors.Is(err, money.ErrRange):
		return badLine{field, "is too large"}
	case err != nil:
		return badLine{field, fmt.Sprintf("must be an amount in %s with at most %d decimals", s.currency, s.currency.Exponent())}
	}
	return nil
}

func instantOf(field, text string, to *time.Time) (err error) {
	if text == "" {
		return nil
	}
	*to, err = time.Parse(time.RFC3339, text)
	if first, last := time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC); err != nil || to.Before(first) || to.After(last) {
		return badLine{field, "must be a time such as 2024-05-01T10:00:00Z"}
	}
	return nil
}

// decodeLine reads a line into a struct of strings and raw JSON. A field that it does not have is refused, and so is one that is there
// twice: money may depend on which of them counts. Of a line that is refused it reads what it can.
func decodeLine(text []byte, into any, what string) error {
	switch {
	case !utf8.Valid(text):
		return badLine{wholeLine, "is not UTF-8"}
	case bytes.Equal(text, []byte("null")):
		return badLine{wholeLine, "must be a JSON object"}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return importProblem(err, what)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badLine{wholeLine, "goes on after the object"}
	}
	members, err := strictjson.Object(text)
	if err != nil {
		return badLine{wholeLine, err.Error()}
	}
	known := reflect.TypeOf(into).Elem()
	for field := range known.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(members, name)
	}
	for name := range members { // package json takes letters of the other case, too
		return badLine{name, "is no field of " + what}
	}
	return nil
}

// importsAtOnce is how many lines are under way at a time; the store groups what they write.
const importsAtOnce = 64

// addLine adds what one line is about, and reports whether it is new.
type addLine func(context.Context) (created bool, err error)

// each imports lines one by one, many at a time. Lines about the same sale or seller are imported in their order.
func (f importFlags) each(ctx context.Context, e *env, noun string, read func(importServices, []byte) (reported, addLine, error)) error {
	return f.run(ctx, e, noun, func(s importServices) addLines {
		trial := newTrial(f.DryRun)
		return func(ctx context.Context, lines []textLine) ([]reported, error) {
			said := make([]reported, len(lines))
			inOrder := map[string][]func() error{}
			for i, l := range lines {
				to := &said[i]
				line, add, err := read(s, l.text)
				*to = line
				key := cmp.Or(line.SaleID, line.SellerID)
				inOrder[key] = append(inOrder[key], func() error {
					created := false
					if err == nil {
						created, err = add(ctx)
					}
					problems, isKnown := lineProblems(err)
					switch {
					case err != nil && !isKnown:
						return err
					case err != nil:
						to.Outcome, to.Problems = auth.ImportFailed, problems
					default:
						*to = trial.compare(line.as(created), key, l)
					}
					return nil
				})
			}
			var all errgroup.Group
			all.SetLimit(importsAtOnce)
			for _, list := range inOrder {
				all.Go(func() error {
					for _, do := range list {
						if err := do(); err != nil {
							return err
						}
					}
					return nil
				})
			}
			return said, all.Wait()
		}
	})
}

// trial remembers the lines that a dry run would have created, to compare later lines of the file with them.
type trial struct {
	mu   sync.Mutex
	made map[string]textLine
}

// maxTried bounds the memory of a dry run. Past it, only the import itself finds two lines of one file that contradict each other.
const maxTried = 1_000_000

func newTrial(dryRun bool) *trial {
	if !dryRun {
		return &trial{}
	}
	return &trial{made: map[string]textLine{}}
}

// compare is what would become of a line after those before it.
func (t *trial) compare(said reported, key string, l textLine) reported {
	if t.made == nil || said.Outcome != auth.ImportCreated {
		return said
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first, again := t.made[key]
	switch {
	case again && bytes.Equal(first.text, l.text):
		said.Outcome = auth.ImportUnchanged
	case again:
		said.Outcome, said.Problems = auth.ImportFailed, map[string]string{wholeLine: fmt.Sprintf("is about the same as line %d, with other values", first.number)}
	case len(t.made) < maxTried:
		t.made[key] = l
	}
	return said
}

// lineProblems are what is wrong with a line, unless the error is that of the import as a whole.
func lineProblems(err error) (map[string]string, bool) {
	var bad badLine
	f := fault.From(err)
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all := map[string]string{}
		for _, one := range several.Unwrap() {
			problems, isKnown := lineProblems(one)
			if !isKnown {
				return nil, false
			}
			maps.Copy(all, problems)
		}
		return all, true
	}
	switch {
	case errors.As(err, &bad):
		return map[string]string{bad.field: bad.problem}, true
	case f == nil || f.Kind == fault.Unavailable:
		return nil, false
	case len(f.Details) > 0:
		return f.Details, true
	default:
		return map[string]string{wholeLine: "is refused: " + f.Message}, true
	}
}

// users imports lines that are users.
func (f importFlags) users(ctx context.Context, e *env, allowAdmins bool, read func([]byte) (auth.ImportLine, error)) error {
	return f.run(ctx, e, "Users", func(s importServices) addLines {
		into := s.users.NewImport(s.by, auth.ImportOptions{DryRun: f.DryRun, AllowAdmins: allowAdmins})
		return func(ctx context.Context, texts []textLine) ([]reported, error) {
			said := make([]reported, len(texts))
			var lines []auth.ImportLine
			var places []int
			for i, l := range texts {
				line, err := read(l.text)
				line.Number = l.number
				said[i] = reported{ExternalID: line.ExternalID, Email: line.Email}
				if bad, isBad := errors.AsType[badLine](err); isBad {
					said[i].Outcome, said[i].Problems = auth.ImportFailed, map[string]string{bad.field: bad.problem}
					continue
				}
				lines, places = append(lines, line), append(places, i)
			}
			if len(lines) == 0 {
				return said, nil
			}
			results, err := into.Add(ctx, lines)
			for i, r := range results {
				to := &said[places[i]]
				to.Outcome, to.ID, to.Problems = r.Outcome, r.UserID, r.Problems
			}
			return said, err
		}
	})
}

// run imports the file, and says in the end how many of its lines were new.
func (f importFlags) run(ctx context.Context, e *env, noun string, begin func(importServices) addLines) error {
	by, err := whoRuns(f.By)
	if err != nil {
		return err
	}
	file, size, err := openImport(f.File, e.in)
	if err != nil {
		return err
	}
	defer file.Close()
	cfg, datastore, err := e.open(ctx, app.OpenDatastore) // an import may come before anything else
	if err != nil {
		return err
	}
	defer datastore.Close()
	s := importServices{by: decision.By{Operator: by, Note: f.Note}, currency: cfg.Currency}
	if s.users, s.accounts, s.sales, err = datastore.Importing(); err != nil {
		return err
	}
	out := bufio.NewWriter(e.out)
	run := importRun{
		ctx:      ctx,
		lines:    &lineReader{r: bufio.NewReaderSize(file, maxImportLine+1)},
		addLines: begin(s),
		report:   reportLines(out, f.JSON, isTerminal(e.out)),
		progress: progressOn(e.err),
		size:     size,
	}
	err = errors.Join(run.all(), out.Flush())
	run.progress("")
	done := "Created"
	if f.DryRun {
		done = "Nothing was changed. To be created"
	}
	created, unchanged, failed := run.count[auth.ImportCreated], run.count[auth.ImportUnchanged], run.count[auth.ImportFailed]
	if run.line > 0 || err == nil {
		fmt.Fprintf(e.err, "%s: %d. %s: %d, unchanged: %d, failed: %d.\n", noun, created+unchanged+failed, done, created, unchanged, failed)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped after line %d; run it again to go on, the lines before change nothing", run.line)
	}
	if err == nil && failed > 0 {
		err = errReported
	}
	return err
}
