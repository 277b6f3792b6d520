package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// statementFormat names the format and its version.
const statementFormat = "bursar statement v2"

// The JSON of a statement. Amounts are numbers of major units, and times have microseconds, as many as there are.
type (
	summaryJSON struct {
		Format   string       `json:"format"`
		SellerID string       `json:"sellerId"`
		Currency string       `json:"currency"`
		From     string       `json:"from"`
		To       string       `json:"to"`
		Opening  balancesJSON `json:"opening"`
		Closing  balancesJSON `json:"closing"`
		Entries  int64        `json:"entries"`
	}

	balancesJSON struct {
		Pending   json.Number `json:"pending"`
		Available json.Number `json:"available"`
		InTransit json.Number `json:"inTransit"`
	}

	lineJSON struct {
		Number  int64      `json:"number"`
		At      string     `json:"at"`
		What    string     `json:"what"`
		Type    string     `json:"type"`
		Subject string     `json:"subject"`
		Actor   string     `json:"actor"`
		Digest  string     `json:"digest"`
		Moved   movedJSON  `json:"moved"`
		After   totalsJSON `json:"after"`
		Hash    string     `json:"hash"`
	}

	// movedJSON is what an entry adds to each account.
	movedJSON struct {
		balancesJSON
		Sales   json.Number `json:"sales"`
		Gateway json.Number `json:"gateway"`
		Fees    json.Number `json:"fees"`
	}

	// totalsJSON is a seller's totals: sums of money, and how many sales and payouts.
	totalsJSON struct {
		balancesJSON
		Earned    json.Number `json:"earned"`
		Withdrawn json.Number `json:"withdrawn"`
		Counts    countsJSON  `json:"counts"`
		// HoldUntil is left out without a hold.
		HoldUntil string `json:"holdUntil,omitempty"`
		// Frozen is left out where payouts are not frozen.
		Frozen bool `json:"frozen,omitempty"`
	}

	countsJSON struct {
		Sales      int64 `json:"sales"`
		Processing int64 `json:"processing"`
		Completed  int64 `json:"completed"`
		Failed     int64 `json:"failed"`
		Cancelled  int64 `json:"cancelled"`
	}

	startJSON struct {
		Start  numberedJSON `json:"start"`
		Before *lineJSON    `json:"before"`
		After  *lineJSON    `json:"after"`
	}

	numberedJSON struct {
		Number int64  `json:"number"`
		Hash   string `json:"hash"`
	}

	inclusionJSON struct {
		Journal    journalJSON    `json:"journal"`
		Path       []string       `json:"path"`
		Checkpoint checkpointJSON `json:"checkpoint"`
		Key        keyJSON        `json:"key"`
	}

	journalJSON struct {
		Number int64  `json:"number"`
		Hash   string `json:"hash"`
		Index  int64  `json:"index"`
	}

	checkpointJSON struct {
		Number    int64  `json:"number"`
		At        string `json:"at"`
		Currency  string `json:"currency"`
		Journals  int64  `json:"journals"`
		Root      string `json:"root"`
		Previous  string `json:"previous"`
		KeyID     string `json:"kid"`
		Signature string `json:"signature"`
	}

	keyJSON struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		X     string `json:"x"`
	}

	// documentJSON is all of it, as it is read.
	documentJSON struct {
		summaryJSON
		Lines []lineJSON `json:"lines"`
		Proof struct {
			startJSON
			Later []string `json:"later"`
			inclusionJSON
		} `json:"proof"`
	}
)

// jsonWriter writes a statement as JSON, a line for each entry.
type jsonWriter struct {
	w        io.Writer
	currency money.Currency
	// between is written before the next element of a list.
	between string
}

func newJSONWriter(w io.Writer, c money.Currency) *jsonWriter { return &jsonWriter{w: w, currency: c} }

func (j *jsonWriter) begin(s Summary) error {
	j.between = "\n"
	return j.open(summaryJSON{
		Format: statementFormat, SellerID: s.Seller, Currency: s.Currency.Code(), From: stamp(s.From), To: stamp(s.To),
		Opening: j.balances(s.Opening), Closing: j.balances(s.Closing), Entries: s.Entries,
	}, ",\n\"lines\":[")
}

func (j *jsonWriter) line(e ledger.Entry) error { return j.element(j.lineJSON(e)) }

func (j *jsonWriter) proof(s start, before, after *ledger.Entry) error {
	start := startJSON{Start: numberedJSON{s.Number, string(s.Hash)}}
	if before != nil {
		start.Before = new(j.lineJSON(*before))
	}
	if after != nil {
		start.After = new(j.lineJSON(*after))
	}
	if _, err := io.WriteString(j.w, "\n],\n\"proof\":"); err != nil {
		return err
	}
	j.between = "\n"
	return j.open(start, ",\n\"later\":[")
}

func (j *jsonWriter) later(entry ledger.Hash) error { return j.element(string(entry)) }

func (j *jsonWriter) end(s inclusion) error {
	c := s.Checkpoint
	text, err := encode(inclusionJSON{
		Journal: journalJSON{s.Number, string(s.Hash), s.Index},
		Path:    append([]string{}, s.Path...),
		Checkpoint: checkpointJSON{
			c.Number, stamp(c.At), c.Currency, c.Journals, c.Root, string(c.Previous), c.KeyID, c.Signature,
		},
		Key: keyJSON{"OKP", "Ed25519", s.Key.Text()},
	})
	if err == nil {
		_, err = fmt.Fprintf(j.w, "\n],\n%s}\n", text[1:])
	}
	return err
}

// open writes an object, and begins another member of it.
func (j *jsonWriter) open(object any, member string) error {
	text, err := encode(object)
	if err == nil {
		_, err = fmt.Fprintf(j.w, "%s%s", text[:len(text)-1], member)
	}
	return err
}

// element writes the next element of a list.
func (j *jsonWriter) element(v any) error {
	text, err := encode(v)
	if err == nil {
		_, err = fmt.Fprintf(j.w, "%s%s", j.between, text)
	}
	j.between = ",\n"
	return err
}

func (j *jsonWriter) amount(a money.Amount) json.Number { return json.Number(j.currency.Format(a)) }

func (j *jsonWriter) balances(s ledger.Balances) balancesJSON {
	return balancesJSON{j.amount(s.Pending), j.amount(s.Available), j.amount(s.InTransit)}
}

func (j *jsonWriter) lineJSON(e ledger.Entry) lineJSON {
	m, b, n := e.Moved, e.After, e.After.Counts
	return lineJSON{
		Number: e.Number, At: stamp(e.At), What: inWords(e), Type: string(e.Type), Subject: e.Subject, Actor: e.Actor, Digest: string(e.Digest()),
		Moved: movedJSON{
			balancesJSON{j.amount(m.Pending), j.amount(m.Available), j.amount(m.InTransit)},
			j.amount(m.Sales), j.amount(m.Gateway), j.amount(m.Fees),
		},
		After: totalsJSON{
			j.balances(b.Balances()), j.amount(b.Earned), j.amount(b.Withdrawn),
			countsJSON{n.Sales, n.Processing, n.Completed, n.Failed, n.Cancelled},
			holdStamp(b.HoldUntil), b.Frozen,
		},
		Hash: string(e.Hash),
	}
}

// encode writes JSON without a line's end, and without escaping what only web pages mind.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

const stampLayout = "2006-01-02T15:04:05.000000Z"

// holdStamp is when a hold ends; empty without one.
func holdStamp(micros int64) string {
	if micros == 0 {
		return ""
	}
	return stamp(time.UnixMicro(micros))
}

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }
