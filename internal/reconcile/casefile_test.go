package reconcile

import (
	"slices"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// TestFeeOf_ToldByAnotherLine excuses a line that returns money from telling its fee, and none that takes money.
func TestFeeOf_ToldByAnotherLine(t *testing.T) {
	taken, given := gateway.Line{ID: "taken", Debit: 1010, Fees: 10}, gateway.Line{ID: "given", Credit: 1020, Fees: 20}
	for _, tt := range []struct {
		line  gateway.Line
		right bool
	}{
		{taken, true},
		{gateway.Line{ID: "returned", Credit: 1010}, true},
		{gateway.Line{ID: "returned without the fee", Credit: 1000}, true},
		{gateway.Line{ID: "returned with more", Credit: 1011}, false},
		{gateway.Line{ID: "returned with another return's fee", Credit: 1020}, false},
		{gateway.Line{ID: "taken again", Debit: 1010}, false},
	} {
		d := caseFile{p: payout.Payout{Amount: 1000}, lines: []Line{{Line: taken}, {Line: given}, {Line: tt.line}}}
		if fee, right := d.feeOf(Line{Line: tt.line}); right != tt.right {
			t.Errorf("%s: the fee %d may be: %t, want %t", tt.line.ID, fee, right, tt.right)
		}
	}
}

// TestJudge compares a payout of 10.00 with its lines. It was ordered and paid at ten and ended at eleven, it is one o'clock now,
// and a movement may be missing for ten minutes.
func TestJudge(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	at := func(hour, minute int) time.Time { return time.Date(2026, 11, 2, hour, minute, 0, 0, time.UTC) }
	takes := func(at time.Time, amount money.Amount) Line {
		return Line{Line: gateway.Line{ID: "txn_taken", Currency: "INR", At: at, Debit: amount}, Gateway: "g"}
	}
	gives := func(at time.Time, amount money.Amount) Line {
		return Line{Line: gateway.Line{ID: "txn_given", Currency: "INR", At: at, Credit: amount}, Gateway: "g"}
	}
	but := func(l Line, change func(*Line)) Line { change(&l); return l }
	const notJudged Kind = "not judged"
	ten, eleven := at(10, 0), at(11, 0)
	paid, back := takes(ten, 1000), gives(eleven, 1000)
	late := at(12, 51) // within the ten minutes
	whole := coverage{{at(9, 50), at(13, 0)}}
	upTo := func(to time.Time) coverage { return coverage{{at(9, 0), to}} }
	since := func(from time.Time) coverage { return coverage{{from, at(13, 0)}} }
	for _, tt := range []struct {
		name  string
		state payout.State
		read  coverage
		lines []Line
		want  Kind
	}{
		{"waits, and nothing moved", payout.Waiting, whole, nil, ""},
		{"waits, and was paid", payout.Waiting, whole, []Line{paid}, LineBeforeOrder},
		{"waits, and was paid just now", payout.Waiting, whole, []Line{takes(late, 1000)}, notJudged},
		{"waits, and was paid and returned", payout.Waiting, whole, []Line{paid, back}, ""},

		{"under way, and nothing moved", payout.Submitted, whole, nil, ""},
		{"under way, and paid", payout.Submitted, whole, []Line{paid}, ""},
		{"under way, and paid just now", payout.Submitted, whole, []Line{takes(late, 1000)}, ""},
		{"under way, and returned", payout.Submitted, whole, []Line{paid, back}, ReturnedAtGateway},
		{"under way, and returned just now", payout.Submitted, whole, []Line{paid, gives(late, 1000)}, notJudged},
		{"under way, and returned twice", payout.Submitted, whole, []Line{paid, back, back}, ReturnedAtGateway},
		{"under way, and returned alone", payout.Submitted, whole, []Line{back}, AmountDiffers},
		{"under way, and returned alone just now", payout.Submitted, whole, []Line{gives(late, 1000)}, notJudged},

		{"completed, and paid", payout.Completed, whole, []Line{paid}, ""},
		{"completed, and paid just now", payout.Completed, whole, []Line{takes(late, 1000)}, ""},
		{"completed, and nothing moved", payout.Completed, whole, nil, PayoutWithoutLine},
		{"completed, and read until it may be late", payout.Completed, upTo(at(10, 10)), nil, PayoutWithoutLine},
		{"completed, and not read so far", payout.Completed, upTo(at(10, 9)), nil, notJudged},
		{"completed, and not read from before it", payout.Completed, since(at(9, 51)), nil, notJudged},
		{"completed, and the line disappeared", payout.Completed, whole, []Line{but(paid, func(l *Line) { l.Missing = true })}, PayoutWithoutLine},
		{"completed, and paid twice", payout.Completed, whole, []Line{paid, paid}, PaidTwice},
		{"completed, and paid twice just now", payout.Completed, whole, []Line{paid, takes(late, 1000)}, PaidTwice},
		{"completed, and one of two returned", payout.Completed, whole, []Line{paid, paid, back}, ""},
		{"completed, and returned", payout.Completed, whole, []Line{paid, back}, ReturnedAtGateway},
		{"completed, and returned twice", payout.Completed, whole, []Line{paid, back, back}, ReturnedAtGateway},
		{"completed, and returned just now", payout.Completed, whole, []Line{paid, gives(late, 1000)}, notJudged},
		{"completed, and returned ten minutes ago", payout.Completed, whole, []Line{paid, gives(at(12, 50), 1000)}, ReturnedAtGateway},

		{"returned, and came back", payout.Returned, whole, []Line{paid, back}, ""},
		{"returned, and came back just now", payout.Returned, whole, []Line{paid, gives(late, 1000)}, ""},
		{"returned, and did not come back", payout.Returned, whole, []Line{paid}, ReturnWithoutLine},
		{"returned, and read until it may be late", payout.Returned, upTo(at(11, 10)), []Line{paid}, ReturnWithoutLine},
		{"returned, and not read so far", payout.Returned, upTo(at(11, 9)), []Line{paid}, notJudged},
		{"returned, and not read since it was paid", payout.Returned, since(at(10, 1)), []Line{paid}, notJudged},
		{"returned, and nothing moved", payout.Returned, whole, nil, PayoutWithoutLine},
		{"returned twice", payout.Returned, whole, []Line{paid, back, back}, AmountDiffers},
		{"returned, and one of two came back", payout.Returned, whole, []Line{paid, paid, back}, ReturnWithoutLine},

		{"failed, and nothing moved", payout.Failed, whole, nil, ""},
		{"failed, and came back", payout.Failed, whole, []Line{paid, back}, ""},
		{"failed, and came back just now", payout.Failed, whole, []Line{paid, gives(late, 1000)}, ""},
		{"failed, and was paid", payout.Failed, whole, []Line{paid}, RefundedButPaid},
		{"failed, and was paid just now", payout.Failed, whole, []Line{takes(late, 1000)}, notJudged},
		{"failed, and not read so far", payout.Failed, upTo(at(11, 9)), []Line{paid}, notJudged},
		{"failed, and paid later", payout.Failed, upTo(at(11, 40)), []Line{takes(at(11, 30), 1000)}, RefundedButPaid},
		{"failed, and not read so far after it was paid later", payout.Failed, upTo(at(11, 39)), []Line{takes(at(11, 30), 1000)}, notJudged},
		{"failed, and given money alone", payout.Failed, whole, []Line{back}, AmountDiffers},
		{"failed, and given money that may have been taken before what was read", payout.Failed, since(at(10, 30)), []Line{back}, notJudged},
		{"cancelled, and was paid", payout.Cancelled, whole, []Line{paid}, RefundedButPaid},
		{"cancelled, and nothing moved", payout.Cancelled, whole, nil, ""},

		{"less was taken", payout.Completed, whole, []Line{takes(ten, 999)}, AmountDiffers},
		{"it was for another amount", payout.Completed, whole, []Line{but(paid, func(l *Line) { l.Amount = 990 })}, AmountDiffers},
		{"it was for this amount", payout.Completed, whole, []Line{but(paid, func(l *Line) { l.Amount = 1000 })}, ""},
		{"the line names the fee", payout.Completed, whole, []Line{but(takes(ten, 1010), func(l *Line) { l.Fees = 10 })}, ""},
		{"the line names no fee", payout.Completed, whole, []Line{takes(ten, 1010)}, FeeDiffers},
		{"the fee is kept", payout.Returned, whole, []Line{but(takes(ten, 1010), func(l *Line) { l.Fees = 10 }), back}, FeeDiffers},
		{"the fee comes back", payout.Returned, whole, []Line{but(takes(ten, 1010), func(l *Line) { l.Fees = 10 }), gives(eleven, 1010)}, ""},
		{"under way, and in another currency", payout.Submitted, whole, []Line{but(takes(eleven, 1000), func(l *Line) { l.Currency = "USD" })}, CurrencyDiffers},
		{"another currency", payout.Completed, whole, []Line{but(paid, func(l *Line) { l.Currency = "USD" })}, CurrencyDiffers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := caseFile{
				p: payout.Payout{
					ID: "pyt_1", Gateway: "g", Amount: 1000, State: tt.state, RequestedAt: ten, SentAt: ten, EndedAt: eleven,
				},
				gateway: "g", lines: tt.lines, read: tt.read, after: at(12, 50), grace: 10 * time.Minute, currency: inr,
			}
			if tt.state == payout.Completed || tt.state == payout.Returned {
				d.p.CompletedAt = ten
			}
			found, judged := d.judge()
			got := notJudged
			switch {
			case len(found) > 1 || len(found) > 0 && !judged:
				t.Fatalf("found are %+v, judged: %t", found, judged)
			case len(found) > 0:
				got = found[0].Kind
			case judged:
				got = ""
			}
			if got != tt.want {
				t.Fatalf("the result is %q, want %q: %+v", got, tt.want, found)
			}
			if len(found) == 0 {
				return
			}
			newest, taken := ten, money.Amount(0)
			for _, l := range tt.lines {
				if l.Missing {
					continue
				}
				newest = l.At
				if l.Currency == inr.Code() { // other money is not counted
					taken += l.Taken()
				}
			}
			if f := found[0]; !f.At.Equal(newest) || f.AtGateway != taken {
				t.Errorf("it is of %s with %d at the gateway, want %s and %d", f.At, f.AtGateway, newest, taken)
			}
		})
	}
}

