package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"bursar/internal/fault"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/proof"
)

// keys is one key.
type keys struct{ private ed25519.PrivateKey }

func (k keys) key() proof.Key {
	public, _ := k.private.Public().(ed25519.PublicKey)
	return proof.NewKey(public)
}

func (k keys) SigningKey() (string, ed25519.PrivateKey) { return k.key().ID, k.private }

func (k keys) VerificationKey(kid string) (ed25519.PublicKey, bool) {
	return k.key().Public, kid == k.key().ID
}

// fixture is a service with a few journals.
type fixture struct {
	*testing.T
	store   *memory
	service *proof.Service
	keys    keys
	mac     macKey
	now     time.Time
	log     bytes.Buffer
}

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, sellers ...string) *fixture {
	t.Helper()
	o := &fixture{
		T: t, store: &memory{journals: map[string]*journal{}}, mac: "the service's",
		keys: keys{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}, now: noon,
	}
	o.service = o.with(o.keys, o.mac)
	for _, seller := range sellers {
		o.store.open(seller)
	}
	return o
}

// with is a service with other keys on the same store.
func (o *fixture) with(signer keys, mac macKey) *proof.Service {
	o.Helper()
	inr, err := money.ParseCurrency("INR")
	o.must(err)
	service, err := proof.New(proof.Options{
		Store: o.store, Signer: signer, Keys: mac, Currency: inr, Every: time.Hour, Zone: time.FixedZone("", 19800),
		Now: func() time.Time { return o.now }, Logger: slog.New(slog.NewTextHandler(&o.log, nil)),
	})
	o.must(err)
	return service
}

func (o *fixture) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// trade appends a sale, its release and a payout with a fee, a minute apart: five entries, of which the fourth moves no
// money.
func (o *fixture) trade(seller, ref string) {
	o.Helper()
	post := func(t ledger.Type, subject string, m ledger.Moved) {
		o.Helper()
		o.must(o.store.post(o.mac, ledger.Posting{
			Owner: seller, At: o.now, Type: t, Subject: subject, Actor: "system", Data: fmt.Sprintf(`{"salt":"c2FsdA","about":%q}`, subject), Moved: m,
		}))
	}
	minute := func() { o.now = o.now.Add(time.Minute) }
	post(ledger.SaleRecorded, ref, ledger.Sale(100_050))
	minute()
	post(ledger.SaleReleased, ref, ledger.ReleaseSale(100_050))
	minute()
	post(ledger.PayoutRequested, "pyt_"+ref, ledger.ReservePayout(60_000))
	minute()
	post(ledger.PayoutSubmitted, "pyt_"+ref, ledger.Moved{})
	post(ledger.PayoutCompleted, "pyt_"+ref, ledger.SettlePayout(59_000, 1_000))
	minute()
}

// rest lets a checkpoint be made again.
func (o *fixture) rest() { o.now = o.now.Add(time.Hour) }

func (o *fixture) statement(seller string, from, to time.Time, f proof.Format) []byte {
	o.Helper()
	s, err := o.service.Statement(o.Context(), seller, from, to)
	o.must(err)
	var file bytes.Buffer
	o.must(s.Write(&file, f))
	return file.Bytes()
}

func (o *fixture) verify(file []byte) proof.Verified {
	o.Helper()
	v, err := proof.Verify(bytes.NewReader(file), proof.Keys{o.keys.key().ID: o.keys.key()})
	if err != nil {
		o.Fatalf("%v:\n%s", err, file)
	}
	return v
}

var formats = []proof.Format{proof.JSON, proof.CSV}

