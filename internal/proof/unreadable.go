package proof

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// asDownloaded is the advice where a program between has changed a file without meaning harm.
const asDownloaded = "use the file as it was downloaded, before a spreadsheet saved it"

// alien says what a file is that can be no statement at all; nil for one that may be.
func alien(text []byte) error {
	begin := bytes.TrimSpace(text)
	switch {
	case len(begin) == 0:
		return errors.New("the file is empty")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return errors.New("it is in UTF-16, as spreadsheets save; " + asDownloaded)
	case bytes.HasPrefix(text, []byte("PK\x03\x04")):
		return errors.New("it is a spreadsheet's own file or an archive; " + asDownloaded)
	case begin[0] == '<':
		return errors.New("it is a web page, such as an error or a sign-in; download the statement again")
	case bytes.HasPrefix(begin, []byte(strings.Join(csvHeading, ";"))), bytes.HasPrefix(begin, []byte(strings.Join(csvHeading, "\t"))):
		return errors.New("its cells are not parted by commas; " + asDownloaded)
	default:
		return nil
	}
}

// answerJSON is what the API answers: a statement within it, or an error. A key set comes from there too.
type answerJSON struct {
	Data  json.RawMessage `json:"data"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Keys []json.RawMessage `json:"keys"`
}

// otherThan says what an answer is that holds no statement; nil for one that may.
func (a answerJSON) otherThan() error {
	switch {
	case a.Error != nil:
		return fmt.Errorf("it is an error that the service answered (%s): %s", a.Error.Code, a.Error.Message)
	case a.Keys != nil:
		return errors.New("it is a key set; give that with --key, and the statement as the file")
	default:
		return nil
	}
}

// wrapperJSON is a statement within the API's answer.
type wrapperJSON struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data"`
}

// strictly reads JSON, and refuses what has no place in it.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// inPlainWords says of JSON what is wrong with it.
func inPlainWords(err error) error {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && strings.Contains(syntax.Error(), "unexpected end"):
		return errors.New("it ends in the middle; download it again")
	case errors.As(err, &syntax) && strings.Contains(syntax.Error(), "after top-level value"):
		return fmt.Errorf("something follows its end, from byte %d on", syntax.Offset)
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON from byte %d on", syntax.Offset)
	case errors.As(err, &wrongType):
		return fmt.Errorf("its field %q holds a %s, which it should not", wrongType.Field, wrongType.Value)
	}
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return fmt.Errorf("it has the field %s, which statements do not have", name)
	}
	return err
}

// doubled finds a field of JSON that is there twice, or "". Programs differ in which of the two they read.
func doubled(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var open []map[string]bool // the names in each object; nil for a list
	isName := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		inObject := func() bool { return len(open) > 0 && open[len(open)-1] != nil }
		switch token {
		case json.Delim('{'):
			open, isName = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open, isName = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isName = inObject()
			continue
		}
		if name, isText := token.(string); isName && isText {
			if open[len(open)-1][name] {
				return name
			}
			open[len(open)-1][name] = true
			isName = false
			continue
		}
		isName = inObject()
	}
}

// rowsOf are the rows of a CSV without what a spreadsheet adds when it saves one: quotes, and empty cells behind
// the last one.
func rowsOf(text []byte) (rows [][]string, err error) {
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		for len(row) > 1 && row[len(row)-1] == "" {
			row = row[:len(row)-1]
		}
		rows = append(rows, row)
	}
}
