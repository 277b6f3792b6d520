package sandbox_test

import (
	"net/http"
	"testing"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
)

func (w *fixture) statement() []razorpayx.Transaction {
	w.t.Helper()
	var page razorpayx.Collection[razorpayx.Transaction]
	if status := w.call("GET", "/v1/transactions?account_number="+ownAccount, "", nil, &page); status != http.StatusOK {
		w.t.Fatalf("the statement was answered with %d", status)
	}
	return page.Items
}

func TestStatement_ChangedAndRestored(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("4321", 60050)
	made := w.submit(reference, body)
	w.reaches(made.GatewayID, gateway.Paid)
	opened := len(w.statement())
	change := func(body string) {
		t.Helper()
		w.control("POST", "/control/statement", body, nil)
	}

	change(`{"change":"alter","line":"` + reference + `","debit":7,"currency":"USD"}`)
	if l := w.statement()[0]; l.Debit != 7 || l.Amount != 7 || l.Currency != "USD" || l.Source.ID != made.GatewayID {
		t.Errorf("altered, the line is %+v", l)
	}
	change(`{"change":"drop","line":"` + made.GatewayID + `"}`)
	if n := len(w.statement()); n != opened-1 {
		t.Errorf("with one dropped there are %d lines, want %d", n, opened-1)
	}
	w.control("DELETE", "/control/statement", "", nil)
	if l := w.statement(); len(l) != opened || l[0].Debit != 60050+590 || l[0].Currency != "INR" {
		t.Errorf("told right again there are %d lines, the newest %+v", len(l), l[0])
	}

	// Money that moved stays moved, and its balances lead from line to line.
	change(`{"change":"double","line":"` + reference + `"}`)
	change(`{"change":"add","line":"` + reference + `","credit":60640,"entity":"reversal"}`)
	w.control("DELETE", "/control/statement", "", nil)
	l := w.statement()
	if len(l) != opened+2 || l[0].Source.PayoutID != made.GatewayID || l[0].Source.Entity != "reversal" || l[1].Source.ID != made.GatewayID {
		t.Errorf("added were %+v and %+v", l[0], l[1])
	}
	for i := range len(l) - 1 {
		if l[i].Balance+l[i].Debit-l[i].Credit != l[i+1].Balance {
			t.Errorf("the balance goes from %d to %d over %+v", l[i+1].Balance, l[i].Balance, l[i])
		}
	}
}

func TestStatement_InvalidChange_Refused(t *testing.T) {
	w := open(t, nil)
	before := len(w.statement())
	for _, body := range []string{
		`{}`, `{"change":"drop"}`, `{"change":"drop","line":"txn_nonsense"}`, `{"change":"double","line":"pyt_none"}`, `{"change":"explode"}`,
		`{"change":"add","entity":"payout"}`, `{"change":"add","debit":1,"credit":1,"entity":"payout"}`, `{"change":"add","debit":5}`,
		`{"change":"add","debit":-5,"entity":"payout"}`,
	} {
		if status := w.call("POST", "/control/statement", body, nil, nil); status != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", body, status)
		}
	}
	if n := len(w.statement()); n != before {
		t.Errorf("there are %d lines, want %d", n, before)
	}
}