func TestStatement_ProvesItself(t *testing.T) {
	o := open(t, "usr_a", "usr_b", "usr_c", "usr_idle")
	for _, seller := range []string{"usr_a", "usr_b", "usr_c"} {
		o.trade(seller, "=first "+seller)
	}
	begin := o.now
	o.trade("usr_b", "second")
	end := o.now
	o.rest()
	o.trade("usr_b", "third")
	o.rest()
	for _, tt := range []struct {
		name               string
		seller             string
		from, to           time.Time
		entries            int64
		first              int64
		opening, closing   money.Amount
		hasNothingLeftover bool
	}{
		{"all there is", "usr_b", noon, o.now, 15, 1, 0, 3 * 40_050, true},
		{"from the middle on", "usr_b", begin, o.now, 10, 6, 40_050, 3 * 40_050, true},
		{"the middle", "usr_b", begin, end, 5, 6, 40_050, 2 * 40_050, false},
		{"the beginning", "usr_b", noon, begin, 5, 1, 0, 40_050, false},
		{"one entry", "usr_b", begin, begin.Add(time.Minute), 1, 6, 40_050, 40_050, false},
		{"nothing, before", "usr_b", noon.Add(-time.Hour), noon, 0, 0, 0, 0, false},
		{"nothing, between", "usr_b", end, end.Add(time.Minute), 0, 0, 2 * 40_050, 2 * 40_050, false},
		{"nothing, after", "usr_b", o.now, o.now.Add(time.Hour), 0, 0, 3 * 40_050, 3 * 40_050, true},
		{"another seller", "usr_c", noon, o.now, 5, 1, 0, 40_050, true},
		{"nothing ever", "usr_idle", noon, o.now, 0, 0, 0, 0, true},
	} {
		for _, f := range formats {
			file := o.statement(tt.seller, tt.from, tt.to, f)
			v := o.verify(file)
			if len(v.Problems) > 0 {
				t.Errorf("%s, %s: %v\n%s", tt.name, f, v.Problems, file)
			}
			if v.Entries != tt.entries || v.First != tt.first || v.Opening.Available != tt.opening || v.Closing.Available != tt.closing ||
				v.IsNewest != tt.hasNothingLeftover || v.Seller != tt.seller || !v.Trusted || v.Checkpoint.Journals != 4 {
				t.Errorf("%s, %s: proven is %+v", tt.name, f, v)
			}
		}
	}
}

// TestVerify_AnswerOfTheAPI takes what a client saved.
func TestVerify_AnswerOfTheAPI(t *testing.T) {
	o := open(t, "usr_a")
	o.trade("usr_a", "sale")
	file := o.statement("usr_a", noon, o.now, proof.JSON)
	answer := slices.Concat([]byte(`{"success":true,"data":`), file, []byte("}\n"))
	if v := o.verify(answer); len(v.Problems) > 0 {
		t.Error(v.Problems)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, file, "", "  "); err != nil {
		t.Fatal(err)
	}
	if v := o.verify(pretty.Bytes()); len(v.Problems) > 0 {
		t.Error("indented differently:", v.Problems)
	}
	crlf := bytes.ReplaceAll(o.statement("usr_a", noon, o.now, proof.CSV), []byte("\n"), []byte("\r\n"))
	if v := o.verify(append([]byte("\xef\xbb\xbf"), crlf...)); len(v.Problems) > 0 {
		t.Error("with the line ends of Windows:", v.Problems)
	}
}

// TestVerify_EveryByteChanged changes every byte of a statement, one at a time, and wants it refused. Only the
// period may be another one, as long as it has the same lines: then the statement is still true.
func TestVerify_EveryByteChanged(t *testing.T) {
	o := open(t, "usr_a", "usr_b", "usr_c")
	for _, seller := range []string{"usr_a", "usr_b", "usr_c"} {
		o.trade(seller, "one")
	}
	begin := o.now
	end := begin.Add(2 * time.Minute) // two lines, because the time that this takes grows with the square of the file
	o.trade("usr_b", "two")
	o.trade("usr_b", "three")
	trusted := proof.Keys{o.keys.key().ID: o.keys.key()}
	for _, f := range formats {
		file := o.statement("usr_b", begin, end, f)
		want := o.verify(file)
		for at := range file {
			for _, bit := range []byte{1, 1 << 5} { // another letter or digit, and another case
				changed := slices.Clone(file)
				changed[at] ^= bit
				v, err := proof.Verify(bytes.NewReader(changed), trusted)
				if err != nil || len(v.Problems) > 0 || isBlank(file[at]) && isBlank(changed[at]) {
					continue
				}
				if v.From.Equal(want.From) && v.To.Equal(want.To) {
					t.Fatalf("byte %d of the %s can be changed: %q", at, f, changed[max(0, at-40):min(len(changed), at+40)])
				}
			}
		}
	}
}

