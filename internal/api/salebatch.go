package api

import (
	"context"
	"encoding/json"
	"fmt"

	"bursar/internal/fault"
	"bursar/internal/sale"
)

const (
	// maxSales bounds a batch of sales, and maxBatchBody its body, in bytes: all fields of a sale may be as long as they can.
	maxSales     = 500
	maxBatchBody = 1 << 20
)

type saleBatchRequest struct{ sales []batchedSale }

// batchedSale is a line of a batch, and what is wrong with it by itself.
type batchedSale struct {
	saleRequest
	problem error
}

func (req *saleBatchRequest) read(in *input) {
	in.maxBody = maxBatchBody
	value := in.required("sales")
	if value == nil {
		return
	}
	var lines []json.RawMessage
	if value[0] != '[' || json.Unmarshal(value, &lines) != nil {
		in.noteMalformed("sales", "must be a list of sales")
		return
	}
	if len(lines) == 0 || len(lines) > maxSales {
		in.noteInvalid("sales", fmt.Sprintf("must be 1 to %d sales", maxSales))
		return
	}
	for _, text := range lines {
		req.sales = append(req.sales, readBatchedSale(in, text))
	}
}

// readBatchedSale reads a line as a request of its own.
func readBatchedSale(in *input, text []byte) (line batchedSale) {
	one := input{api: in.api, w: in.w, r: in.r}
	if text[0] != '{' {
		line.problem = errBody.WithMessage("A sale must be a JSON object.")
		return line
	}
	if one.members, line.problem = parseObject(text); line.problem != nil {
		return line
	}
	line.read(&one)
	line.problem = one.fieldProblem()
	return line
}

type saleResultJSON struct {
	SaleID  string            `json:"saleId"`
	Success bool              `json:"success"`
	Code    string            `json:"code,omitempty"`
	Error   string            `json:"error,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

type saleBatchJSON struct {
	Results []saleResultJSON `json:"results"`
}

func (a *api) recordSales(ctx context.Context, c caller, req saleBatchRequest) (reply[saleBatchJSON], error) {
	problems := make([]error, len(req.sales))
	var sales []sale.NewSale
	var places []int // of sales in the batch
	sellers := map[string]string{}
	for i, line := range req.sales {
		if problems[i] = line.problem; problems[i] == nil {
			line.Seller, problems[i] = a.sellerOfBatch(ctx, sellers, line.Seller)
		}
		if f := fault.From(problems[i]); problems[i] != nil && (f == nil || f.Kind == fault.Unavailable) {
			return reply[saleBatchJSON]{}, problems[i]
		}
		if problems[i] == nil {
			line.Actor = c.service.Actor()
			sales, places = append(sales, line.NewSale), append(places, i)
		}
	}
	refused, err := a.o.Sales.RecordAll(ctx, sales)
	if err != nil {
		return reply[saleBatchJSON]{}, err
	}
	for n, i := range places {
		problems[i] = refused[n]
	}
	shown := saleBatchJSON{Results: make([]saleResultJSON, len(req.sales))}
	for i, line := range req.sales {
		shown.Results[i] = saleResultJSON{SaleID: line.ID, Success: problems[i] == nil}
		if f := fault.From(problems[i]); f != nil {
			shown.Results[i].Code, shown.Results[i].Error, shown.Results[i].Details = f.Code, f.Message, f.Details
		}
	}
	return reply[saleBatchJSON]{data: shown}, nil
}

// sellerOfBatch finds the id of a seller whom a line names, once for all lines that name them so.
func (a *api) sellerOfBatch(ctx context.Context, known map[string]string, name string) (string, error) {
	if sellerID, found := known[name]; found {
		return sellerID, nil
	}
	sellerID, _, err := a.resolveSeller(ctx, name)
	if err == nil {
		known[name] = sellerID
	}
	return sellerID, err
}
