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

// statementFormat names the format, in its first version.
const statementFormat = "bursar statement v1"

// The JSON of a statement. Amounts are numbers of major units, and times have microseconds, as many as there are.
type (
	summaryJSON struct {
		Format    string       `json:"format"`
		SellerID  string       `json:"sellerId"`
		Currency  string       `json:"currency"`
		From      string       `json:"from"`
		To        string       `json:"to"`
		Opening   standingJSON `json:"opening"`
		Closing   standingJSON `json:"closing"`
		Transfers int64        `json:"transfers"`
	}

	standingJSON struct {
		Pending   json.Number `json:"pending"`
		Available json.Number `json:"available"`
		InTransit json.Number `json:"inTransit"`
	}

	lineJSON struct {
		Number int64       `json:"number"`
		At     string      `json:"at"`
		What   string      `json:"what"`
		Kind   string      `json:"kind"`
		From   string      `json:"from"`
		To     string      `json:"to"`
		Amount json.Number `json:"amount"`
		Ref    string      `json:"ref"`
		standingJSON
		Hash string `json:"hash"`
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

	sealJSON struct {
		Book       bookJSON       `json:"book"`
		Path       []string       `json:"path"`
		Checkpoint checkpointJSON `json:"checkpoint"`
		Key        keyJSON        `json:"key"`
	}

	bookJSON struct {
		Transfers int64  `json:"transfers"`
		Head      string `json:"head"`
		Index     int64  `json:"index"`
	}

	checkpointJSON struct {
		Number    int64  `json:"number"`
		At        string `json:"at"`
		Currency  string `json:"currency"`
		Books     int64  `json:"books"`
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
			sealJSON
		} `json:"proof"`
	}
)

// jsonWriter writes a statement as JSON, a line for each transfer.
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
		Opening: j.standing(s.Opening), Closing: j.standing(s.Closing), Transfers: s.Transfers,
	}, ",\n\"lines\":[")
}

func (j *jsonWriter) line(l line) error { return j.element(j.lineJSON(l)) }

func (j *jsonWriter) proof(s start, before, after *line) error {
	told := startJSON{Start: numberedJSON{s.Number, string(s.Hash)}}
	if before != nil {
		told.Before = new(j.lineJSON(*before))
	}
	if after != nil {
		told.After = new(j.lineJSON(*after))
	}
	if _, err := io.WriteString(j.w, "\n],\n\"proof\":"); err != nil {
		return err
	}
	j.between = "\n"
	return j.open(told, ",\n\"later\":[")
}

func (j *jsonWriter) later(entry ledger.Hash) error { return j.element(string(entry)) }

func (j *jsonWriter) end(s seal) error {
	c := s.Checkpoint
	text, err := encode(sealJSON{
		Book: bookJSON{s.Transfers, string(s.Head), s.Index},
		Path: append([]string{}, s.Path...),
		Checkpoint: checkpointJSON{
			c.Number, stamp(c.At), c.Currency, c.Books, c.Root, string(c.Previous), c.KeyID, c.Signature,
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

func (j *jsonWriter) standing(s ledger.Standing) standingJSON {
	number := func(a money.Amount) json.Number { return json.Number(j.currency.Format(a)) }
	return standingJSON{number(s.Pending), number(s.Available), number(s.InTransit)}
}

func (j *jsonWriter) lineJSON(l line) lineJSON {
	return lineJSON{
		Number: l.Number, At: stamp(l.At), What: inWords(l.Transfer), Kind: string(l.Kind), From: string(l.Debit), To: string(l.Credit),
		Amount: json.Number(j.currency.Format(l.Amount)), Ref: l.Ref, standingJSON: j.standing(l.After), Hash: string(l.Hash),
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

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }
