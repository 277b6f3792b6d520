package mail

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Kind names what a mail tells. It is the name of its templates.
type Kind string

// The kinds.
const (
	KindPasswordChanged     Kind = "password-changed"
	KindBankAccountReplaced Kind = "bank-account-replaced"
)

// Data is what the templates of one kind show. It is kept as JSON.
type Data interface{ Kind() Kind }

// PasswordChanged tells the owner of an account that its password was changed, or that a first one was set.
type PasswordChanged struct {
	At    time.Time
	First bool
	// Address and Agent are where the change came from; either may be empty.
	Address, Agent string
}

// Kind is [KindPasswordChanged].
func (PasswordChanged) Kind() Kind { return KindPasswordChanged }

// BankAccountReplaced tells a seller that payouts go to another bank account from now on. Was and Now are the last four
// digits of the numbers. HoldUntil is zero where payouts are not on hold.
type BankAccountReplaced struct {
	At        time.Time
	Was, Now  string
	HoldUntil time.Time
}

// Kind is [KindBankAccountReplaced].
func (BankAccountReplaced) Kind() Kind { return KindBankAccountReplaced }

// rule is what holds for all mails of a kind.
type rule struct {
	decode func(text string) (Data, error)
	// maxAge is how long a mail is worth sending.
	maxAge time.Duration
	// asked says that anybody can have such a mail sent to an address. Notices have limits of their own, so that asking
	// for mails keeps no notice back.
	asked   bool
	example Data
}

const noticeAge = 48 * time.Hour

var rules = map[Kind]rule{
	KindPasswordChanged: {decode[PasswordChanged], noticeAge, false, PasswordChanged{
		At: exampleTime, Address: "203.0.113.7", Agent: "Firefox on Linux",
	}},
	KindBankAccountReplaced: {decode[BankAccountReplaced], noticeAge, false, BankAccountReplaced{At: exampleTime, Was: "7812", Now: "4456", HoldUntil: exampleTime.Add(72 * time.Hour)}},
}

var exampleTime = time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)

// Examples is one mail of each kind, to try templates with.
func Examples() []Data {
	all := make([]Data, 0, len(rules))
	for _, r := range rules {
		all = append(all, r.example)
	}
	slices.SortFunc(all, func(a, b Data) int {
		if a.Kind() < b.Kind() {
			return -1
		}
		return 1
	})
	return all
}

func decode[D Data](text string) (Data, error) {
	var d D
	err := json.Unmarshal([]byte(text), &d)
	return d, err
}

// content is what is encrypted of a mail.
type content struct {
	To   string          `json:"to"`
	Data json.RawMessage `json:"data"`
}

func encode(to string, d Data) (string, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("mail: write %s: %w", d.Kind(), err)
	}
	text, err := json.Marshal(content{to, data})
	return string(text), err
}

func read(k Kind, text string) (to string, d Data, err error) {
	r, known := rules[k]
	if !known {
		return "", nil, fmt.Errorf("mail: kind %q is not known", k)
	}
	var c content
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return "", nil, fmt.Errorf("mail: read %s: %w", k, err)
	}
	d, err = r.decode(string(c.Data))
	return c.To, d, err
}
