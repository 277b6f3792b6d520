package simulate

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// checkStatements gets some sellers' statements of all time, and verifies them with the public keys alone.
func (m *market) checkStatements(on *instance) {
	if _, err := on.proofs.Make(m.ctx, proof.Trust{}); err != nil {
		m.broken(statementsProve, "", "make a checkpoint: "+err.Error())
		return
	}
	keys := m.publicKeys(on)
	today := midnight(on.now())
	first, end, err := on.proofs.Period("", "")
	m.assert(statementsProve, err == nil && stored(first).Equal(stored(today.AddDate(0, 0, 1-today.Day()))) && stored(end).Equal(stored(today.AddDate(0, 0, 1))), "",
		"a statement that names no days is from %s to %s (%v)", first, end, err)
	for i, s := range m.sellers {
		if i < statementsChecked && m.violation == nil {
			m.checkStatement(on, s, keys, one(m, []proof.Format{proof.JSON, proof.CSV}))
			m.checkPeriod(on, s, keys)
		}
	}
}

// publicKeys are those that statements are verified with.
func (m *market) publicKeys(on *instance) proof.Keys {
	jwks, err := on.proofs.JWKS(m.ctx)
	keys, err2 := proof.ParseKeys(jwks)
	m.assert(statementsProve, errors.Join(err, err2) == nil, "", "the public keys: %v, %v", err, err2)
	return keys
}

// statementsChecked is how many sellers' statements are checked.
const statementsChecked = 10

func (m *market) checkStatement(on *instance, s *seller, keys proof.Keys, format proof.Format) {
	from, to := m.start.AddDate(0, 0, -1), m.clock().AddDate(0, 0, 1)
	if m.chance(500) { // or of a part
		from = m.start.Add(m.between(0, m.now))
	}
	statement, err := on.proofs.Statement(m.ctx, s.id, from, to)
	if errors.Is(err, proof.ErrNoJournal) && m.model.journal(s.id).Number == 0 {
		return
	}
	if !m.assert(statementsProve, err == nil, s.id, "the statement of %s: %v", s.id, err) {
		return
	}
	text, v := m.verifies(s, statement, format, keys)
	if m.violation != nil {
		return
	}
	m.assert(statementsProve, v.IsNewest, s.id, "the statement of %s up to now does not hold the newest entry", s.id)
	row := m.model.row(s.id)
	m.assert(statementsProve, v.Closing == row.Balances(), s.id, "the statement of %s ends with %+v, and there is %+v", s.id, v.Closing, row.Balances())
	m.checkForged(s, v, text, keys)
}

// checkPeriod gets statements of one of a seller's entries up to the newest, of the moment after that one, of its day, and of days before
// and after all entries. The statement of a day is named after it.
func (m *market) checkPeriod(on *instance, s *seller, keys proof.Keys) {
	const most = 10_000
	list, err := on.db.Entries(m.ctx, s.id, 0, most)
	if !m.assert(readsAgree, err == nil, s.id, "%s can't read their entries: %v", s.id, err) || len(list) == 0 {
		return
	}
	middle, day := list[len(list)/2].At, midnight(list[len(list)/2].At)
	from, to, err := on.proofs.Period(day.Format(time.DateOnly), day.Format(time.DateOnly))
	m.assert(statementsProve, err == nil && from.Equal(day) && to.Equal(day.AddDate(0, 0, 1)), s.id, "the statement of %s for %s is from %s to %s: %v", s.id, day.Format(time.DateOnly), from, to, err)
	ofDay := m.checkStatementOf(on, list, from, to)
	date := day.Format(time.DateOnly)
	m.assert(statementsProve, m.violation != nil || ofDay.FileName() == "statement-"+date+"-to-"+date, s.id, "the statement of %s for %s is called %s", s.id, date, ofDay.FileName())
	m.checkStatementOf(on, list, middle, list[0].At)
	m.checkStatementOf(on, list, middle.Add(time.Microsecond), middle.Add(2*time.Microsecond))
	byTime := func(a, b ledger.Entry) int { return a.At.Compare(b.At) }
	for _, day := range []time.Time{slices.MinFunc(list, byTime).At.AddDate(0, 0, -2), slices.MaxFunc(list, byTime).At.AddDate(0, 0, 1)} {
		if empty := m.checkStatementOf(on, list, day, day.AddDate(0, 0, 1)); m.violation == nil {
			m.verifies(s, empty, proof.CSV, keys)
		}
	}
}