// TestStatement_HalfReadOrWritten breaks off a statement's reading and writing at each byte.
func TestStatement_HalfReadOrWritten(t *testing.T) {
	o := open(t, "usr_a")
	begin := o.now
	o.trade("usr_a", "one")
	end := o.now
	o.make()
	broken := errors.New("the line is cut")
	statement, err := o.service.Statement(t.Context(), "usr_a", begin, end)
	o.must(err)
	for _, f := range formats {
		file := o.statement("usr_a", begin, end, f)
		for n := range file {
			if err := statement.Write(&cutWriter{left: n, err: broken}, f); !errors.Is(err, broken) {
				t.Fatalf("of the %s only %d bytes were written: %v", f, n, err)
			}
			cut := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
			if _, err := proof.Verify(cut, proof.Keys{o.keys.key().ID: o.keys.key()}); !errors.Is(err, broken) {
				t.Fatalf("of the %s only %d bytes were read: %v", f, n, err)
			}
		}
	}
}

// cutWriter takes so many bytes and then fails.
type cutWriter struct {
	left int
	err  error
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return len(p), nil
	}
	n := w.left
	w.left = 0
	return n, w.err
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// TestVerify_NamesTheChangedLine drops, swaps and changes lines.
func TestVerify_NamesTheChangedLine(t *testing.T) {
	o := open(t, "usr_a")
	o.trade("usr_a", "one")
	o.trade("usr_a", "two")
	file := string(o.statement("usr_a", noon, o.now, proof.JSON))
	lines := strings.SplitAfter(file, "\n") // the summary's two, then one for each transfer
	number := func(n int) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, fmt.Sprintf(`{"number":%d,`, n)) })
	}
	for _, tt := range []struct {
		name   string
		change func(lines []string) []string
		want   string
	}{
		{"dropped", func(l []string) []string { return slices.Delete(l, number(4), number(5)) }, "Number 5 follows number 3"},
		{"doubled", func(l []string) []string { return slices.Insert(l, number(4), l[number(4)]) }, "Number 4 follows number 4"},
		{"swapped", func(l []string) []string {
			l[number(4)], l[number(6)] = l[number(6)], l[number(4)]
			return l
		}, "Number 6 follows number 3"},
		{"another amount", func(l []string) []string {
			l[number(3)] = strings.Replace(l[number(3)], `"available":-600,"inTransit":600`, `"available":-60,"inTransit":60`, 1)
			return l
		}, "Number 3 leaves other totals"},
		{"another account", func(l []string) []string {
			l[number(3)] = strings.Replace(l[number(3)], `"available":-600,"inTransit":600`, `"available":0,"inTransit":600`, 1)
			return l
		}, "Number 3 moves money in a way that no entry of its type can"},
		{"more than there is", func(l []string) []string {
			l[number(3)] = strings.Replace(l[number(3)], `"available":-600,"inTransit":600`, `"available":-6000,"inTransit":6000`, 1)
			return l
		}, "Number 3 moves money in a way that no entry of its type can"},
		{"another total", func(l []string) []string {
			l[number(3)] = strings.Replace(l[number(3)], `"available":400.5`, `"available":4000.5`, 1)
			return l
		}, "Number 3 leaves other totals"},
		{"another count", func(l []string) []string {
			l[number(5)] = strings.Replace(l[number(5)], `"completed":1`, `"completed":2`, 1)
			return l
		}, "Number 5 leaves other totals"},
		{"another type", func(l []string) []string {
			l[number(4)] = strings.Replace(l[number(4)], `"payout.submitted"`, `"payout.requeued"`, 1)
			return l
		}, "Number 4 is not what was recorded"},
		{"another actor", func(l []string) []string {
			l[number(4)] = strings.Replace(l[number(4)], `"system"`, `"admin:usr_b"`, 1)
			return l
		}, "Number 4 is not what was recorded"},
		{"other data", func(l []string) []string {
			l[number(4)] = strings.Replace(l[number(4)], `"digest":"`, `"digest":"`+strings.Repeat("0", 64)+`","was":"`, 1)
			l[number(4)] = regexp.MustCompile(`"was":"[0-9a-f]+",`).ReplaceAllString(l[number(4)], "")
			return l
		}, "Number 4 is not what was recorded"},
		{"another subject", func(l []string) []string {
			l[number(6)] = strings.ReplaceAll(l[number(6)], "two", "one")
			return l
		}, "Number 6 is not what was recorded"},
		{"another time", func(l []string) []string {
			l[number(6)] = strings.Replace(l[number(6)], "12:04:00.000000Z", "12:04:00.000001Z", 1)
			return l
		}, "Number 6 is not what was recorded"},
		{"another description", func(l []string) []string {
			l[number(6)] = strings.Replace(l[number(6)], "Sale two", "Gift two", 1)
			return l
		}, `Number 6 is described as "Gift two", and is "Sale two"`},
		{"first lines dropped", func(l []string) []string {
			fifth := regexp.MustCompile(`"hash":"[0-9a-f]+"`).FindString(l[number(5)])
			for i := range l {
				l[i] = regexp.MustCompile(`"start":\{"number":0,"hash":"[0-9a-f]+"\}`).ReplaceAllString(l[i], `"start":{"number":5,`+fifth+`}`)
			}
			return slices.Delete(l, number(1), number(6))
		}, "The lines do not begin with the seller's first entry"},
		{"another journal", func(l []string) []string {
			for i := range l {
				l[i] = regexp.MustCompile(`"journal":\{"number":10,"hash":"[0-9a-f]+"`).ReplaceAllString(l[i], `"journal":{"number":10,"hash":"`+strings.Repeat("0", 64)+`"`)
			}
			return l
		}, "The entries do not lead to the hash that the checkpoint holds"},
		{"another closing balance", func(l []string) []string {
			l[0] = strings.Replace(l[0], `"closing":{"pending":0,"available":801`, `"closing":{"pending":0,"available":901`, 1)
			return l
		}, "closing balance"},
		{"a shorter period", func(l []string) []string {
			l[0] = strings.Replace(l[0], `"to":"2026-11-02T12:08`, `"to":"2026-11-02T12:06`, 1)
			return l
		}, "not all of the period"},
		{"another seller", func(l []string) []string {
			l[0] = strings.Replace(l[0], "usr_a", "usr_b", 1)
			return l
		}, "holds no such journal of usr_b"},
	} {
		changed := strings.Join(tt.change(slices.Clone(lines)), "")
		if changed == file {
			t.Errorf("%s: nothing was changed in\n%s", tt.name, file)
			continue
		}
		if v := o.verify([]byte(changed)); !strings.Contains(strings.Join(v.Problems, " "), tt.want) {
			t.Errorf("%s: the problems are %q, want %q among them", tt.name, v.Problems, tt.want)
		}
	}
}

