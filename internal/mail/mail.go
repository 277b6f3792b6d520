// Package mail keeps mails until they are sent.
//
// A mail is a row, written in the transaction of the change that it tells of: no mail tells of what did not happen, and
// none is lost. A job leases due rows and sends each at least once, with a back-off while the mail server is out of
// order. A request never waits for a mail server and never fails because of one.
//
// The row holds the address and the data encrypted with the service's key set, because the data may hold tokens. They
// are erased once the mail was sent or given up. What people and logs see of a mail is its kind, its masked address, and
// how its sending went.
package mail

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Mail is a message to be sent to a user.
type Mail struct {
	User string
	// To is the address; empty stands for the user's own.
	To   string
	Data Data
	// First says that no such mail can have been asked for before, so it does not count as one that was asked for within the
	// minute before.
	First bool
	// Once says that what the mail follows from happens once, so nobody can ask for many, and it does not count as asked for.
	Once bool
}

// State is how far a mail is.
type State string

// States. What is queued becomes one of the others.
const (
	Queued State = "queued"
	Sent   State = "sent"
	Failed State = "failed"
)

// Row is a mail as it is stored.
type Row struct {
	ID     string // prefix "mai_"
	Kind   Kind
	User   string
	Masked string // the address as people may see it
	// Content is the address and the data, encrypted; empty once the mail has ended.
	Content string
	State   State
	// Tries counts leases, so that a mail that ends the process is not tried for ever.
	Tries     int64
	LastError string
	CreatedAt time.Time
	GiveUpAt  time.Time
	DueAt     time.Time // zero once it has ended
	EndedAt   time.Time
}

// Message is a mail that is ready to be sent.
type Message struct {
	ID       string
	From, To string // bare addresses
	// Raw is the whole message with its header, in lines that end with CRLF.
	Raw []byte
}

// Rejected is the error of a mail server that will never take the message.
type Rejected struct{ Reason string }

func (r *Rejected) Error() string { return r.Reason }

// CheckAddress returns what is wrong with an address that a mail is sent to or from, or "". It admits nothing that could
// end a header or a command: plain ASCII with one @ and no spaces. A domain in other letters has to be written as
// xn--….
func CheckAddress(address string) string {
	local, domain, _ := strings.Cut(address, "@")
	if len(address) > 254 || local == "" || domain == "" || strings.Contains(domain, "@") {
		return "is not an e-mail address; write one such as name@example.com"
	}
	for _, c := range []byte(address) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`<>()[]\,;:"`, c) >= 0 {
			return "is not an e-mail address in plain ASCII; write one such as name@example.com, and a domain with other letters as xn--…"
		}
	}
	return ""
}

// Mask leaves of an address what its owner recognises: the first letter and the domain.
func Mask(address string) string {
	_, size := utf8.DecodeRuneInString(address)
	at := strings.LastIndexByte(address, '@')
	if at < size {
		return "…"
	}
	return address[:size] + "…" + address[at:]
}
