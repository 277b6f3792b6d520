package sandbox

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bursar/internal/gateway/razorpayx"
)

const contactColumns = `seq, name, email, phone, type, reference_id, notes, active, created_at`

func scanContact(row scanner) (razorpayx.Contact, error) {
	var (
		c              = razorpayx.Contact{Entity: "contact"}
		seq, createdAt int64
		notes          string
	)
	err := row.Scan(&seq, &c.Name, &c.Email, &c.Phone, &c.Type, &c.ReferenceID, &notes, &c.Active, &createdAt)
	c.ID, c.Notes, c.CreatedAt = vendorID("cont_", seq), parseNotes(notes), seconds(createdAt)
	return c, err
}

// seconds turns the instants of the records into the wire's.
func seconds(micros int64) int64 { return time.UnixMicro(micros).Unix() }

var contactTypes = []string{"", "vendor", "customer", "employee", "self"}

func checkContact(c razorpayx.ContactRequest) error {
	switch {
	case c.Name == "":
		return invalid("name", "The name field is required.")
	case !razorpayx.ValidContactName(c.Name):
		return invalid("name", "The name field is invalid.")
	case !slices.Contains(contactTypes, c.Type):
		return invalid("type", "Invalid type: "+c.Type)
	case len(c.ReferenceID) > razorpayx.MaxReference:
		return invalid("reference_id", "The reference id may not be greater than 40 characters.")
	case c.Email != "" && !strings.Contains(c.Email, "@"):
		return invalid("email", "The email must be a valid email address.")
	}
	return nil
}

func (s *Sandbox) createContact(r *http.Request) (razorpayx.Contact, error) {
	in, _, err := readBody[razorpayx.ContactRequest](r)
	if err != nil {
		return razorpayx.Contact{}, err
	}
	var out razorpayx.Contact
	err = s.update(func(t *tx) (err error) {
		out, err = s.ensureContact(t, in)
		return err
	})
	return out, err
}