func TestVerify_Keys(t *testing.T) {
	o := open(t, "usr_a")
	o.trade("usr_a", "sale")
	file := o.statement("usr_a", noon, o.now, proof.CSV)
	stranger := keys{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}.key()
	for name, tt := range map[string]struct {
		keys    proof.Keys
		problem bool
		trusted bool
	}{
		"the service's key":      {proof.Keys{o.keys.key().ID: o.keys.key()}, false, true},
		"only its id":            {proof.Keys{o.keys.key().ID: {ID: o.keys.key().ID}}, false, true},
		"no key":                 {nil, false, false},
		"another key":            {proof.Keys{stranger.ID: stranger}, true, false},
		"another under its name": {proof.Keys{o.keys.key().ID: {ID: o.keys.key().ID, Public: stranger.Public}}, true, true},
	} {
		v, err := proof.Verify(bytes.NewReader(file), tt.keys)
		if err != nil || len(v.Problems) > 0 != tt.problem || v.Trusted != tt.trusted {
			t.Errorf("with %s: %v, trusted %t, %v", name, v.Problems, v.Trusted, err)
		}
	}
	published, err := o.service.JWKS(t.Context())
	o.must(err)
	parsed, err := proof.ParseKeys(published)
	o.must(err)
	if v, err := proof.Verify(bytes.NewReader(file), parsed); err != nil || len(v.Problems) > 0 || !v.Trusted {
		t.Errorf("with the keys that are published: %+v, %v", v, err)
	}
}

