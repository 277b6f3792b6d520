package proof

import (
	"fmt"
	"strings"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// words tells each kind of transfer as its seller would.
var words = map[ledger.Kind]string{
	ledger.KindSale:          "Sale %s",
	ledger.KindSaleRelease:   "Sale %s can be withdrawn",
	ledger.KindSaleRefund:    "Refund of sale %s",
	ledger.KindPayoutHold:    "Set aside for payout %s",
	ledger.KindPayoutRelease: "Payout %s was not paid and is given back",
	ledger.KindPayoutPaid:    "Payout %s paid to the bank",
	ledger.KindPayoutFee:     "Fee of payout %s",
	ledger.KindPayoutReturn:  "Payout %s returned by the bank",
	ledger.KindFeeReturn:     "Fee of payout %s given back",
}

// inWords tells a transfer in plain words.
func inWords(t ledger.Transfer) string {
	text, known := words[t.Kind]
	if !known {
		return strings.TrimSpace(string(t.Kind) + " " + t.Ref)
	}
	return fmt.Sprintf(text, t.Ref)
}

// Period reads the two ends of a period: times, of which the second is not in it any more, or days, of which
// the second is. Without a first one it begins with the month, and without a second one it ends today.
func (s *Service) Period(from, to string) (first, end time.Time, err error) {
	zone := s.o.Zone
	now := s.o.Now().In(zone)
	first, end = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, zone), time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, zone)
	problems := map[string]string{}
	if from != "" {
		first = parseEnd("from", from, 0, zone, problems)
	}
	if to != "" {
		end = parseEnd("to", to, 1, zone, problems)
	}
	if len(problems) == 0 && !first.Before(end) {
		problems["to"] = "must be after from"
	}
	if len(problems) > 0 {
		return first, end, fault.Fields(fault.Invalid, problems)
	}
	return first.UTC().Truncate(time.Microsecond), end.UTC().Truncate(time.Microsecond), nil
}

func parseEnd(name, text string, days int, zone *time.Location, problems map[string]string) time.Time {
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return bounded(name, day.AddDate(0, 0, days), problems)
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		problems[name] = "must be a day such as 2026-11-20, or a time such as 2026-11-20T09:30:00Z"
	}
	return bounded(name, at, problems)
}

// bounded notes times that are a mistake.
func bounded(name string, at time.Time, problems map[string]string) time.Time {
	const firstYear, lastYear = 2000, 2100
	if problems[name] == "" && (at.Year() < firstYear || at.Year() > lastYear) {
		problems[name] = fmt.Sprintf("must be between the years %d and %d", firstYear, lastYear)
	}
	return at
}
