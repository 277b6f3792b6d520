package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"bursar/internal/bank"
	"bursar/internal/payout"
	"bursar/internal/proof"
)

// selectRequest asks for the payouts that an operator selects.
type selectRequest struct {
	selection payout.Selection
	format    proof.Format
}

// Pages of selected payouts.
const (
	defaultSelected = 20
	maxSelected     = 100
)

func (req *selectRequest) read(in *input) {
	selection, err := in.api.o.Payouts.ParseSelection(func(name string) string {
		value, _ := in.parameter(name)
		return value
	})
	in.noteError(err)
	selection.Limit = in.number("limit", defaultSelected, maxSelected)
	req.selection, req.format = selection, in.format()
}

// format takes how an answer is written.
func (in *input) format() proof.Format {
	s, given := in.parameter("format")
	if !given {
		return proof.JSON
	}
	if f := proof.Format(s); f == proof.JSON || f == proof.CSV {
		return f
	}
	in.noteInvalid("format", "must be json or csv")
	return proof.JSON
}

type selectedJSON struct {
	Payouts []selectedPayoutJSON `json:"payouts"`
	Totals  totalsJSON           `json:"totals"`
	Next    orNull               `json:"next"`
}

type totalsJSON struct {
	Count    int64       `json:"count"`
	Amount   json.Number `json:"amount"`
	Fee      json.Number `json:"fee"`
	Complete bool        `json:"complete"`
}

type selectedPayoutJSON struct {
	payoutJSON
	SellerName       string       `json:"sellerName"`
	State            payout.State `json:"state"`
	Late             bool         `json:"late"`
	Gateway          string       `json:"gateway"`
	EstimatedArrival string       `json:"estimatedArrival"`
	EndedAt          orNull       `json:"endedAt"`
	ReasonCode       orNull       `json:"reasonCode"`
	Discrepancy      orNull       `json:"discrepancy"`
}

func (a *api) selectedPayout(p payout.Selected) selectedPayoutJSON {
	return selectedPayoutJSON{
		payoutJSON: a.payoutOf(p.Payout), SellerName: p.SellerName, State: p.State, Late: p.IsLate(a.o.Now()), Gateway: string(p.Gateway),
		EstimatedArrival: stamp(p.ArriveAt), EndedAt: stampOrNull(p.EndedAt), ReasonCode: orNull(p.ReasonCode), Discrepancy: orNull(p.Discrepancy),
	}
}

func (a *api) selectPayouts(ctx context.Context, _ caller, req selectRequest) (reply[selectedJSON], error) {
	found, err := a.o.Payouts.Find(ctx, req.selection)
	if err != nil {
		return reply[selectedJSON]{}, err
	}
	data := selectedJSON{
		Payouts: mapped(found.Payouts, a.selectedPayout), Next: orNull(found.Next),
		Totals: totalsJSON{found.Totals.Count, a.amount(found.Totals.Amount), a.amount(found.Totals.Fee), !found.Totals.Cut},
	}
	return reply[selectedJSON]{data: data}, nil
}

// adminPayouts answers with a page of payouts, or with all that are selected as a file.
func (a *api) adminPayouts() http.HandlerFunc {
	page := handle(a, a.admin, a.selectPayouts)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == string(proof.CSV) {
			a.exportPayouts(w, r)
			return
		}
		page(w, r)
	}
}

// exportPayouts answers with a file, which is written while the payouts are read.
func (a *api) exportPayouts(w http.ResponseWriter, r *http.Request) {
	who, err := a.admin(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	req, in := selectRequest{}, input{api: a, w: w, r: r}
	req.read(&in)
	if err := in.problem(); err != nil {
		a.fail(w, r, err)
		return
	}
	if err := a.o.Payouts.CheckExport(r.Context(), req.selection); err != nil {
		a.fail(w, r, err)
		return
	}
	rows := 0
	isSent := a.writeCSV(w, r, "payouts", payoutHeading, func(write func(...string) error) error {
		return a.o.Payouts.Export(r.Context(), req.selection, func(p payout.Selected) error {
			rows++
			return write(a.payoutCells(p)...)
		})
	})
	if isSent {
		a.o.Logger.InfoContext(r.Context(), "payouts exported", slog.String("admin_id", who.UserID), slog.Int("rows", rows))
	}
}

// writeCSV answers with a file of the rows that each writes, which may be many, and reports whether the client has all of it.
func (a *api) writeCSV(w http.ResponseWriter, r *http.Request, name string, heading []string, each func(write func(cells ...string) error) error) bool {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	if r.Method == http.MethodHead {
		return true
	}
	out := &patient{w: w, controller: http.NewResponseController(w)}
	file := csv.NewWriter(out)
	err := file.Write(heading)
	if err == nil {
		err = each(func(cells ...string) error {
			for i, cell := range cells {
				cells[i] = proof.CSVCell(cell)
			}
			return file.Write(cells)
		})
	}
	file.Flush()
	return a.endFile(w, r, out, errors.Join(err, file.Error()))
}

// payoutHeading names the cells of payoutCells.
var payoutHeading = []string{
	"id", "seller_id", "seller", "amount", "fee", "net", "currency", "status", "state", "requested_at", "estimated_arrival", "completed_at", "ended_at",
	"account", "ifsc", "utr", "gateway", "gateway_payout_id", "reason_code", "reason",
}

func (a *api) payoutCells(p payout.Selected) []string {
	c := a.o.Currency
	return []string{
		string(p.ID), p.Seller, p.SellerName, c.FormatFixed(p.Amount), c.FormatFixed(p.Fee), c.FormatFixed(p.Net()), c.Code(), string(p.Status()), string(p.State),
		stamp(p.RequestedAt), stamp(p.ArriveAt), string(stampOrNull(p.CompletedAt)), string(stampOrNull(p.EndedAt)),
		bank.Mask(p.AccountLast4), p.AccountIFSC, p.UTR, string(p.Gateway), p.GatewayID, p.ReasonCode, p.Reason,
	}
}