// TestStatement_LongJournal has more entries than are read at once, checkpoints among them, and asks for
// periods all over it.
func TestStatement_LongJournal(t *testing.T) {
	o := open(t, "usr_a")
	for i := range 250 {
		o.trade("usr_a", fmt.Sprint(i))
		if i%90 == 0 {
			_, err := o.service.Make(t.Context(), proof.Trust{})
			o.must(err)
		}
	}
	o.rest()
	for _, from := range []int{0, 1, 2, 499, 798, 799, 800, 801, 990, 997} {
		begin := noon.Add(time.Duration(from) * time.Minute)
		if v := o.verify(o.statement("usr_a", begin, begin.Add(3*time.Minute), proof.JSON)); len(v.Problems) > 0 || v.Entries < 1 {
			t.Errorf("three minutes from minute %d: %d entries, %v", from, v.Entries, v.Problems)
		}
	}
	if v := o.verify(o.statement("usr_a", noon, o.now, proof.CSV)); len(v.Problems) > 0 || v.Entries != 5*250 {
		t.Errorf("all of it: %d entries, %v", v.Entries, v.Problems)
	}
}

// TestStatement_WaitsForACheckpoint asks at once after a trade, when one was made just now.
func TestStatement_WaitsForACheckpoint(t *testing.T) {
	o := open(t, "usr_a", "usr_late")
	o.trade("usr_a", "one")
	first := o.verify(o.statement("usr_a", noon, o.now, proof.JSON))
	o.now = o.now.Add(-2 * time.Minute) // the clock stands still, so that no other one may be made
	o.trade("usr_a", "two")
	o.now = o.now.Add(-4 * time.Minute)
	second := o.verify(o.statement("usr_a", noon, noon.Add(time.Hour), proof.JSON))
	if first.Checkpoint.Number != 1 || second.Checkpoint.Number != 1 || second.Entries != first.Entries || len(second.Problems) > 0 {
		t.Errorf("the statements are of %d entries up to checkpoint %d, then %d up to %d: %v",
			first.Entries, first.Checkpoint.Number, second.Entries, second.Checkpoint.Number, second.Problems)
	}
	o.rest()
	if third := o.verify(o.statement("usr_a", noon, o.now, proof.JSON)); third.Checkpoint.Number != 2 || third.Entries != 10 {
		t.Errorf("later it is of %d entries up to checkpoint %d", third.Entries, third.Checkpoint.Number)
	}
	if _, err := o.service.Statement(t.Context(), "usr_nobody", noon, o.now); err == nil {
		t.Error("there is a statement of nobody")
	}
}

// A transaction reads the clock and then waits for the journal, and instances' clocks differ: times in a journal go back.
func TestStatement_TimesGoBack_EachEntryOnce(t *testing.T) {
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for name, offsets := range map[string][]time.Duration{
		"at midnight":                  {-time.Hour, 2 * time.Millisecond, -3 * time.Millisecond, time.Hour},
		"a clock ten days ahead":       {-6 * 24 * time.Hour, 5 * 24 * time.Hour, -4 * 24 * time.Hour, 24 * time.Hour},
		"ten days ahead for one entry": {-6 * 24 * time.Hour, 5 * 24 * time.Hour, -4 * 24 * time.Hour, -3 * 24 * time.Hour, 24 * time.Hour},
		"a clock twenty days behind":   {-6 * 24 * time.Hour, 24 * time.Hour, -15 * 24 * time.Hour, 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, "usr_a")
			for i, offset := range offsets {
				o.must(o.store.post(o.mac, ledger.Posting{
					Owner: "usr_a", At: december.Add(offset), Type: ledger.SaleRecorded, Subject: fmt.Sprint("sale:", i), Actor: "system", Data: `{"salt":"c2FsdA"}`, Moved: ledger.Sale(100),
				}))
			}
			o.now = december.AddDate(0, 0, 20)
			o.rest()
			first := o.verify(o.statement("usr_a", december.AddDate(0, -1, 0), december, proof.JSON))
			second := o.verify(o.statement("usr_a", december, december.AddDate(0, 1, 0), proof.JSON))
			if problems := append(first.Problems, second.Problems...); len(problems) > 0 {
				t.Error(problems)
			}
			if first.Entries+second.Entries != int64(len(offsets)) || first.Closing != second.Opening {
				t.Errorf("of %d entries the two statements have %d and %d; one closes with %+v, and the next opens with %+v",
					len(offsets), first.Entries, second.Entries, first.Closing, second.Opening)
			}
		})
	}
}

