package sandbox_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/gateway/sandbox"
)

func TestPayout_OrdinaryAccount_Paid(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("4321", 60050)
	if begun.Progress != gateway.InProgress || begun.UTR != "" {
		t.Errorf("began as %+v", begun)
	}
	paid := w.reaches(begun.GatewayID, gateway.Paid)
	if len(paid.UTR) != 12 {
		t.Errorf("UTR %q", paid.UTR)
	}
	w.eventually("both events", func() bool {
		return slices.Equal(w.received.about(paid.Reference), []string{"payout.initiated", "payout.processed"})
	})
	want := []sandbox.Move{{
		ReferenceID: paid.Reference, PayoutID: paid.GatewayID, Debit: 60050, Net: 60050, Count: 1,
		Status: "processed", UTR: paid.UTR, AccountLast4: "4321",
	}}
	if diff := cmp.Diff(want, w.moves(paid.Reference)); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

func TestVerificationsByAccount(t *testing.T) {
	w := open(t, nil)
	for ending, want := range map[string]gateway.Verification{
		"4321": {Outcome: gateway.OutcomeValid, RegisteredName: "Asha Rao", NameScore: -1},
		"0001": {Outcome: gateway.OutcomeInvalid, NameScore: -1},
		"0010": {Outcome: gateway.OutcomeValid, RegisteredName: "A Rao", NameScore: -1},
		"0011": {Outcome: gateway.OutcomeValid, RegisteredName: "Bharat Traders", NameScore: -1},
	} {
		account := w.beneficiary(ending)
		begun, err := w.client.StartVerification(t.Context(), account)
		if err != nil || begun.Outcome != gateway.OutcomePending {
			t.Fatalf("%+v, %v", begun, err)
		}
		got := begun
		w.eventually("the verification", func() bool {
			got, err = w.client.Verification(t.Context(), account, begun.ID)
			return err != nil || got.Outcome != gateway.OutcomePending
		})
		other := w.beneficiary("4322")
		if told, err := w.client.Verification(t.Context(), other, begun.ID); err == nil {
			t.Errorf("another account's verification says %+v", told)
		}
		got.Reason, want.ID = "", begun.ID
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", ending, err, diff)
		}
	}
	w.eventually("the events", func() bool {
		w.received.mu.Lock()
		defer w.received.mu.Unlock()
		return len(w.received.notifications) == 4
	})
	for i, notification := range w.received.notifications {
		if e := w.received.events[i]; notification.VerificationID == "" || e.Event != "fund_account.validation.completed" || e.Payload.Validation.Entity.FundAccount.ID == "" {
			t.Errorf("%+v", e)
		}
	}
}

func Test0002_Fails_MoneyReturned(t *testing.T) {
	w := open(t, nil)
	before := w.balance()
	begun := w.pay("0002", 60050)
	got := w.reaches(begun.GatewayID, gateway.Reversed)
	if got.ReasonCode != "bank_account_closed" || got.Reason == "" {
		t.Errorf("%+v", got)
	}
	w.eventually("its events", func() bool {
		return slices.Equal(w.received.about(got.Reference), []string{"payout.initiated", "payout.reversed"})
	})
	if move := w.moves(got.Reference)[0]; move.Debit != 60050 || move.Credit != 60050 || move.Net != 0 || move.Count != 1 {
		t.Errorf("%+v", move)
	}
	if after := w.balance(); after != before {
		t.Errorf("the balance was %d and is %d", before, after)
	}
}

func Test0003_Paid_ThenReturned(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0003", 60050)
	got := w.reaches(begun.GatewayID, gateway.Reversed)
	if got.UTR == "" || got.ReasonCode != "beneficiary_bank_rejected" {
		t.Errorf("%+v", got)
	}
	w.eventually("its events", func() bool {
		return slices.Equal(w.received.about(got.Reference), []string{"payout.initiated", "payout.processed", "payout.reversed"})
	})
	if move := w.moves(got.Reference)[0]; move.Net != 0 || move.Credit != 60050 {
		t.Errorf("%+v", move)
	}
}

