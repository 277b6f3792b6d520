package sandbox

import (
	"net/http"
	"slices"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// validationRequest is either shape of request: the classic one has an amount and names a fund
// account, the composite one has a type and holds the account with its contact.
type validationRequest struct {
	AccountNumber       string               `json:"account_number"`
	SourceAccountNumber string               `json:"source_account_number"`
	ValidationType      string               `json:"validation_type"`
	Amount              int64                `json:"amount"`
	Currency            string               `json:"currency"`
	ReferenceID         string               `json:"reference_id"`
	Notes               razorpayx.Notes      `json:"notes"`
	FundAccount         validatedFundAccount `json:"fund_account"`
}

type validatedFundAccount struct {
	ID          string                       `json:"id"`
	AccountType string                       `json:"account_type"`
	BankAccount razorpayx.BankAccountRequest `json:"bank_account"`
	Contact     razorpayx.ContactRequest     `json:"contact"`
}

func (v validationRequest) composite() bool { return v.SourceAccountNumber != "" }

// validation is a row.
type validation struct {
	seq            int64
	fundAccount    int64
	composite      bool
	amount         int64
	referenceID    string
	notes          string
	status         string
	accountStatus  string
	registeredName string
	utr            string
	createdAt      int64
}

const validationColumns = `seq, fund_account, composite, amount, reference_id, notes, status, account_status,
	registered_name, utr, created_at`

func scanValidation(row scanner) (validation, error) {
	var v validation
	err := row.Scan(&v.seq, &v.fundAccount, &v.composite, &v.amount, &v.referenceID, &v.notes, &v.status,
		&v.accountStatus, &v.registeredName, &v.utr, &v.createdAt)
	return v, err
}

func (s *Sandbox) createValidation(r *http.Request) (razorpayx.Validation, error) {
	in, _, err := readBody[validationRequest](r)
	if err != nil {
		return razorpayx.Validation{}, err
	}
	if err := s.checkValidation(in); err != nil {
		return razorpayx.Validation{}, err
	}
	notes, err := s.notesText(in.Notes)
	if err != nil {
		return razorpayx.Validation{}, err
	}
	now := s.o.Now()
	v := validation{
		seq: s.records.newSeq(), composite: in.composite(), amount: in.Amount, referenceID: in.ReferenceID,
		notes: notes, status: razorpayx.ValidationCreated, createdAt: now.UnixMicro(),
	}
	err = s.update(func(t *tx) error {
		if v.fundAccount, err = s.validatedAccount(t, in); err != nil {
			return err
		}
		err := t.exec(`INSERT INTO validations (`+validationColumns+`, due_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			v.seq, v.fundAccount, v.composite, v.amount, v.referenceID, v.notes, v.status, v.accountStatus,
			v.registeredName, v.utr, v.createdAt, now.Add(s.validationTakes()).UnixMicro())
		return err
	})
	if err != nil {
		return razorpayx.Validation{}, err
	}
	return s.showValidation(v)
}

// validationTakes is how long a validation takes: usually it is instant.
func (s *Sandbox) validationTakes() time.Duration {
	return min(time.Duration(s.settleAfter.Load()), time.Second)
}

func (s *Sandbox) checkValidation(in validationRequest) error {
	types := []string{"", "pennydrop", "penniless", "optimized"}
	switch {
	case in.composite() && !slices.Contains(types, in.ValidationType):
		return invalid("validation_type", "The selected validation type is invalid.")
	case in.composite() && len(in.ReferenceID) > razorpayx.MaxReference:
		return invalid("reference_id", "The reference id may not be greater than 40 characters.")
	case in.composite():
		return s.ours(in.SourceAccountNumber)
	case in.FundAccount.ID == "":
		return invalid("fund_account.id", "The fund account id field is required.")
	case in.Amount < 100 || in.Amount > 200:
		return invalid("amount", "The amount must be between 100 and 200.")
	case in.Currency != "" && in.Currency != s.o.Currency.Code():
		return invalid("currency", "The currency is not supported.")
	}
	return s.ours(in.AccountNumber)
}

// validatedAccount finds the fund account that a request names, or makes the one that it holds.
func (s *Sandbox) validatedAccount(t *tx, in validationRequest) (int64, error) {
	if in.composite() {
		contact, err := s.ensureContact(t, in.FundAccount.Contact)
		if err != nil {
			return 0, err
		}
		account, err := s.ensureFundAccount(t, razorpayx.FundAccountRequest{
			ContactID: contact.ID, AccountType: in.FundAccount.AccountType, BankAccount: in.FundAccount.BankAccount,
		})
		return parseID("fa_", account.ID), err
	}
	account, err := findBeneficiary(t, in.FundAccount.ID)
	return account.seq, err
}

// beneficiary is what a payout or a validation must know of a fund account.
type beneficiary struct {
	seq    int64
	last4  string
	active bool
}

func findBeneficiary(q queryer, id string) (beneficiary, error) {
	b := beneficiary{seq: parseID("fa_", id)}
	b, err := orUnknown(b, q.row(`SELECT last4, active FROM fund_accounts WHERE seq = $1`, b.seq).Scan(&b.last4, &b.active))
	if err == nil && !b.active {
		err = invalid("fund_account_id", "The fund account is inactive.")
	}
	return b, err
}

func (s *Sandbox) readValidation(r *http.Request) (razorpayx.Validation, error) {
	v, err := orUnknown(scanValidation(s.records.row(`SELECT `+validationColumns+` FROM validations WHERE seq = $1`, parseID("fav_", r.PathValue("id")))))
	if err != nil {
		return razorpayx.Validation{}, err
	}
	return s.showValidation(v)
}

func (s *Sandbox) listValidations(r *http.Request) (razorpayx.Collection[razorpayx.Validation], error) {
	var none razorpayx.Collection[razorpayx.Validation]
	if err := s.ours(r.URL.Query().Get("account_number")); err != nil {
		return none, err
	}
	p, err := readPage(r)
	if err != nil {
		return none, err
	}
	f := filter{}
	f.equalID("fund_account", "fa_", r.URL.Query().Get("fund_account_id"))
	query, args := f.query(validationColumns, "validations", p)
	return collect(s.records, query, args, scanValidation, s.showValidation)
}

// showValidation writes a validation in the shape of its request.
func (s *Sandbox) showValidation(v validation) (razorpayx.Validation, error) {
	out, err := s.showAnyValidation(v)
	if err != nil {
		return out, err
	}
	if !v.composite {
		out.Results = v.results()
		return out, nil
	}
	contact, err := scanContact(s.records.row(`SELECT `+contactColumns+` FROM contacts WHERE seq = $1`, parseID("cont_", out.FundAccount.ContactID)))
	out.FundAccount.Contact = &contact
	out.ValidationResults, out.ReferenceID = v.fullResults(), v.referenceID
	out.StatusDetails = statusDetails(validationReasons[v.status])
	return out, err
}

// showValidationInEvent writes a validation as every webhook has it, whatever its request was.
func (s *Sandbox) showValidationInEvent(v validation) (razorpayx.Validation, error) {
	out, err := s.showAnyValidation(v)
	out.Results = v.fullResults()
	return out, err
}

// showAnyValidation writes what all shapes share.
func (s *Sandbox) showAnyValidation(v validation) (razorpayx.Validation, error) {
	account, err := scanFundAccount(s.records.row(`SELECT `+fundAccountColumns+` FROM fund_accounts WHERE seq = $1`, v.fundAccount))
	out := razorpayx.Validation{
		ID: vendorID("fav_", v.seq), Entity: "fund_account.validation", FundAccount: account, Status: v.status,
		Notes: parseNotes(v.notes), UTR: razorpayx.Text(v.utr), CreatedAt: seconds(v.createdAt),
	}
	if !v.composite {
		out.Amount, out.Currency = v.amount, s.o.Currency.Code()
	}
	return out, err
}

func (v validation) results() *razorpayx.ValidationResults {
	return &razorpayx.ValidationResults{
		AccountStatus: razorpayx.Text(v.accountStatus), RegisteredName: razorpayx.Text(v.registeredName),
	}
}

// fullResults score the name in full where the holder's is known: the sandbox's bank knows it as it
// was given.
func (v validation) fullResults() *razorpayx.ValidationResults {
	score := razorpayx.Score(-1)
	if v.registeredName != "" {
		score = 100
	}
	r := v.results()
	r.Details, r.NameMatchScore = new(razorpayx.Text), &score
	return r
}

var validationReasons = map[string]string{
	razorpayx.ValidationCreated:   "validation_request_created",
	razorpayx.ValidationCompleted: "validation_completed",
	razorpayx.ValidationFailed:    "gateway_technical_error",
}

// completeValidation finds out about the account.
func (s *Sandbox) completeValidation(t *tx, v validation, now time.Time) error {
	var name, last4 string
	err := t.row(`SELECT name, last4 FROM fund_accounts WHERE seq = $1`, v.fundAccount).Scan(&name, &last4)
	if err != nil {
		return err
	}
	v.status, v.accountStatus, v.registeredName = razorpayx.ValidationCompleted, razorpayx.AccountActive, name
	v.utr = newUTR("IMPS", v.seq, now)
	switch story := storyOf(last4); {
	case story.invalid:
		v.accountStatus, v.registeredName, v.utr = razorpayx.AccountInvalid, "", ""
	case story.holder != nil:
		v.registeredName = story.holder(name)
	}
	err = t.exec(`UPDATE validations SET status = $1, account_status = $2, registered_name = $3, utr = $4, due_at = NULL
		WHERE seq = $5`, v.status, v.accountStatus, v.registeredName, v.utr, v.seq)
	if err != nil {
		return err
	}
	return s.announceValidation(t, v, last4, now)
}
