package ledger

import "strings"

// GatewayAgrees is the name of the invariant that is about gateways, and not about what is stored.
const GatewayAgrees = "gateway-agrees"

// Finding is one invariant after a check of the whole ledger: what was promised, how much was looked
// at, and where it does not hold.
type Finding struct {
	// Name is the invariant's stable name, such as journals-are-whole.
	Name string
	// Promise is the invariant in a sentence.
	Promise string
	// Violations names each place where it does not hold; none means that it holds. At most
	// MaxViolations are listed.
	Violations []Violation
}

// Violation is one place where an invariant does not hold.
type Violation struct {
	// Seller is whose records are concerned; empty where no seller owns them.
	Seller string
	// Subject is the payout ("pyt_…"), the bank account ("bka_…"), the sale ("sale:ID") or another id that it is about; empty
	// for the seller's balance and journal.
	Subject string
	// Problem says what is wrong, and Next what to do about it: sentences without a full stop.
	Problem, Next string
}

func (v Violation) String() string {
	var line strings.Builder
	if v.Seller != "" {
		line.WriteString("seller " + v.Seller)
	}
	if v.Seller != "" && v.Subject != "" {
		line.WriteString(", ")
	}
	if v.Subject != "" {
		line.WriteString(SubjectName(v.Subject))
	}
	if line.Len() > 0 {
		line.WriteString(": ")
	}
	line.WriteString(v.Problem + ".")
	if v.Next != "" {
		line.WriteString(" " + v.Next + ".")
	}
	return line.String()
}

// SubjectName is what an entry is about, for people: "payout pyt_…", "sale order-9".
func SubjectName(subject string) string {
	for _, named := range []string{"sale", "adjustment"} {
		if id, is := strings.CutPrefix(subject, named+":"); is {
			return named + " " + id
		}
	}
	switch {
	case strings.HasPrefix(subject, "pyt_"):
		return "payout " + subject
	case strings.HasPrefix(subject, "bka_"):
		return "bank account " + subject
	default:
		return subject
	}
}

// Lines are the violations, a line for each.
func (f Finding) Lines() []string {
	lines := make([]string, len(f.Violations))
	for i, v := range f.Violations {
		lines[i] = v.String()
	}
	return lines
}

// MaxViolations bounds how many violations of one invariant are listed.
const MaxViolations = 20

// IsFull reports whether as many violations are listed as can be, so that there may be more.
func (f Finding) IsFull() bool { return len(f.Violations) >= MaxViolations }

// Report is the outcome of an audit, taken from one consistent view of the ledger.
type Report struct {
	Sellers  int64
	Entries  int64
	Payouts  int64
	Sales    int64
	Findings []Finding
	// MACsChecked reports whether MACs, signatures and account numbers were checked, which takes the key set.
	MACsChecked bool
}

// Clean reports whether every invariant holds.
func (r Report) Clean() bool {
	for _, f := range r.Findings {
		if len(f.Violations) > 0 {
			return false
		}
	}
	return true
}