func Test0004StaysProcessing(t *testing.T) {
	w := open(t, nil)
	stuck, other := w.pay("0004", 60050), w.pay("4321", 60050)
	w.reaches(other.GatewayID, gateway.Paid)
	if got := w.fetch(stuck.GatewayID); got.Progress != gateway.InProgress {
		t.Errorf("%+v", got)
	}
}

func Test0012_Queued_Cancellable(t *testing.T) {
	w := open(t, nil)
	queued, other := w.pay("0012", 60050), w.pay("4321", 60050)
	w.reaches(other.GatewayID, gateway.Paid)
	got := w.fetch(queued.GatewayID)
	if got.Progress != gateway.Queued || got.ReasonCode != "beneficiary_bank_down" || len(w.moves(got.Reference)) > 0 {
		t.Errorf("%+v, %+v", got, w.moves(got.Reference))
	}
	if cancelled, err := w.client.Cancel(t.Context(), queued.GatewayID); err != nil || cancelled.Progress != gateway.Cancelled {
		t.Errorf("%+v, %v", cancelled, err)
	}
}

func Test0013NeverArrives(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("0013", 60050)
	for range 2 {
		if got := w.client.Submit(t.Context(), reference, body); got.Outcome != gateway.Unclear {
			t.Errorf("%+v", got)
		}
		if _, err := w.client.Find(t.Context(), reference); !errors.Is(err, gateway.ErrUnknownTransfer) || len(w.moves(reference)) > 0 {
			t.Errorf("%v, %+v", err, w.moves(reference))
		}
	}
}

// TestStoriesAreDocumented holds the tables that users read against what the sandbox does.
func TestStoriesAreDocumented(t *testing.T) {
	for _, file := range []string{"../../api/openapi.yaml", "../../../docs/gateways.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, digits := range sandbox.StoryDigits() {
			if !strings.Contains(string(text), "| `"+digits+"` | ") {
				t.Errorf("%s says nothing about %s", file, digits)
			}
		}
		if rows := regexp.MustCompile("\\| `[0-9]{4}` \\| ").FindAllString(string(text), -1); len(rows) != len(sandbox.StoryDigits()) {
			t.Errorf("%s has %d rows for %d stories", file, len(rows), len(sandbox.StoryDigits()))
		}
	}
}

