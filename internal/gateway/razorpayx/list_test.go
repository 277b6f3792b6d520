package razorpayx_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
)

// pages reads a list to its end, and fails if it has none.
func pages(t *testing.T, list func(gateway.Cursor) (gateway.TransferPage, error)) (n int, err error) {
	t.Helper()
	after := gateway.Cursor("")
	for range 50 {
		page, err := list(after)
		n += len(page.Transfers)
		if err != nil || page.Next == "" {
			return n, err
		}
		after = page.Next
	}
	t.Fatal("the list does not come to an end")
	return 0, nil
}

func someone(from, to int) string {
	items := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		items = append(items, fmt.Sprintf(`{"id":"pout_%014d","status":"reversed","amount":100}`, i))
	}
	return `{"entity":"collection","items":[` + strings.Join(items, ",") + `]}`
}

// TestTransfers_WithoutPages has gateways that give all that they have whatever is to be passed over.
func TestTransfers_WithoutPages(t *testing.T) {
	for size, wantErr := range map[int]bool{0: false, 2: false, 99: false, 100: true, 150: true} {
		c := newClient(t, serving(t, saying(http.StatusOK, someone(0, size))), nil)
		for name, list := range map[string]func(gateway.Cursor) (gateway.TransferPage, error){
			"transfers": func(after gateway.Cursor) (gateway.TransferPage, error) {
				return c.Transfers(t.Context(), time.Unix(0, 0), after)
			},
			"reversed": func(after gateway.Cursor) (gateway.TransferPage, error) {
				return c.Reversed(t.Context(), time.Unix(0, 0), after)
			},
		} {
			if n, err := pages(t, list); (err != nil) != wantErr || n < min(size, 100) {
				t.Errorf("%d %s: listed %d, %v; want an error %t", size, name, n, err, wantErr)
			}
		}
	}
}

// TestTransfers_PagePushedOn has as many transfers made as a page holds, between two pages: the same page comes again.
func TestTransfers_PagePushedOn(t *testing.T) {
	made := 0
	c := newClient(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		skip, _ := strconv.Atoi(r.URL.Query().Get("skip"))
		from := min(max(skip-made, 0), 250)
		saying(http.StatusOK, someone(from, min(from+100, 250)))(w, r)
		if skip == 0 {
			made = 100 // which are listed before those that were there
		}
	}), nil)
	n, err := pages(t, func(after gateway.Cursor) (gateway.TransferPage, error) {
		return c.Transfers(t.Context(), time.Unix(0, 0), after)
	})
	if want := 100 + 250; err != nil || n != want {
		t.Errorf("listed %d, %v; want %d, a page of them twice", n, err, want)
	}
}

func TestCursors(t *testing.T) {
	c := newClient(t, serving(t, saying(http.StatusOK, someone(0, 1))), nil)
	for _, cursor := range []gateway.Cursor{"x", "1", "-1.", ".", "9999999999999999999."} {
		if _, err := c.Transfers(t.Context(), time.Unix(0, 0), cursor); err == nil {
			t.Errorf("%q was taken", cursor)
		}
		if _, err := c.Lines(t.Context(), time.Unix(0, 0), time.Unix(1, 0), cursor); err == nil {
			t.Errorf("%q was taken", cursor)
		}
	}
}

// TestLinesAreClassified puts the vendor's words in neutral ones.
func TestLinesAreClassified(t *testing.T) {
	for source, want := range map[string]gateway.LineKind{
		`{"id":"pout_1","entity":"payout"}`:                     gateway.LinePayout,
		`{"id":"x","entity":"payout"}`:                          gateway.LinePayout,
		`{"id":"x","notes":{"payout_id":"` + reference + `"}}`:  gateway.LinePayout,
		`{"id":"rvrsl_1","entity":"reversal"}`:                  gateway.LineReversal,
		`{"id":"rvrsl_1","entity":"payout_reversal","x":"p_1"}`: gateway.LineReversal,
		`{"id":"fav_1","entity":"x"}`:                           gateway.LineVerification,
		`{"id":"x","entity":"fund_account.validation"}`:         gateway.LineVerification,
		`{"id":"bt_1","entity":"bank_transfer"}`:                gateway.LineOther,
		`null`:                                                  gateway.LineOther,
	} {
		body := `{"entity":"collection","items":[{"id":"txn_1","debit":5,"created_at":1545380000,"source":` + source + `}]}`
		got, err := newClient(t, serving(t, saying(http.StatusOK, body)), nil).Lines(t.Context(), statementFrom, statementTo, "")
		if err != nil || len(got.Lines) != 1 || got.Lines[0].Kind != want {
			t.Errorf("%s: %+v, %v; want %s", source, got.Lines, err, want)
		}
	}
}

// TestNotOffered sends nothing that the account does not offer.
func TestNotOffered(t *testing.T) {
	asked := 0
	c := newClient(t, serving(t, func(http.ResponseWriter, *http.Request) { asked++ }), func(o *razorpayx.Options) {
		o.Name, o.Capabilities = "poorer", &gateway.Capabilities{}
	})
	if c.Name() != "poorer" {
		t.Errorf("it is called %s", c.Name())
	}
	for name, call := range map[string]func() error{
		"find":      func() error { _, err := c.Find(t.Context(), reference); return err },
		"cancel":    func() error { _, err := c.Cancel(t.Context(), "pout_1"); return err },
		"transfers": func() error { _, err := c.Transfers(t.Context(), time.Unix(0, 0), ""); return err },
		"reversed":  func() error { _, err := c.Reversed(t.Context(), time.Unix(0, 0), ""); return err },
		"start":     func() error { _, err := c.StartVerification(t.Context(), verified); return err },
		"ask":       func() error { _, err := c.Verification(t.Context(), verified, "fav_1"); return err },
		"lines":     func() error { _, err := c.Lines(t.Context(), statementFrom, statementTo, ""); return err },
	} {
		if err := call(); err != gateway.ErrNotOffered { //nolint:errorlint // the very one
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked > 0 {
		t.Errorf("the gateway was asked %d times", asked)
	}
}