// ensureContact finds the contact with the same details, or makes it.
func (s *Sandbox) ensureContact(t *tx, in razorpayx.ContactRequest) (razorpayx.Contact, error) {
	if err := checkContact(in); err != nil {
		return razorpayx.Contact{}, err
	}
	notes, err := s.notesText(in.Notes)
	if err != nil {
		return razorpayx.Contact{}, err
	}
	err = t.exec(`INSERT INTO contacts (`+contactColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8) ON CONFLICT DO NOTHING`,
		s.records.newSeq(), in.Name, in.Email, in.Phone, in.Type, in.ReferenceID, notes, s.o.Now().UnixMicro())
	if err != nil {
		return razorpayx.Contact{}, err
	}
	return scanContact(t.row(`SELECT `+contactColumns+` FROM contacts
		WHERE name = $1 AND email = $2 AND phone = $3 AND type = $4 AND reference_id = $5`,
		in.Name, in.Email, in.Phone, in.Type, in.ReferenceID))
}

func (s *Sandbox) readContact(r *http.Request) (razorpayx.Contact, error) {
	return orUnknown(scanContact(s.records.row(`SELECT `+contactColumns+` FROM contacts WHERE seq = $1`, parseID("cont_", r.PathValue("id")))))
}

func (s *Sandbox) listContacts(r *http.Request) (razorpayx.Collection[razorpayx.Contact], error) {
	p, err := readPage(r)
	if err != nil {
		return razorpayx.Collection[razorpayx.Contact]{}, err
	}
	f := filter{}
	f.equal("reference_id", r.URL.Query().Get("reference_id"))
	query, args := f.query(contactColumns, "contacts", p)
	return collect(s.records, query, args, scanContact, asIs)
}

func (s *Sandbox) switchContact(r *http.Request) (razorpayx.Contact, error) {
	if err := s.switchActive(r, `UPDATE contacts SET active = $1 WHERE seq = $2`, "cont_"); err != nil {
		return razorpayx.Contact{}, err
	}
	return s.readContact(r)
}

func (s *Sandbox) switchActive(r *http.Request, statement, prefix string) error {
	in, _, err := readBody[razorpayx.ActiveRequest](r)
	if err != nil {
		return err
	}
	if in.Active == nil {
		return invalid("active", "The active field is required.")
	}
	return s.update(func(t *tx) error {
		err := t.exec(statement, *in.Active, parseID(prefix, r.PathValue("id")))
		return err
	})
}

const fundAccountColumns = `seq, contact, name, ifsc, number, active, created_at`

func scanFundAccount(row scanner) (razorpayx.FundAccount, error) {
	var (
		a                       = razorpayx.FundAccount{Entity: "fund_account", AccountType: "bank_account"}
		seq, contact, createdAt int64
	)
	b := &a.BankAccount
	if err := row.Scan(&seq, &contact, &b.Name, &b.IFSC, &b.AccountNumber, &a.Active, &createdAt); err != nil {
		return a, err
	}
	a.ID, a.ContactID, a.CreatedAt = vendorID("fa_", seq), vendorID("cont_", contact), seconds(createdAt)
	b.BankName = bankName(b.IFSC)
	return a, nil
}

var accountNumberPattern = regexp.MustCompile(`^[A-Za-z0-9]{5,35}$`)

func checkFundAccount(in razorpayx.FundAccountRequest) error {
	account := in.BankAccount
	switch length := utf8.RuneCountInString(account.Name); {
	case in.AccountType != "bank_account":
		return invalid("account_type", "The account type field is invalid.")
	case account.Name == "":
		return invalid("name", "The name field is required.")
	case length < 3 || length > 120:
		return invalid("name", "The name must be between 3 and 120 characters.")
	case len(account.IFSC) != 11:
		return invalid("ifsc", "The IFSC must be 11 characters.")
	case !accountNumberPattern.MatchString(account.AccountNumber):
		return invalid("account_number", "The account number format is invalid.")
	}
	return nil
}

func (s *Sandbox) createFundAccount(r *http.Request) (razorpayx.FundAccount, error) {
	in, _, err := readBody[razorpayx.FundAccountRequest](r)
	if err != nil {
		return razorpayx.FundAccount{}, err
	}
	if in.ContactID == "" {
		return razorpayx.FundAccount{}, invalid("contact_id", "The contact id field is required.")
	}
	var out razorpayx.FundAccount
	err = s.update(func(t *tx) (err error) {
		out, err = s.ensureFundAccount(t, in)
		return err
	})
	return out, err
}

// ensureFundAccount finds the contact's fund account with the same details, or makes it.
func (s *Sandbox) ensureFundAccount(t *tx, in razorpayx.FundAccountRequest) (razorpayx.FundAccount, error) {
	if err := checkFundAccount(in); err != nil {
		return razorpayx.FundAccount{}, err
	}
	contact := parseID("cont_", in.ContactID)
	if _, err := orUnknown(scanContact(t.row(`SELECT `+contactColumns+` FROM contacts WHERE seq = $1`, contact))); err != nil {
		return razorpayx.FundAccount{}, err
	}
	account := in.BankAccount
	err := t.exec(`INSERT INTO fund_accounts (seq, contact, name, ifsc, number, last4, active, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, 1, $7) ON CONFLICT DO NOTHING`,
		s.records.newSeq(), contact, account.Name, account.IFSC, account.AccountNumber,
		account.AccountNumber[len(account.AccountNumber)-4:], s.o.Now().UnixMicro())
	if err != nil {
		return razorpayx.FundAccount{}, err
	}
	return scanFundAccount(t.row(`SELECT `+fundAccountColumns+` FROM fund_accounts
		WHERE contact = $1 AND name = $2 AND ifsc = $3 AND number = $4`,
		contact, account.Name, account.IFSC, account.AccountNumber))
}

func (s *Sandbox) readFundAccount(r *http.Request) (razorpayx.FundAccount, error) {
	return orUnknown(scanFundAccount(s.records.row(`SELECT `+fundAccountColumns+` FROM fund_accounts WHERE seq = $1`, parseID("fa_", r.PathValue("id")))))
}

func (s *Sandbox) listFundAccounts(r *http.Request) (razorpayx.Collection[razorpayx.FundAccount], error) {
	p, err := readPage(r)
	if err != nil {
		return razorpayx.Collection[razorpayx.FundAccount]{}, err
	}
	f := filter{}
	f.equalID("contact", "cont_", r.URL.Query().Get("contact_id"))
	query, args := f.query(fundAccountColumns, "fund_accounts", p)
	return collect(s.records, query, args, scanFundAccount, asIs)
}

func (s *Sandbox) switchFundAccount(r *http.Request) (razorpayx.FundAccount, error) {
	if err := s.switchActive(r, `UPDATE fund_accounts SET active = $1 WHERE seq = $2`, "fa_"); err != nil {
		return razorpayx.FundAccount{}, err
	}
	return s.readFundAccount(r)
}