// verifies writes a statement and verifies it with the public keys alone. It returns what was written, and what that proves.
func (m *market) verifies(s *seller, statement *proof.Statement, format proof.Format, keys proof.Keys) ([]byte, proof.Verified) {
	var text bytes.Buffer
	if err := statement.Write(&text, format); err != nil {
		m.broken(statementsProve, s.id, "write the statement of "+s.id+": "+err.Error())
		return nil, proof.Verified{}
	}
	m.keepSecret(text.String())
	v, err := proof.Verify(bytes.NewReader(text.Bytes()), keys)
	m.assert(statementsProve, err == nil && len(v.Problems) == 0 && v.Trusted && v.Seller == s.id, s.id,
		"the statement of %s does not verify: %v, %v (trusted: %t)", s.id, err, v.Problems, v.Trusted)
	return text.Bytes(), v
}

// checkStatementOf gets a statement of a period, which has the entries from the first one of its time to before the first one after it, and the
// balances around them. The list has all entries of the seller, the newest first; clocks that are off mix their times.
func (m *market) checkStatementOf(on *instance, list []ledger.Entry, from, to time.Time) *proof.Statement {
	seller := list[0].Owner
	notBefore := func(at time.Time) int64 { // the first entry, or the number of the next one that comes
		number := list[0].Number + 1
		for _, e := range list {
			if !e.At.Before(at) {
				number = e.Number
			}
		}
		return number
	}
	first := notBefore(from)
	last := max(notBefore(to), first) - 1
	after := func(number int64) (b ledger.Balances) {
		if number > 0 {
			b = list[list[0].Number-number].After.Balances()
		}
		return b
	}
	statement, err := on.proofs.Statement(m.ctx, seller, from, to)
	if m.assert(statementsProve, err == nil, seller, "the statement of %s: %v", seller, err) {
		m.assert(statementsProve, statement.Entries == last-first+1, seller, "the statement of %s from %s to %s has %d entries, and should have those from number %d to %d",
			seller, from, to, statement.Entries, first, last)
		m.assert(statementsProve, statement.Opening == after(first-1) && statement.Closing == after(last), seller, "the statement of %s from %s to %s opens with %+v and closes with %+v, and should with %+v and %+v",
			seller, from, to, statement.Opening, statement.Closing, after(first-1), after(last))
	}
	return statement
}

// checkForged alters a digit of a statement, which must then not verify.
func (m *market) checkForged(s *seller, was proof.Verified, text []byte, keys proof.Keys) {
	digits := slices.Collect(func(yield func(int) bool) {
		for i, c := range text {
			if c >= '0' && c <= '9' && !yield(i) {
				return
			}
		}
	})
	forged := bytes.Clone(text)
	at := digits[m.dice.Uint64()%uint64(len(digits))] // one draw, however many digits the hashes have
	forged[at] = '0' + (forged[at]-'0'+1+byte(m.dice.IntN(9)))%10
	v, err := proof.Verify(bytes.NewReader(forged), keys)
	otherPeriod := !v.From.Equal(was.From) || !v.To.Equal(was.To) // in which the same was recorded
	m.assert(statementsProve, err != nil || len(v.Problems) > 0 || !v.Trusted || otherPeriod, s.id, "a statement of %s in which byte %d was changed verifies", s.id, at)
}