// A payout through another gateway has no line in this gateway's statement. Its own gateway's statement says the rest.
func TestJudge_OtherGateway(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		line Line
		want []Kind
	}{
		"its own gateway took money":                     {Line{Line: gateway.Line{Debit: 1000, Currency: "INR"}, Gateway: "other"}, nil},
		"its own gateway took money in another currency": {Line{Line: gateway.Line{Debit: 1000, Currency: "USD"}, Gateway: "other"}, nil},
		"this gateway took money in another currency":    {Line{Line: gateway.Line{Debit: 1000, Currency: "USD"}, Gateway: "g"}, []Kind{CurrencyDiffers}},
		"this gateway took money":                        {Line{Line: gateway.Line{Debit: 1000, Currency: "INR"}, Gateway: "g"}, []Kind{LineBeforeOrder}},
		"this gateway gave money":                        {Line{Line: gateway.Line{Credit: 1000, Currency: "INR"}, Gateway: "g"}, nil},
	} {
		d := caseFile{p: payout.Payout{Gateway: "other", Amount: 1000, State: payout.Completed}, gateway: "g", lines: []Line{tt.line}, currency: inr}
		found, judged := d.judge()
		var got []Kind
		for _, f := range found {
			got = append(got, f.Kind)
		}
		if !slices.Equal(got, tt.want) || judged != (len(tt.want) > 0) {
			t.Errorf("%s: found are %v, judged: %t; want %v", name, got, judged, tt.want)
		}
	}
}