func TestPeriod(t *testing.T) {
	o := open(t)
	for _, tt := range []struct{ from, to, first, end, problem string }{
		{"", "", "2026-10-31T18:30:00Z", "2026-11-02T18:30:00Z", ""},
		{"2026-11-01", "2026-11-02", "2026-10-31T18:30:00Z", "2026-11-02T18:30:00Z", ""},
		{"2026-11-01T00:00:00Z", "2026-11-02T09:30:00.5+05:30", "2026-11-01T00:00:00Z", "2026-11-02T04:00:00.5Z", ""},
		{"2026-11-02", "2026-11-01", "", "", "to"},
		{"2026-11-03", "", "", "", "from"}, // the future, without a last day
		{"yesterday", "", "", "", "from"},
		{"0001-01-01", "2026-13-01", "", "", "from"},
	} {
		first, end, err := o.service.Period(tt.from, tt.to)
		if tt.problem != "" {
			if f := fault.From(err); f == nil || f.Details[tt.problem] == "" {
				t.Errorf("%q to %q is a period from %s to %s", tt.from, tt.to, first, end)
			}
			continue
		}
		if err != nil || first.Format(time.RFC3339Nano) != tt.first || end.Format(time.RFC3339Nano) != tt.end {
			t.Errorf("%q to %q is %s to %s, %v", tt.from, tt.to, first, end, err)
		}
	}
}

var update = flag.Bool("update", false, "rewrite golden files")

// TestStatement_FormatStays holds statements to files that were written before, which others verify with programs of
// their own.
func TestStatement_FormatStays(t *testing.T) {
	o := open(t, "usr_a", "usr_b", "usr_c")
	o.trade("usr_a", "one")
	begin := o.now
	for _, seller := range []string{"usr_a", "usr_b"} {
		o.trade(seller, "-two & größer")
	}
	end := o.now
	o.trade("usr_a", "three")
	for _, f := range formats {
		path := "testdata/statement." + string(f)
		got := o.statement("usr_a", begin, end, f)
		if *update {
			o.must(os.WriteFile(path, got, 0o600))
		}
		want, err := os.ReadFile(path)
		o.must(err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is written as\n%s\nwant\n%s", f, got, want)
		}
		if v := o.verify(want); len(v.Problems) > 0 {
			t.Errorf("%s: %v", f, v.Problems)
		}
	}
}

func FuzzVerify(f *testing.F) {
	seeds := [][]byte{nil, []byte(`{"success":true,"data":{"format":"bursar statement v2"}}`)}
	for _, name := range formats {
		golden, err := os.ReadFile("testdata/statement." + string(name))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, golden)
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	genuine, err := proof.Verify(bytes.NewReader(seeds[2]), nil)
	if err != nil {
		f.Fatal(err)
	}
	trusted := proof.Keys{genuine.Checkpoint.KeyID: {ID: genuine.Checkpoint.KeyID}}
	genuine.Trusted = true
	f.Fuzz(func(t *testing.T, file []byte) {
		v, err := proof.Verify(bytes.NewReader(file), trusted)
		if err != nil || len(v.Problems) > 0 {
			return
		}
		v.From, v.To = genuine.From, genuine.To // any that have the same lines
		if !reflect.DeepEqual(v, genuine) {
			t.Errorf("proven is what nobody signed: %+v", v)
		}
	})
}

// TestFileName_HasTheMarketplacesDays asks for a month that begins on another day in UTC.
func TestFileName_HasTheMarketplacesDays(t *testing.T) {
	o := open(t, "usr_a")
	o.trade("usr_a", "order-1")
	from, to, err := o.service.Period("2026-11-01", "2026-11-30")
	o.must(err)
	s, err := o.service.Statement(t.Context(), "usr_a", from, to)
	o.must(err)
	if got := s.FileName(); got != "statement-2026-11-01-to-2026-11-30" {
		t.Errorf("the file is %s", got)
	}
}
