package store

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// What an operator does about a violation. Raw quotes are left to SQL: a test asks that each such text is run.
const (
	runRepair = "Run \"bursar repair\": it shows what it would change"
	// Then nothing tells whether the last entries were deleted too.
	unlessRowsDiffer = ". If other rows of this seller were changed too, restore the journal from a backup (docs/tampering.md)"
	restoreJournal   = "Restore the journal from a backup (docs/tampering.md)"
	// What was kept elsewhere tells whether the journals are what they were.
	restoreCheckpoints = "Restore the checkpoints from a backup, and compare with what was kept elsewhere: \"bursar audit --kept\""
	lookForPayout      = "Cancel it if it was not sent; otherwise find out who was paid, and who changed the database"
	lookInInbox        = "Look at it in the admin's inbox and decide there"
)

// words says for people what a check has found.
type words struct {
	// currency is what the datastore counts; its zero value where that was not set yet.
	currency money.Currency
}

// amount is in major units.
func (w words) amount(a money.Amount) string {
	if w.currency == (money.Currency{}) {
		return fmt.Sprintf("%d minor units", a)
	}
	return w.currency.FormatFixed(a) + " " + w.currency.Code()
}

// problem says what an error of a check means, without the subject that it is about.
func (w words) problem(subject string, err error) string {
	if m, isMismatch := errors.AsType[ledger.Mismatch](err); isMismatch {
		return w.mismatch(m)
	}
	if cause := errors.Unwrap(err); cause != nil && errors.Is(err, ledger.ErrTampered) {
		err = cause // the callers' messages are for sellers
	}
	return strings.TrimPrefix(err.Error(), ledger.SubjectName(subject)+": ")
}

func (w words) mismatch(m ledger.Mismatch) string {
	field := spaced(m.Field)
	is, must := w.value(m.Row), w.value(m.Journal)
	if is == "" || must == "" || is == must {
		return fmt.Sprintf("the %s is not what the journal says", field)
	}
	return fmt.Sprintf("the %s is %s, and the journal says %s", field, is, must)
}

// value is a field's value, or "" for a text that may be personal.
func (w words) value(value any) string {
	v := reflect.ValueOf(value)
	switch is := value.(type) {
	case money.Amount:
		return w.amount(is)
	case string:
		return ""
	case time.Time:
		if is.IsZero() {
			return "not set"
		}
		return is.Format(time.RFC3339Nano)
	}
	if v.Kind() == reflect.String && v.String() == "" {
		return "not set"
	}
	return fmt.Sprint(value)
}

// spaced writes a name such as bankAccount in words.
func spaced(name string) string {
	var text strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			text.WriteByte(' ')
		}
		text.WriteRune(unicode.ToLower(c))
	}
	return text.String()
}

// balance says in what a row of totals is not what its journal leads to.
func (w words) balance(row, journal ledger.Head) string {
	if row.Number != journal.Number {
		return fmt.Sprintf("the balance is that after entry %d, and the journal ends with entry %d", row.Number, journal.Number)
	}
	for _, total := range []struct {
		name     string
		is, must money.Amount
	}{
		{"pending", row.Pending, journal.Pending},
		{"available", row.Available, journal.Available},
		{"in transit", row.InTransit, journal.InTransit},
		{"earned", row.Earned, journal.Earned},
		{"withdrawn", row.Withdrawn, journal.Withdrawn},
	} {
		if total.is != total.must {
			return fmt.Sprintf("the balance has %s %s, and the journal leads to %s", w.amount(total.is), total.name, w.amount(total.must))
		}
	}
	if row.Counts != journal.Counts {
		return "the balance counts other sales or payouts than the journal has"
	}
	if row.HoldUntil != journal.HoldUntil {
		return "the balance has another hold on payouts than the journal leads to"
	}
	if row.Frozen != journal.Frozen {
		return "the balance says otherwise than the journal whether payouts are frozen"
	}
	return "the balance does not have the hash and the MAC of the journal's last entry"
}
