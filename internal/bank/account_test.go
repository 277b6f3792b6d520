package bank_test

import (
	"fmt"
	"strings"
	"testing"

	"bursar/internal/bank"
)

func TestParseNumber(t *testing.T) {
	tests := []struct {
		text, want string
		wantOK     bool
	}{
		{"123456789", "123456789", true},
		{"000123456789", "000123456789", true},
		{"123456789012345678", "123456789012345678", true},
		{"000000001", "000000001", true},
		{"000000000", "", false},
		{"000000000000000000", "", false},
		{"5010 0123 456789", "", false},
		{"5010-0123-456789", "", false},
		{" 50100123456789", "", false},
		{"50100123456789 ", "", false},
		{"12345678", "", false},
		{"1234567890123456789", "", false},
		{"12345678A", "", false},
		{"१२३४५६७८९", "", false},
		{"123456789\n", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		got, err := bank.ParseNumber(tt.text)
		if got.Reveal() != tt.want || (err == nil) != tt.wantOK {
			t.Errorf("ParseNumber(%q) = %q, %v; want %q, ok %v", tt.text, got.Reveal(), err, tt.want, tt.wantOK)
		}
	}
}

func TestParseIFSC(t *testing.T) {
	tests := []struct {
		text   string
		want   bank.IFSC
		wantOK bool
	}{
		{"HDFC0000053", "HDFC0000053", true},
		{"hdfc0cacub9", "HDFC0CACUB9", true},
		{" HDFC0000053", "", false},
		{"HDFC0000053 ", "", false},
		{"HDFC 0000053", "", false},
		{"ſbin0000001", "", false}, // the long s is S in capitals
		{"HDFC1000053", "", false},
		{"HDFCO000053", "", false},
		{"HDF00000053", "", false},
		{"HDFC000005", "", false},
		{"HDFC00000531", "", false},
		{"HDFC0000053\nX", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		got, err := bank.ParseIFSC(tt.text)
		if got != tt.want || (err == nil) != tt.wantOK {
			t.Errorf("ParseIFSC(%q) = %q, %v; want %q, ok %v", tt.text, got, err, tt.want, tt.wantOK)
		}
	}
}

func TestNumbersPrintMasked(t *testing.T) {
	number := mustNumber(t, "50100123456789")
	registration := bank.Registration{Number: number}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, printed := range []string{fmt.Sprintf(verb, number), fmt.Sprintf(verb, registration), fmt.Sprintf(verb, &registration)} {
			if strings.Contains(printed, "5010012345") || strings.Contains(printed, fmt.Sprintf("%x", "5010012345")) {
				t.Errorf("%s prints the number: %s", verb, printed)
			}
		}
	}
	if got := number.String(); got != "****6789" {
		t.Errorf("String() = %q, want ****6789", got)
	}
	if got := bank.Mask(""); got != "" {
		t.Errorf("Mask of nothing = %q, want nothing", got)
	}
}

func mustNumber(t testing.TB, s string) bank.Number {
	t.Helper()
	n, err := bank.ParseNumber(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// An account's number is the one that it is shown by. One that was lost or deleted has none.
func TestCheckNumber(t *testing.T) {
	h := newFixture(t)
	h.register(h.ashas())
	a := h.account()
	shown, lost, deleted := a, a, a
	shown.Last4 = "0000"
	lost.EncryptedNumber = ""
	deleted.EncryptedNumber, deleted.Status = "", bank.StatusRejected
	for name, tt := range map[string]struct {
		account bank.Account
		ok      bool
	}{"as registered": {a, true}, "shown as another": {shown, false}, "lost": {lost, false}, "deleted": {deleted, true}} {
		if err := tt.account.CheckNumber(h.keys); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
