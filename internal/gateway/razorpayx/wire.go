package razorpayx

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits and names of the wire (docs: api/x, api/x/payouts, api/x/payout-idempotency).
const (
	// IdempotencyHeader carries the key of a payout, 4 to 36 of A-Z a-z 0-9 - _ and space.
	IdempotencyHeader = "X-Payout-Idempotency"
	// SignatureHeader and EventIDHeader come with a webhook.
	SignatureHeader = "X-Razorpay-Signature"
	EventIDHeader   = "X-Razorpay-Event-Id"

	// MaxReference bounds a reference_id, MaxNarration a narration, MaxPage the items of a collection.
	MaxReference = 40
	MaxNarration = 30
	MaxPage      = 100
	// MaxNote bounds a note, MaxNotes how many there are.
	MaxNote  = 256
	MaxNotes = 15
	// MinAmount is the least payout, in paise.
	MinAmount = 100
)

var contactNamePattern = regexp.MustCompile(`^[A-Za-z0-9 ’\-_/().]*[A-Za-z0-9.]$`)

// ValidContactName reports whether s can be a contact's name: 3 to 50 of letters, digits, space and
// ’ - _ / ( ) . and at the end no sign but a full stop (docs: api/x/contacts/create).
func ValidContactName(s string) bool {
	length := utf8.RuneCountInString(s)
	return length >= minName && length <= maxName && contactNamePattern.MatchString(s)
}

// Payout statuses (docs: x/payouts/states-life-cycle).
const (
	StatusPending    = "pending"
	StatusQueued     = "queued"
	StatusScheduled  = "scheduled"
	StatusProcessing = "processing"
	StatusProcessed  = "processed"
	StatusReversed   = "reversed"
	StatusFailed     = "failed"
	StatusRejected   = "rejected"
	StatusCancelled  = "cancelled"
)

// Validation statuses, and what a completed one says of the account.
const (
	ValidationCreated   = "created"
	ValidationCompleted = "completed"
	ValidationFailed    = "failed"

	AccountActive  = "active"
	AccountInvalid = "invalid"
)

// Text is a string that is null when empty.
type Text string

// MarshalJSON writes null for the empty text.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t))
}

// UnmarshalJSON reads a string, null, or a number as it is written: a bank's reference may look like one.
func (t *Text) UnmarshalJSON(text []byte) error {
	*t = ""
	if number := json.Number(""); json.Unmarshal(text, &number) == nil {
		*t = Text(number)
		return nil
	}
	return json.Unmarshal(text, (*string)(t))
}

// Notes are key-value pairs. Without any, the vendor writes an empty list in place of an object.
type Notes map[string]string

// MarshalJSON writes [] for no notes.
func (n Notes) MarshalJSON() ([]byte, error) {
	if len(n) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal(map[string]string(n))
}

// UnmarshalJSON reads an object, a list or null. It never fails: notes prove nothing, so they may
// not make an answer unreadable.
func (n *Notes) UnmarshalJSON(text []byte) error {
	*n = nil
	var pairs map[string]json.RawMessage
	if json.Unmarshal(text, &pairs) != nil || len(pairs) == 0 {
		return nil //nolint:nilerr // as promised above
	}
	*n = make(Notes, len(pairs))
	for key, raw := range pairs {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			value = string(bytes.TrimSpace(raw))
		}
		(*n)[key] = value
	}
	return nil
}

// Score is the likeness of two names, 0 to 100.
type Score int

// UnmarshalJSON reads a number, also one in quotes or with decimals, which are dropped. What is none
// of these is -1, no score.
func (s *Score) UnmarshalJSON(text []byte) error {
	whole, _, _ := strings.Cut(strings.Trim(string(text), `"`), ".")
	n, err := strconv.Atoi(whole)
	if err != nil || n < 0 || n > 100 {
		n = -1
	}
	*s = Score(n)
	return nil
}