func Test0005_LosesOnlyFirstAnswer(t *testing.T) {
	w := open(t, nil)
	reference, body := w.order("0005", 60050)
	if got := w.client.Submit(t.Context(), reference, body); got.Outcome != gateway.Unclear {
		t.Fatalf("outcome %d, %s", got.Outcome, got.ReasonCode)
	}
	found, err := w.client.Find(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	if again := w.submit(reference, body); again.GatewayID != found.GatewayID {
		t.Errorf("found %s, and the repeat gave %s", found.GatewayID, again.GatewayID)
	}
	w.reaches(found.GatewayID, gateway.Paid)
	if move := w.moves(reference)[0]; move.Count != 1 || move.Debit != 60050 {
		t.Errorf("%+v", move)
	}
}

func Test0006_SendsEventsBeforeAnswer(t *testing.T) {
	w := open(t, func(o *sandbox.Options) { o.SettleAfter = time.Hour })
	reference, body := w.order("0006", 60050)
	begun := w.submit(reference, body)
	if diff := cmp.Diff([]string{"payout.initiated", "payout.processed"}, w.received.about(reference)); diff != "" {
		t.Errorf("events before the answer (-want +got):\n%s", diff)
	}
	if begun.Progress != gateway.InProgress {
		t.Errorf("the answer is %+v", begun)
	}
	w.reaches(begun.GatewayID, gateway.Paid)
}

func Test0007_DuplicatesAndReordersEvents(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0007", 60050)
	want := []string{"payout.processed", "payout.processed", "payout.initiated", "payout.initiated"}
	w.eventually("all events", func() bool { return len(w.received.about(begun.Reference)) >= len(want) })
	if diff := cmp.Diff(want, w.received.about(begun.Reference)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.received.mu.Lock()
	defer w.received.mu.Unlock()
	ids, statuses := map[string]int{}, map[string]string{}
	for i, notification := range w.received.notifications {
		ids[notification.EventID]++
		statuses[w.received.events[i].Event] = w.received.events[i].Payload.Payout.Entity.Status
	}
	if len(ids) != 2 {
		t.Errorf("copies have ids of their own: %v", ids)
	}
	if diff := cmp.Diff(map[string]string{"payout.processed": "processed", "payout.initiated": "processing"}, statuses); diff != "" {
		t.Errorf("an event says what was (-want +got):\n%s", diff)
	}
}

func Test0008TellsNothing(t *testing.T) {
	w := open(t, nil)
	silent, other := w.pay("0008", 60050), w.pay("4321", 60050)
	w.reaches(silent.GatewayID, gateway.Paid)
	w.eventually("the other's events", func() bool { return len(w.received.about(other.Reference)) == 2 })
	if got := w.received.about(silent.Reference); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

func Test0009BringsTheUTRLate(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0009", 60050)
	w.eventually("its events", func() bool {
		return slices.Equal(w.received.about(begun.Reference), []string{"payout.initiated", "payout.processed", "payout.updated"})
	})
	w.received.mu.Lock()
	defer w.received.mu.Unlock()
	for _, e := range w.received.events {
		if hasUTR := e.Payload.Payout.Entity.UTR != ""; hasUTR != (e.Event == "payout.updated") {
			t.Errorf("%s has UTR %q", e.Event, e.Payload.Payout.Entity.UTR)
		}
	}
}

func TestUTR_LengthFollowsMode(t *testing.T) {
	w := open(t, nil)
	beneficiary := w.beneficiary("4321").Beneficiary
	for mode, wantLength := range map[gateway.RailName]int{"IMPS": 12, "NEFT": 16, "RTGS": 22} {
		reference := "utr-of-" + string(mode)
		body := w.prepare(gateway.Order{Reference: reference, Beneficiary: beneficiary, Amount: 250_000_00, Rail: mode})
		got := w.reaches(w.submit(reference, body).GatewayID, gateway.Paid)
		if len(got.UTR) != wantLength {
			t.Errorf("%s: %q", mode, got.UTR)
		}
	}
}

func TestQueuedForLowBalance(t *testing.T) {
	w := open(t, nil)
	w.control("PUT", "/control/balance", `{"amount": 1000}`, nil)
	large, small, cancelled := w.pay("4321", 900_00), w.pay("4321", 100_00), w.pay("4321", 100_00)
	for _, r := range []gateway.Report{large, small, cancelled} {
		if r.Progress != gateway.Queued || r.ReasonCode != "low_balance" {
			t.Errorf("%+v", r)
		}
		if moves := w.moves(r.Reference); len(moves) != 0 {
			t.Errorf("money moved: %+v", moves)
		}
	}
	gone, err := w.client.Cancel(t.Context(), cancelled.GatewayID)
	if err != nil || gone.Progress != gateway.Cancelled {
		t.Errorf("%+v, %v", gone, err)
	}
	w.control("PUT", "/control/balance", `{"amount": 20000}`, nil)
	w.reaches(small.GatewayID, gateway.Paid)
	if got := w.fetch(large.GatewayID); got.Progress != gateway.Queued {
		t.Errorf("more was paid than there is: %+v", got)
	}
	w.control("PUT", "/control/balance", `{"amount": 1000000}`, nil)
	w.reaches(large.GatewayID, gateway.Paid)
	w.eventually("its events", func() bool {
		return slices.Equal(w.received.about(large.Reference), []string{"payout.queued", "payout.initiated", "payout.processed"})
	})
	w.eventually("the cancelled payout's one event", func() bool {
		return slices.Equal(w.received.about(cancelled.Reference), []string{"payout.queued"})
	})
}

// TestDeliver_EventsOfAPayoutInOrder has the receiver take longest for the first event.
func TestDeliver_EventsOfAPayoutInOrder(t *testing.T) {
	w := open(t, nil)
	w.received.slow = func(name string) {
		if name == "payout.initiated" {
			time.Sleep(10 * settleAfter)
		}
	}
	begun, other := w.pay("0003", 60050), w.pay("4321", 60050)
	w.eventually("all events", func() bool {
		return len(w.received.about(begun.Reference)) == 3 && len(w.received.about(other.Reference)) == 2
	})
	if diff := cmp.Diff([]string{"payout.initiated", "payout.processed", "payout.reversed"}, w.received.about(begun.Reference)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCancel_InProgress_NotCancelled(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0004", 60050)
	got, err := w.client.Cancel(t.Context(), begun.GatewayID)
	if err != nil || got.Progress != gateway.InProgress {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMovesByHand(t *testing.T) {
	w := open(t, nil)
	begun := w.pay("0004", 60050)
	for _, step := range []struct {
		body   string
		want   gateway.Progress
		wantTo int64
	}{
		{`{"status":"processed"}`, gateway.Paid, 60050},
		{`{"status":"failed","reason":"beneficiary_bank_offline"}`, gateway.Failed, 0},
		{`{"status":"reversed","reason":"beneficiary_bank_offline"}`, gateway.Reversed, 0},
	} {
		w.control("PUT", "/control/payouts/"+begun.Reference, step.body, nil)
		if got := w.fetch(begun.GatewayID); got.Progress != step.want {
			t.Errorf("%s: %+v", step.body, got)
		}
		if got := w.moves(begun.Reference)[0]; got.Net != step.wantTo || got.Debit != 60050 {
			t.Errorf("%s: %+v", step.body, got)
		}
	}
	for _, body := range []string{`{"status":"processed"}`, `{"status":"lost"}`, `{}`} {
		if status := w.call("PUT", "/control/payouts/"+begun.GatewayID, body, nil, nil); status != 400 {
			t.Errorf("%s: %d", body, status)
		}
	}
}

func TestDeliver_Refused_Retried(t *testing.T) {
	w := open(t, nil)
	w.received.refuse = 3
	begun := w.pay("4321", 60050)
	w.eventually("both events", func() bool { return len(w.received.about(begun.Reference)) == 2 })
	var d sandbox.Deliveries
	w.eventually("the records of them", func() bool {
		w.control("GET", "/control/webhooks?reference_id="+begun.Reference, "", &d)
		return d.Delivered == 2 && d.Waiting == 0
	})
	attempts := 0
	for _, e := range d.Events {
		attempts += e.Attempts
		if e.LastStatus != 200 || e.DeliveredAt == nil || e.DueAt != nil || e.PayoutID != begun.GatewayID {
			t.Errorf("%+v", e)
		}
	}
	if len(d.Events) != 2 || attempts != 5 {
		t.Errorf("%d events, %d attempts", len(d.Events), attempts)
	}
}

func TestDeliver_NoReceiver_NoEvents(t *testing.T) {
	w := open(t, func(o *sandbox.Options) { o.WebhookURL = "" })
	begun := w.pay("0006", 60050)
	w.reaches(begun.GatewayID, gateway.Paid)
	var d sandbox.Deliveries
	w.control("GET", "/control/webhooks", "", &d)
	if diff := cmp.Diff(sandbox.Deliveries{Events: []sandbox.Delivery{}}, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatement_LinesSumToBalance(t *testing.T) {
	w := open(t, nil)
	paid, failed := w.pay("4321", 60050), w.pay("0002", 40000)
	w.reaches(paid.GatewayID, gateway.Paid)
	w.reaches(failed.GatewayID, gateway.Reversed)
	var list razorpayx.Collection[razorpayx.Transaction]
	w.control("GET", "/v1/transactions?count=100&account_number="+ownAccount, "", &list)
	if list.Count != 4 { // the opening, two debits, one credit
		t.Fatalf("%d transactions", list.Count)
	}
	sum := int64(0)
	for _, line := range slices.Backward(list.Items) {
		sum += line.Credit - line.Debit
		if line.Balance != sum {
			t.Errorf("%s: balance %d, the lines make %d", line.ID, line.Balance, sum)
		}
		var alone razorpayx.Transaction
		w.control("GET", "/v1/transactions/"+line.ID, "", &alone)
		if diff := cmp.Diff(line, alone); diff != "" {
			t.Errorf("(-list +alone):\n%s", diff)
		}
	}
	if sum != w.balance() {
		t.Errorf("the statement makes %d, the balance is %d", sum, w.balance())
	}
}