// Days that were read one after the other count as one part.
func TestCoverage(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 2, hour, 0, 0, 0, time.UTC) }
	var read coverage
	for _, p := range []Period{{at(1), at(2)}, {at(2), at(4)}, {at(3), at(4)}, {at(3), at(5)}, {at(7), at(8)}} {
		read = read.add(p)
	}
	for _, tt := range []struct {
		from, to int
		want     bool
	}{{1, 5, true}, {2, 3, true}, {7, 8, true}, {0, 5, false}, {1, 6, false}, {4, 8, false}, {5, 7, false}} {
		if got := read.holds(at(tt.from), at(tt.to)); got != tt.want {
			t.Errorf("all from %d to %d o'clock was read: %t, want %t", tt.from, tt.to, got, tt.want)
		}
	}
	if len(read) != 2 {
		t.Errorf("read are %v, want two parts", read)
	}
}

// TestBegun_AllowsForClocks looks for the debit from ten minutes before the first moment that the gateway can have taken it.
func TestBegun_AllowsForClocks(t *testing.T) {
	asked := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	sent, processed := asked.Add(time.Minute), asked.Add(2*time.Minute)
	for name, tt := range map[string]struct {
		p    payout.Payout
		want time.Time
	}{
		"asked for":           {payout.Payout{RequestedAt: asked}, asked},
		"sent":                {payout.Payout{RequestedAt: asked, SentAt: sent}, sent},
		"sent and processed":  {payout.Payout{RequestedAt: asked, SentAt: sent, ProcessedAt: processed}, sent},
		"processed, and sent": {payout.Payout{RequestedAt: asked, SentAt: processed, ProcessedAt: sent}, sent},
		"processed":           {payout.Payout{RequestedAt: asked, ProcessedAt: processed}, processed},
	} {
		if got := begun(tt.p); !got.Equal(tt.want.Add(-10 * time.Minute)) {
			t.Errorf("%s: it began at %s, want ten minutes before %s", name, got, tt.want)
		}
	}
}
