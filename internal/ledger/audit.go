package ledger

// Finding is one invariant after a check of the whole book: what was promised, how much was looked
// at, and where it does not hold.
type Finding struct {
	// Name is the invariant's stable name, such as balances-match-transfers.
	Name string
	// Promise is the invariant in a sentence.
	Promise string
	// Violations names each place where it does not hold; none means that it holds. At most
	// MaxViolations are listed.
	Violations []string
}

// MaxViolations bounds how many violations of one invariant are listed.
const MaxViolations = 20

// Report is the outcome of an audit, taken from one consistent view of the book.
type Report struct {
	Sellers  int64
	Entries  int64
	Payouts  int64
	Sales    int64
	Findings []Finding
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
