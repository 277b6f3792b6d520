package bank_test

import (
	"fmt"
	"strings"
	"testing"

	"bursar/internal/bank"
	"bursar/internal/fault"
)

// FuzzAccount reads what a seller may enter: it is refused with the name of its field, or it is what the bank
// can use, and is never printed whole.
func FuzzAccount(f *testing.F) {
	f.Fuzz(func(t *testing.T, number, code, holder string) {
		n, err := bank.ParseNumber(number)
		switch {
		case err != nil:
			wantField(t, err, "accountNumber")
		case n.Reveal() != number || len(number) < 9 || len(number) > 18 || strings.Trim(number, "0123456789") != "":
			t.Errorf("%q is read as %q", number, n.Reveal())
		case strings.Contains(fmt.Sprintf("%v %+v %#v %s %d %x %q", n, n, n, n, n, n, n), number):
			t.Errorf("%q is printed whole", number)
		}
		ifsc, err := bank.ParseIFSC(code)
		switch again, _ := bank.ParseIFSC(string(ifsc)); {
		case err != nil:
			wantField(t, err, "ifsc")
		case again != ifsc || !strings.EqualFold(string(ifsc), code) || string(ifsc) != strings.ToUpper(code) || len(ifsc) != 11 || ifsc[4] != '0':
			t.Errorf("%q is read as %q", code, ifsc)
		}
		if problem := bank.CheckHolder(holder); problem == "" && (len(holder) < 3 || strings.ContainsAny(holder, "\x00\n\r\t\u202e")) {
			t.Errorf("%q is a holder", holder)
		}
	})
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Kind != fault.Invalid || f.Details[field] == "" || len(f.Details) != 1 {
		t.Errorf("%v does not name %s", err, field)
	}
}