// MarshalJSON writes null for no score.
func (s Score) MarshalJSON() ([]byte, error) {
	if s < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// ContactRequest makes a contact: the person or business behind a bank account.
type ContactRequest struct {
	Name        string `json:"name"`
	Email       string `json:"email,omitempty"`
	Phone       string `json:"contact,omitempty"`
	Type        string `json:"type,omitempty"`
	ReferenceID string `json:"reference_id,omitempty"`
	Notes       Notes  `json:"notes,omitempty"`
}

// Contact is a contact as the vendor shows it.
type Contact struct {
	ID          string `json:"id"`
	Entity      string `json:"entity"`
	Name        string `json:"name"`
	Phone       Text   `json:"contact"`
	Email       Text   `json:"email"`
	Type        Text   `json:"type"`
	ReferenceID Text   `json:"reference_id"`
	BatchID     Text   `json:"batch_id"`
	Active      bool   `json:"active"`
	Notes       Notes  `json:"notes"`
	CreatedAt   int64  `json:"created_at"`
}

// FundAccountRequest makes a fund account: a bank account of a contact.
type FundAccountRequest struct {
	ContactID   string             `json:"contact_id"`
	AccountType string             `json:"account_type"`
	BankAccount BankAccountRequest `json:"bank_account"`
}

// BankAccountRequest is a bank account as it is given.
type BankAccountRequest struct {
	Name          string `json:"name"`
	IFSC          string `json:"ifsc"`
	AccountNumber string `json:"account_number"`
}

// FundAccount is a fund account as the vendor shows it. Contact is there in a composite validation.
type FundAccount struct {
	ID          string      `json:"id"`
	Entity      string      `json:"entity"`
	ContactID   string      `json:"contact_id"`
	Contact     *Contact    `json:"contact,omitempty"`
	AccountType string      `json:"account_type"`
	BankAccount BankAccount `json:"bank_account"`
	BatchID     Text        `json:"batch_id"`
	Active      bool        `json:"active"`
	CreatedAt   int64       `json:"created_at"`
}

// BankAccount is a bank account as the vendor shows it.
type BankAccount struct {
	IFSC          string `json:"ifsc"`
	BankName      string `json:"bank_name"`
	Name          string `json:"name"`
	Notes         Notes  `json:"notes"`
	AccountNumber string `json:"account_number"`
}

// ActiveRequest switches a contact or a fund account on or off.
type ActiveRequest struct {
	Active *bool `json:"active"`
}

// ValidationRequest is the classic request for an account validation: a small amount is sent to a
// fund account.
type ValidationRequest struct {
	AccountNumber string         `json:"account_number"`
	FundAccount   FundAccountRef `json:"fund_account"`
	Amount        int64          `json:"amount"`
	Currency      string         `json:"currency"`
	Notes         Notes          `json:"notes,omitempty"`
}

// FundAccountRef names a fund account.
type FundAccountRef struct {
	ID string `json:"id"`
}

// Validation is an account validation. Results answers the classic request and comes in every
// webhook; ValidationResults and what follows it answer the composite request.
type Validation struct {
	ID                string             `json:"id"`
	Entity            string             `json:"entity"`
	FundAccount       FundAccount        `json:"fund_account"`
	Status            string             `json:"status"`
	Amount            int64              `json:"amount,omitempty"`
	Currency          string             `json:"currency,omitempty"`
	Notes             Notes              `json:"notes"`
	Results           *ValidationResults `json:"results,omitempty"`
	ValidationResults *ValidationResults `json:"validation_results,omitempty"`
	StatusDetails     *StatusDetails     `json:"status_details,omitempty"`
	ReferenceID       string             `json:"reference_id,omitempty"`
	UTR               Text               `json:"utr"`
	CreatedAt         int64              `json:"created_at"`
}

// ValidationResults are null in all parts until the validation has completed.
type ValidationResults struct {
	AccountStatus  Text   `json:"account_status"`
	RegisteredName Text   `json:"registered_name"`
	Details        *Text  `json:"details,omitempty"`
	NameMatchScore *Score `json:"name_match_score,omitempty"`
}

// PayoutRequest asks for a payout from our account AccountNumber.
type PayoutRequest struct {
	AccountNumber     string `json:"account_number"`
	FundAccountID     string `json:"fund_account_id"`
	Amount            int64  `json:"amount"`
	Currency          string `json:"currency"`
	Mode              string `json:"mode"`
	Purpose           string `json:"purpose"`
	QueueIfLowBalance bool   `json:"queue_if_low_balance"`
	ReferenceID       string `json:"reference_id,omitempty"`
	Narration         string `json:"narration,omitempty"`
	Notes             Notes  `json:"notes,omitempty"`
}

// Payout is a payout as the vendor shows it. FailureReason is deprecated and still sent.
type Payout struct {
	ID                 string         `json:"id"`
	Entity             string         `json:"entity"`
	FundAccountID      string         `json:"fund_account_id"`
	Amount             int64          `json:"amount"`
	Currency           string         `json:"currency"`
	Notes              Notes          `json:"notes"`
	Fees               int64          `json:"fees"`
	Tax                int64          `json:"tax"`
	Status             string         `json:"status"`
	UTR                Text           `json:"utr"`
	Mode               string         `json:"mode"`
	Purpose            string         `json:"purpose"`
	ReferenceID        Text           `json:"reference_id"`
	Narration          Text           `json:"narration"`
	DebitAccountNumber string         `json:"debit_account_number"`
	BatchID            Text           `json:"batch_id"`
	FailureReason      Text           `json:"failure_reason"`
	FeeType            string         `json:"fee_type"`
	StatusDetails      *StatusDetails `json:"status_details"`
	CreatedAt          int64          `json:"created_at"`
}

// StatusDetails say why something is in its status.
type StatusDetails struct {
	Description Text `json:"description"`
	Source      Text `json:"source"`
	Reason      Text `json:"reason"`
}

// Collection is a page of a list.
type Collection[T any] struct {
	Entity string `json:"entity"`
	Count  int    `json:"count"`
	Items  []T    `json:"items"`
}

// ErrorBody is the body of every refusal.
type ErrorBody struct {
	Error Problem `json:"error"`
}

// Problem says what was wrong with a request.
type Problem struct {
	Code        string   `json:"code"`
	Description string   `json:"description"`
	Source      Text     `json:"source"`
	Step        Text     `json:"step"`
	Reason      Text     `json:"reason"`
	Metadata    struct{} `json:"metadata"`
	Field       Text     `json:"field,omitempty"`
}

// Problem codes.
const (
	CodeBadRequest  = "BAD_REQUEST_ERROR"
	CodeServerError = "SERVER_ERROR"
)

// Event is the body of a webhook.
type Event struct {
	Entity    string       `json:"entity"`
	AccountID string       `json:"account_id"`
	Event     string       `json:"event"`
	Contains  []string     `json:"contains"`
	Payload   EventPayload `json:"payload"`
	CreatedAt int64        `json:"created_at"`
}

// EventPayload holds what an event is about.
type EventPayload struct {
	Payout     *Wrapped[Payout]     `json:"payout,omitempty"`
	Validation *Wrapped[Validation] `json:"fund_account.validation,omitempty"`
}

// Wrapped is how an event holds an entity.
type Wrapped[T any] struct {
	Entity T `json:"entity"`
}

// BankingBalance is the balance of one of our accounts.
type BankingBalance struct {
	AccountNumber   string `json:"account_number"`
	AccountType     string `json:"account_type"`
	BankName        string `json:"bank_name"`
	BankCode        string `json:"bank_code"`
	Currency        string `json:"currency"`
	Amount          int64  `json:"amount"`
	AvailableAmount int64  `json:"available_amount"`
	RefreshedAt     int64  `json:"refreshed_at"`
}

// Transaction is a line of our account's statement.
type Transaction struct {
	ID            string            `json:"id"`
	Entity        string            `json:"entity"`
	AccountNumber string            `json:"account_number"`
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	Credit        int64             `json:"credit"`
	Debit         int64             `json:"debit"`
	Balance       int64             `json:"balance"`
	Source        TransactionSource `json:"source"`
	CreatedAt     int64             `json:"created_at"`
}

// TransactionSource is what a transaction came from: a payout, or a bank transfer to the account,
// which alone has a payer and a bank reference. What the source of a reversal looks like is not documented;
// the sandbox can be set to name its payout in PayoutID.
type TransactionSource struct {
	ID            string `json:"id"`
	Entity        string `json:"entity"`
	PayoutID      string `json:"payout_id,omitempty"`
	FundAccountID string `json:"fund_account_id,omitempty"`
	PayerName     string `json:"payer_name,omitempty"`
	PayerAccount  string `json:"payer_account,omitempty"`
	PayerIFSC     string `json:"payer_ifsc,omitempty"`
	BankReference string `json:"bank_reference,omitempty"`
	Mode          string `json:"mode"`
	Amount        int64  `json:"amount"`
	Notes         *Notes `json:"notes,omitempty"`
	Fees          int64  `json:"fees,omitempty"`
	Tax           int64  `json:"tax,omitempty"`
	Status        string `json:"status,omitempty"`
	UTR           *Text  `json:"utr,omitempty"`
	CreatedAt     int64  `json:"created_at,omitempty"`
}
