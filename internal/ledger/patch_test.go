package ledger_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

type state string

// row is a projection with a field of each kind.
type row struct {
	ID     string       `journal:"id"`
	State  state        `journal:"state"`
	Amount money.Amount `journal:"amount"`
	Tries  int          `journal:"tries"`
	Paid   bool         `journal:"paid"`
	SentAt time.Time    `journal:"sent_at"`
	Order  string       `journal:"order,hash"`
	DueAt  time.Time    // not recorded, like the next two
	Note   string
	Leased bool
}

// recorded is the row as entries tell it: without what they do not record, and with a hash for the order.
func (r row) recorded() row {
	r.DueAt, r.Note, r.Leased = time.Time{}, "", false
	if r.Order != "" {
		r.Order = "sha256:" + string(ledger.HashOf(r.Order))
	}
	return r
}

func anyRow(t *rapid.T, name string) row {
	text := rapid.SampledFrom([]string{"", "a", `"`, "größer & <kleiner>\n", "1", "sha256:a"})
	when := rapid.Custom(func(t *rapid.T) time.Time {
		micros := rapid.SampledFrom([]int64{0, 1, -1, 1793610002000001}).Draw(t, "at")
		if micros == 0 {
			return time.Time{}
		}
		return time.UnixMicro(micros).UTC()
	})
	return rapid.Custom(func(t *rapid.T) row {
		return row{
			ID: text.Draw(t, "id"), State: state(text.Draw(t, "state")),
			Amount: money.Amount(rapid.SampledFrom([]int64{0, 1, -1, 1 << 62}).Draw(t, "amount")), Tries: rapid.IntRange(-1, 2).Draw(t, "tries"),
			Paid: rapid.Bool().Draw(t, "paid"), SentAt: when.Draw(t, "sent at"), Order: text.Draw(t, "order"),
			DueAt: when.Draw(t, "due at"), Note: text.Draw(t, "note"), Leased: rapid.Bool().Draw(t, "leased"),
		}
	}).Draw(t, name)
}

func data(t interface{ Fatal(...any) }, text string, err error) string {
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestFold_RoundTrip takes a row through random changes, and folds their data to the same row.
func TestFold_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now row
		var entries []ledger.Entry
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			next := anyRow(t, "next")
			text, err := ledger.Patch(now, next)
			entries = append(entries, ledger.Entry{Posting: ledger.Posting{Type: ledger.PayoutUpdated, Data: data(t, text, err)}})
			now = next
		}
		folded, err := ledger.Fold(row{}, entries)
		if err != nil || folded != now.recorded() {
			t.Fatalf("folded is %+v, %v; want %+v", folded, err, now.recorded())
		}
		if mismatch, differs := ledger.Compare(folded, now); differs {
			t.Fatalf("what was folded differs from the row: %+v", mismatch)
		}
		if now.Order = folded.Order; now.Order == "" {
			return
		}
		want := ledger.Mismatch{Field: "order", Row: folded.Order, Journal: folded.Order}
		if mismatch, differs := ledger.Compare(folded, now); !differs || mismatch != want {
			t.Fatalf("a text that looks like its hash is %+v, want %+v", mismatch, want)
		}
	})
}

