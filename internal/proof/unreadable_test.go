package proof_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"bursar/internal/proof"
)

// TestVerify_SaysWhatIsWrongWithAFile changes files as people, spreadsheets and networks do.
func TestVerify_SaysWhatIsWrongWithAFile(t *testing.T) {
	golden := map[string]string{}
	for _, f := range formats {
		text, err := os.ReadFile("testdata/statement." + string(f))
		if err != nil {
			t.Fatal(err)
		}
		golden[string(f)] = string(text)
	}
	inJSON, inCSV := golden["json"], golden["csv"]
	replaced := func(text, was, is string) string {
		t.Helper()
		changed := strings.Replace(text, was, is, 1)
		if changed == text {
			t.Errorf("there is no %q", was)
		}
		return changed
	}
	eachRow := func(change func(row string) string) string {
		rows := strings.Split(strings.TrimSuffix(inCSV, "\n"), "\n")
		for i := range rows {
			rows[i] = change(rows[i])
		}
		return strings.Join(rows, "\r\n") + "\r\n"
	}
	quoted := func(row string) string { return `"` + strings.ReplaceAll(row, ",", `","`) + `"` }
	padded := func(row string) string { return row + strings.Repeat(",", 26-strings.Count(row, ",")) }
	wrapped := `{"success":true,"data":` + inJSON + `}`

	for name, tt := range map[string]struct{ file, want string }{
		"as it was":          {inJSON, ""},
		"in the answer":      {wrapped, ""},
		"quoted":             {eachRow(quoted), ""},
		"padded":             {eachRow(padded), ""},
		"with a mark":        {"\xef\xbb\xbf" + eachRow(padded), ""},
		"empty":              {" \n", "the file is empty"},
		"JSON cut":           {inJSON[:len(inJSON)/2], "it ends in the middle"},
		"CSV cut in a row":   {inCSV[:strings.Index(inCSV, "#opening")-10], "the file is cut off"},
		"CSV cut":            {inCSV[:strings.Index(inCSV, "#checkpoint")], "it has no row #checkpoint: it is cut off"},
		"CSV cut in quotes":  {eachRow(quoted)[:700], "it is cut off"},
		"another CSV":        {"name,amount\nAsha,1\n", "row 1: it should be the heading"},
		"a web page":         {"<!doctype html>", "it is a web page"},
		"an error":           {`{"success":false,"error":{"code":"statement_not_ready","message":"Try again."}}`, "(statement_not_ready): Try again."},
		"a key set":          {`{"keys":[]}`, "give that with --key"},
		"semicolons":         {strings.ReplaceAll(inCSV, ",", ";"), "not parted by commas"},
		"UTF-16":             {"\xff\xfen\x00u\x00", "it is in UTF-16"},
		"an archive":         {"PK\x03\x04", "a spreadsheet's own file"},
		"a spreadsheet time": {replaced(inCSV, "2026-11-02T12:04:00.000000Z", "11/2/2026 12:04"), "no time such as 2026-11-02T09:30:00.000000Z; use the file as it was downloaded"},
		"an amount shorter":  {replaced(inCSV, "1000.50", "1000.5"), "Row 2 of the file is not as Bursar writes it"},
		"rows in another order": {func() string {
			at := strings.Index(inCSV, "#opening")
			rows := strings.SplitAfter(inCSV[at:], "\n")
			return inCSV[:at] + rows[1] + rows[0] + strings.Join(rows[2:], "")
		}(), "or not in its place"},
		"a field twice":         {replaced(inJSON, `"sellerId"`, `"sellerId":"usr_b","sellerId"`), `The field "sellerId" is there twice`},
		"data twice":            {`{"success":true,"data":{},` + wrapped[len(`{"success":true,`):], `The field "data" is there twice`},
		"more beside the data":  {replaced(wrapped, `"success":true`, `"success":true,"lines":[]`), `it has the field "lines"`},
		"a field more":          {replaced(inJSON, `"sellerId"`, `"bonus":1,"sellerId"`), `it has the field "bonus"`},
		"a field in other case": {replaced(inJSON, `"sellerId"`, `"SellerID"`), "not as Bursar writes it"},
		"a text for a number":   {replaced(inJSON, `"number":6`, `"number":"6"`), `its field "lines.number" holds a string`},
		"two files":             {inJSON + inJSON, "something follows its end"},
		"no JSON":               {replaced(inJSON, `"lines":[`, `"lines":(`), "it is no JSON from byte"},
		"another version":       {replaced(inJSON, "statement v2", "statement v3"), `its format is "bursar statement v3"`},
		"another seller":        {replaced(inJSON, "usr_a", "usr_b"), "no such journal of usr_b"},
		"a longer period":       {replaced(inJSON, `"from":"2026`, `"from":"2025`), "The period has more lines than the statement says."},
		"another amount":        {replaced(inCSV, "1000.50,0.00,0.00,-1000.50,", "9000.50,0.00,0.00,-9000.50,"), "Number 6 leaves other totals"},
		"another key":           {replaced(inJSON, `"x":"`, `"x":"A`), "its key can't be read"},
		"another description":   {replaced(inCSV, "Sale -two", "Gift -two"), `Number 6 is described as "Gift -two & größer", and is "Sale -two & größer"`},
	} {
		v, err := proof.Verify(bytes.NewReader([]byte(tt.file)), nil)
		got := strings.Join(v.Problems, " ")
		if err != nil {
			got = err.Error()
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
