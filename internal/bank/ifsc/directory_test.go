package ifsc_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bursar/internal/bank"
	"bursar/internal/bank/ifsc"
)

func TestBranch(t *testing.T) {
	tests := []struct {
		about     string
		code      bank.IFSC
		want      bank.Branch
		wantKnown bool
	}{
		{"listed", "HDFC0000053", bank.Branch{Bank: "HDFC Bank", Listed: true}, true},
		{"first of its bank", "HDFC0000001", bank.Branch{Bank: "HDFC Bank", Listed: true}, true},
		{"between two runs", "HDFC0000066", bank.Branch{Bank: "HDFC Bank"}, true},
		{"with letters", "SBIN0000BGL", bank.Branch{Bank: "State Bank of India", Listed: true}, true},
		{"with letters, not listed", "HDFC0ZZZZZZ", bank.Branch{Bank: "HDFC Bank"}, true},
		{"a code lent to another bank", "AKJB0000001", bank.Branch{Bank: "Akola Janata Commercial Co-operative Bank", Listed: true}, true},
		{"codes lent to another bank", "HDFC0CHB123", bank.Branch{Bank: "HASTI Co-operative Bank"}, true},
		{"a bank that only borrows codes", "AACX0000001", bank.Branch{Bank: "Akhand Anand Co.op Bank"}, true},
		{"unknown bank", "ZZZZ0000001", bank.Branch{}, false},
		{"before the first bank", "AAAA0000001", bank.Branch{}, false},
		{"too short", "HDFC", bank.Branch{}, false},
		{"none", "", bank.Branch{}, false},
	}
	directory := ifsc.New()
	for _, tt := range tests {
		got, known := directory.Branch(tt.code)
		if got != tt.want || known != tt.wantKnown {
			t.Errorf("%s: Branch(%s) = %+v, %v; want %+v, %v", tt.about, tt.code, got, known, tt.want, tt.wantKnown)
		}
	}
}

// The search depends on the order of lines and of the entries in them, and on their form.
func TestDataIsWellFormed(t *testing.T) {
	data, err := os.ReadFile("directory.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 600_000 {
		t.Errorf("the data has grown to %d bytes; it is part of every binary", len(data))
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[1:]
	if !slices.IsSorted(lines) {
		t.Error("the lines are not sorted")
	}
	line := regexp.MustCompile(`^[A-Z]{4}(0[A-Z0-9]{1,6})?\t[^\t ][^\t]*[^\t ]\t(\d+(-\d+)? )*(\d+(-\d+)?|[A-Z0-9]{6})?( [A-Z0-9]{6})*$`)
	for _, l := range lines {
		if !line.MatchString(l) {
			t.Errorf("malformed: %.100s", l)
		}
	}
	if len(lines) < 2000 {
		t.Errorf("only %d lines: part of the data is missing", len(lines))
	}
}

// TestBranch_FindsListedBranches looks up each branch that the data lists for five large banks.
func TestBranch_FindsListedBranches(t *testing.T) {
	data, err := os.ReadFile("directory.txt")
	if err != nil {
		t.Fatal(err)
	}
	directory := ifsc.New()
	checked := 0
	for _, bankCode := range []string{"SBIN", "HDFC", "ICIC", "KKBK", "YESB"} {
		_, rest, _ := strings.Cut(string(data), "\n"+bankCode+"\t")
		line, _, _ := strings.Cut(rest, "\n")
		_, branches, _ := strings.Cut(line, "\t")
		for entry := range strings.FieldsSeq(branches) {
			for number := range strings.SplitSeq(entry, "-") {
				code := bank.IFSC(bankCode + "0" + strings.Repeat("0", 6-len(number)) + number)
				if b, _ := directory.Branch(code); !b.Listed {
					t.Errorf("%s is in the data and is not found", code)
				}
				checked++
			}
		}
	}
	if checked < 10_000 {
		t.Errorf("checked only %d branches", checked)
	}
}