// TestChange_TellsWhatDiffers holds the data against each field.
func TestChange_TellsWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := anyRow(t, "from"), anyRow(t, "to")
		text, err := ledger.Patch(from, to)
		var fields map[string]any
		if err := json.Unmarshal([]byte(data(t, text, err)), &fields); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := map[string]bool{
			"id": from.ID != to.ID, "state": from.State != to.State, "amount": from.Amount != to.Amount, "tries": from.Tries != to.Tries,
			"paid": from.Paid != to.Paid, "sent_at": from.SentAt != to.SentAt, "order": from.Order != to.Order,
		}
		some := false
		for name, isThere := range want {
			if _, is := fields[name]; is != isThere {
				t.Fatalf("from %+v to %+v is told as %s, which tells %s: %t", from, to, text, name, is)
			}
			some = some || isThere
			delete(fields, name)
		}
		if salt, _ := fields["salt"].(string); len(fields) != 1 || len(salt) < 12 {
			t.Fatalf("beside the fields %s tells %v", text, fields)
		}
		if field, differs := ledger.Differs(from, to); differs != some || some != want[field] {
			t.Fatalf("%+v and %+v differ in %q", from, to, field)
		}
		kept := from
		kept.Order = from.recorded().Order
		if err := ledger.Apply(text, &kept); err != nil || kept.DueAt != from.DueAt || kept.Note != from.Note || kept.Leased != from.Leased {
			t.Fatalf("what is not recorded was changed: %+v, %v", kept, err)
		}
		if _, differs := ledger.Compare(kept, to); differs {
			t.Fatalf("applied to %+v, %s gives %+v", from, text, kept)
		}
	})
}

// TestChange_Salt differs each time, so that data can't be guessed from its digest.
func TestChange_Salt(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		text, err := ledger.Facts()
		seen[data(t, text, err)] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 entries about nothing have %d different data", len(seen))
	}
}

// TestDiffers_NamesTheField changes one field at a time.
func TestDiffers_NamesTheField(t *testing.T) {
	from := row{ID: "a", State: "new", Amount: 1, Tries: 1, SentAt: time.UnixMicro(5).UTC(), Order: "{}"}
	for field, change := range map[string]func(*row){
		"id":      func(r *row) { r.ID = "" },
		"state":   func(r *row) { r.State = "paid" },
		"amount":  func(r *row) { r.Amount = 0 },
		"tries":   func(r *row) { r.Tries++ },
		"paid":    func(r *row) { r.Paid = true },
		"sent_at": func(r *row) { r.SentAt = time.Time{} },
		"order":   func(r *row) { r.Order = "{ }" },
		"":        func(r *row) { r.DueAt, r.Note, r.Leased = time.UnixMicro(1), "x", true },
	} {
		to := from
		change(&to)
		if got, differs := ledger.Differs(from, to); got != field || differs != (field != "") {
			t.Errorf("with another %s, two rows differ in %q", field, got)
		}
		text, err := ledger.Patch(from, to)
		folded := from
		folded.Order = from.recorded().Order
		if err := ledger.Apply(data(t, text, err), &folded); err != nil {
			t.Error(err)
		}
		if got, differs := ledger.Compare(folded, to); differs {
			t.Errorf("with another %s, what was folded differs: %v", field, got)
		}
		if got, differs := ledger.Compare(folded, from); differs != (field != "") || got.Field != field {
			t.Errorf("%s applies to %s", text, field)
		}
	}
	if got, differs := ledger.Differs(row{ID: "a", Paid: true}, row{ID: "b"}); got != "id" || !differs {
		t.Errorf("two rows that differ in two fields differ in %q first", got)
	}
}

// TestChange_Hash tells the hash of a text and not the text.
func TestChange_Hash(t *testing.T) {
	const secret = `{"account":"kept out of the journal"}`
	text, err := ledger.Patch(row{}, row{Order: secret})
	want := `"order":"sha256:` + string(ledger.HashOf(secret)) + `"`
	if data(t, text, err); strings.Contains(text, "kept out") || !strings.Contains(text, want) {
		t.Errorf("the data is %s, want %s", text, want)
	}
	var folded row
	if err := ledger.Apply(text, &folded); err != nil || folded.Order != "sha256:"+string(ledger.HashOf(secret)) {
		t.Errorf("folded is %+v, %v", folded, err)
	}
	for order, same := range map[string]bool{secret: true, secret + " ": false, "": false, folded.Order: false} {
		if _, differs := ledger.Compare(folded, row{Order: order}); differs == same {
			t.Errorf("the order %q is the one that was told: %t", order, !differs)
		}
	}
	text, err = ledger.Patch(row{Order: secret}, row{})
	if data(t, text, err); !strings.Contains(text, `"order":""`) {
		t.Errorf("no order is told as %s", text)
	}
}

