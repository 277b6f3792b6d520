package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"bursar/internal/payout"
)

type figuresRequest struct{ period string }

func (req *figuresRequest) read(in *input) {
	req.period = "yesterday"
	if s, given := in.parameter("period"); given {
		req.period = s
		if _, known := payout.Periods[s]; !known {
			in.noteInvalid("period", "must be today, yesterday, 7days or 30days")
		}
	}
}

type figuresJSON struct {
	Paid       paidJSON       `json:"paid"`
	Failed     countJSON      `json:"failedYesterday"`
	InTransit  countJSON      `json:"inTransit"`
	OldestOpen *oldestJSON    `json:"oldestOpen"`
	Period     periodJSON     `json:"period"`
	Banks      []bankJSON     `json:"banks"`
	Reasons    []reasonJSON   `json:"reasons"`
	Days       []dayCountJSON `json:"days"`
}

type countJSON struct {
	Count  int64       `json:"count"`
	Amount json.Number `json:"amount"`
}

type paidJSON struct {
	Today  countJSON `json:"today"`
	Days7  countJSON `json:"7days"`
	Days30 countJSON `json:"30days"`
}

type oldestJSON struct {
	PayoutID    payout.ID `json:"payoutId"`
	RequestedAt string    `json:"requestedAt"`
}

type periodJSON struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

type bankJSON struct {
	Bank        string      `json:"bank"`
	Paid        countJSON   `json:"paid"`
	Failed      countJSON   `json:"failed"`
	FailureRate json.Number `json:"failureRate"`
}

type reasonJSON struct {
	Code orNull `json:"code"`
	countJSON
}

type dayCountJSON struct {
	Day    string    `json:"day"`
	Paid   countJSON `json:"paid"`
	Failed countJSON `json:"failed"`
}

func (a *api) count(c payout.Count) countJSON { return countJSON{c.Number, a.amount(c.Amount)} }

func (a *api) figures(ctx context.Context, _ caller, req figuresRequest) (reply[figuresJSON], error) {
	f, err := a.o.Payouts.Figures(ctx)
	if err != nil {
		return reply[figuresJSON]{}, err
	}
	days := func(p payout.Period) countJSON { return a.count(f.Of(p).Paid) }
	period := payout.Periods[req.period]
	shown := f.Of(period)
	data := figuresJSON{
		Paid:   paidJSON{days(payout.Periods["today"]), days(payout.Periods["7days"]), days(payout.Periods["30days"])},
		Failed: a.count(f.Of(payout.Periods["yesterday"]).Failed), InTransit: a.count(f.Open.Count),
		Period: periodJSON{req.period, f.Days[period.From].Day.Format(time.DateOnly), f.Days[period.To-1].Day.Format(time.DateOnly)},
		Banks: mapped(shown.Banks, func(b payout.BankCounts) bankJSON {
			rate := b.Permille()
			return bankJSON{b.Bank, a.count(b.Paid), a.count(b.Failed), json.Number(fmt.Sprintf("%d.%03d", rate/1000, rate%1000))}
		}),
		Reasons: mapped(shown.Reasons, func(r payout.ReasonCount) reasonJSON { return reasonJSON{orNull(r.Code), a.count(r.Count)} }),
		Days: mapped(f.Days, func(d payout.Ended) dayCountJSON {
			return dayCountJSON{d.Day.Format(time.DateOnly), a.count(d.Paid), a.count(d.Failed)}
		}),
	}
	if f.Open.Oldest != "" {
		data.OldestOpen = &oldestJSON{f.Open.Oldest, stamp(f.Open.Since)}
	}
	return reply[figuresJSON]{data: data}, nil
}