// TestChange_Time tells microseconds since 1970, and 0 for none.
func TestChange_Time(t *testing.T) {
	sent := row{SentAt: time.Date(2026, 11, 20, 15, 0, 0, 123_456_789, time.FixedZone("", 19800))}
	for want, change := range map[string][2]row{
		`,"sent_at":1795167000123456}`: {{}, sent},
		`,"sent_at":0}`:                {sent, {}},
	} {
		text, err := ledger.Patch(change[0], change[1])
		if data(t, text, err); !strings.HasSuffix(text, want) {
			t.Errorf("the data is %s, want %s", text, want)
		}
		var folded row
		if err := ledger.Apply(text, &folded); err != nil || folded.SentAt != change[1].SentAt.UTC().Truncate(time.Microsecond) {
			t.Errorf("%s is read as %s, %v", text, folded.SentAt, err)
		}
	}
}

// TestFacts_AreNoPartOfTheRow tells more than the row has.
func TestFacts_AreNoPartOfTheRow(t *testing.T) {
	text, err := ledger.Patch(row{}, row{Amount: 5}, "reason", `say "no"`, "details", map[string]int{"n": 1})
	var fields struct {
		Amount  int
		Reason  string
		Details map[string]int
	}
	if err := json.Unmarshal([]byte(data(t, text, err)), &fields); err != nil || fields.Amount != 5 || fields.Reason != `say "no"` || fields.Details["n"] != 1 {
		t.Errorf("%s is read as %+v, %v", text, fields, err)
	}
	folded := row{Note: "as it was"}
	if err := ledger.Apply(text, &folded); err != nil || folded != (row{Amount: 5, Note: "as it was"}) {
		t.Errorf("applied is %+v, %v", folded, err)
	}
	if _, err := ledger.Facts("what", make(chan int)); err == nil {
		t.Error("what can't be written was written")
	}
	text, err = ledger.Facts("note", "x")
	if data(t, text, err); !strings.HasSuffix(text, `,"note":"x"}`) || !json.Valid([]byte(text)) {
		t.Errorf("facts are %s", text)
	}
}

func TestFold_DecisionsAndRepairs(t *testing.T) {
	entry := func(t ledger.Type, state string) ledger.Entry {
		return ledger.Entry{Posting: ledger.Posting{Owner: "usr_a", Type: t, Data: `{"state":"` + state + `"}`}, Number: 7}
	}
	folded, err := ledger.Fold(row{}, []ledger.Entry{
		entry(ledger.PayoutRequested, "requested"), entry(ledger.PayoutReview, "review"),
		entry(ledger.AdminDecided, "decided"), entry(ledger.Repaired, "repaired"),
	})
	if err != nil || folded.State != "review" {
		t.Errorf("folded is %+v, %v", folded, err)
	}
	if _, err := ledger.Fold(row{}, []ledger.Entry{entry(ledger.PayoutReview, `"`)}); err == nil || !strings.Contains(err.Error(), "entry 7 of usr_a") {
		t.Errorf("an entry that can't be read: %v", err)
	}
}

func TestApply_Unreadable(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{``, "read an entry's data"},
		{`[]`, "read an entry's data"},
		{`{"amount":1} x`, "read an entry's data"},
		{`{"amount":"1"}`, "read amount"},
		{`{"amount":1.5}`, "read amount"},
		{`{"paid":1}`, "read paid"},
		{`{"sent_at":"2026-11-02"}`, "read sent_at"},
		{`{"state":5}`, "read state"},
		{`{"order":{}}`, "read order"},
	} {
		var r row
		if err := ledger.Apply(tt.data, &r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s gives %+v, %v", tt.data, r, err)
		}
	}
}
