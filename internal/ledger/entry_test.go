package ledger_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bursar/internal/ledger"
	"bursar/internal/money"
)

// keys are secrets by id, of which the newest makes MACs.
type keys struct {
	newest string
	secret map[string]string
}

func oneKey(kid, secret string) keys { return keys{kid, map[string]string{kid: secret}} }

func (k keys) MAC(message []byte) (string, []byte) {
	mac := hmac.New(sha256.New, []byte(k.secret[k.newest]))
	mac.Write(message)
	return k.newest, mac.Sum(nil)
}

func (k keys) CheckMAC(kid string, message, sum []byte) bool {
	secret, known := k.secret[kid]
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(message)
	return known && hmac.Equal(sum, mac.Sum(nil))
}

var ours = oneKey("k1", "ours")

// TestEntry_Vectors holds entries to vectors that were not made by this program.
func TestEntry_Vectors(t *testing.T) {
	text, err := os.ReadFile("testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Owner, Kid, Key string
		First           ledger.Hash
		Entries         []struct {
			At                                    int64
			Type, Subject, Actor, Data, Text, MAC string
			Moved                                 [6]money.Amount
			After                                 string
			Own, Hash                             ledger.Hash
		}
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	at, read := ledger.NewHead(want.Owner), ledger.NewHead(want.Owner)
	if at.Hash != want.First || ledger.FirstHash(want.Owner) != want.First || len(want.Entries) == 0 {
		t.Fatalf("the first hash is %s, want %s, before %d entries", at.Hash, want.First, len(want.Entries))
	}
	k := oneKey(want.Kid, want.Key)
	for i, v := range want.Entries {
		var e ledger.Entry
		before := at.Hash
		at, e, err = at.Post(k, ledger.Posting{
			Owner: want.Owner, At: time.UnixMicro(v.At), Type: ledger.Type(v.Type), Subject: v.Subject, Actor: v.Actor, Data: v.Data, Moved: movedOf(v.Moved),
		})
		if err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
		if e.Own() != v.Own || ledger.HashOf(v.Text) != v.Own || e.Digest() != ledger.HashOf(v.Data) {
			t.Errorf("entry %d has the hash %s, want %s, that of %q", i+1, e.Own(), v.Own, v.Text)
		}
		if e.Hash != v.Hash || e.Before != before || before.Next(v.Own) != v.Hash || e.MAC != v.MAC || e.After.Text() != v.After || e.Number != int64(i+1) {
			t.Errorf("entry %d is %+v, want %+v", i+1, e, v)
		}
		if got := (ledger.Head{Owner: want.Owner, Number: e.Number, Hash: v.Hash, Balance: e.After, MAC: v.MAC}); at != got {
			t.Errorf("after entry %d the head is %+v, want %+v", i+1, at, got)
		}
		if b, err := ledger.ParseBalance(v.After); err != nil || b != e.After {
			t.Errorf("%q is read as %+v, %v", v.After, b, err)
		}
		if read, err = read.Follow(k, e); err != nil || read != at {
			t.Errorf("entry %d is followed to %+v, %v; want %+v", i+1, read, err, at)
		}
	}
}

// anyJournal is a random journal of an owner, with at least so many entries.
func anyJournal(t *rapid.T, owner string, least int) (ledger.Head, []ledger.Entry) {
	at := ledger.NewHead(owner)
	var entries []ledger.Entry
	texts := rapid.SampledFrom([]string{"a", "1:a", "a 1:a", "größer", " ", "3:1:a"})
	for len(entries) < least || rapid.Bool().Draw(t, "more") {
		typ, m := anyMovement(t)
		if len(entries) == 0 {
			typ, m = ledger.SaleRecorded, ledger.Sale(1000)
		}
		p := ledger.Posting{
			Owner: owner, At: time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "at")), Type: typ,
			Subject: texts.Draw(t, "subject"), Actor: texts.Draw(t, "actor"), Data: `{"n":` + rapid.StringMatching(`[0-9]{1,3}`).Draw(t, "data") + `}`, Moved: m,
		}
		next, e, err := at.Post(ours, p)
		if errors.Is(err, ledger.ErrInsufficient) || errors.Is(err, ledger.ErrBelowZero) {
			if next != at || e != (ledger.Entry{}) {
				t.Fatalf("a refused posting leaves %+v and %+v", next, e)
			}
			p.Type, p.Moved = ledger.PayoutUpdated, ledger.Moved{}
			next, e, err = at.Post(ours, p)
		}
		if err != nil {
			t.Fatal(err)
		}
		at, entries = next, append(entries, e)
	}
	return at, entries
}

// leaves calls visit with each field of a struct, and of the structs in it, and its name.
func leaves(v reflect.Value, path string, visit func(name string, field reflect.Value)) {
	if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]() {
		visit(path, v)
		return
	}
	for i := range v.NumField() {
		leaves(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), visit)
	}
}

// change makes a field another one.
func change(t *rapid.T, field reflect.Value) {
	switch {
	case field.Type() == reflect.TypeFor[time.Time]():
		field.Set(reflect.ValueOf(field.Interface().(time.Time).Add(time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "later")) * time.Microsecond)))
	case field.Kind() == reflect.Bool:
		field.SetBool(!field.Bool())
	case field.CanInt():
		field.SetInt(field.Int() + rapid.SampledFrom([]int64{1, -1, 10, 1 << 40}).Draw(t, "more"))
	default:
		text := field.String()
		field.SetString(rapid.SampledFrom([]string{text + "0", "x" + text, "", "b", text + " "}).Filter(func(s string) bool { return s != text }).Draw(t, "text"))
	}
}

// TestFollow_AnyFieldChanged changes one field of one entry, whatever fields entries have.
func TestFollow_AnyFieldChanged(t *testing.T) {
	var fields []string
	leaves(reflect.ValueOf(ledger.Entry{}), "", func(name string, _ reflect.Value) {
		if name != "Posting.HoldUntil" && name != "DataDigest" { // in the totals after the entry, and for entries without their data
			fields = append(fields, name)
		}
	})
	if len(fields) != 28 {
		t.Fatalf("an entry has the fields %v", fields)
	}
	rapid.Check(t, func(t *rapid.T) {
		_, entries := anyJournal(t, "usr_a", 1)
		at := ledger.NewHead("usr_a")
		i := rapid.IntRange(0, len(entries)-1).Draw(t, "which")
		for _, e := range entries[:i] {
			at, _ = at.Follow(ours, e)
		}
		if _, err := at.Follow(ours, entries[i]); err != nil {
			t.Fatalf("as it was: %v", err)
		}
		name := rapid.SampledFrom(fields).Draw(t, "field")
		e := entries[i]
		leaves(reflect.ValueOf(&e).Elem(), "", func(n string, field reflect.Value) {
			if n == name {
				change(t, field)
			}
		})
		if e == entries[i] {
			t.Fatalf("%s did not change", name)
		}
		// Follow takes the hash before from the head, and without keys there is no MAC to check.
		if _, err := at.Follow(ours, e); errors.Is(err, ledger.ErrTampered) != (name != "Before") {
			t.Fatalf("with another %s: %v", name, err)
		}
		if _, err := at.Follow(nil, e); errors.Is(err, ledger.ErrTampered) != (name != "Before" && name != "MAC") {
			t.Fatalf("without keys, with another %s: %v", name, err)
		}
		if err := e.Check(ours); !errors.Is(err, ledger.ErrTampered) {
			t.Fatalf("by itself, with another %s: %v", name, err)
		}
	})
}

// TestFollow_AnotherOrder drops, repeats and swaps entries.
func TestFollow_AnotherOrder(t *testing.T) {
	follow := func(k ledger.Keys, entries []ledger.Entry) (err error) {
		at := ledger.NewHead("usr_a")
		for _, e := range entries {
			if at, err = at.Follow(k, e); err != nil {
				return err
			}
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		_, entries := anyJournal(t, "usr_a", 3)
		if err := follow(ours, entries); err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, len(entries)-2).Draw(t, "where")
		changed := slices.Clone(entries)
		switch rapid.SampledFrom([]string{"drop", "repeat", "swap"}).Draw(t, "what") {
		case "drop":
			changed = slices.Delete(changed, i, i+1)
		case "repeat":
			changed = slices.Insert(changed, i, changed[i])
		case "swap":
			changed[i], changed[i+1] = changed[i+1], changed[i]
		}
		for _, k := range []ledger.Keys{ours, nil} {
			if err := follow(k, changed); !errors.Is(err, ledger.ErrTampered) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// post appends a sale of an amount to a journal.
func post(t *testing.T, k ledger.Keys, at ledger.Head, amount money.Amount) (ledger.Head, ledger.Entry) {
	t.Helper()
	return postSale(t, k, at, fmt.Sprint("order-", amount), amount)
}

func postSale(t *testing.T, k ledger.Keys, at ledger.Head, subject string, amount money.Amount) (ledger.Head, ledger.Entry) {
	t.Helper()
	next, e, err := at.Post(k, ledger.Posting{
		Owner: at.Owner, At: time.UnixMicro(1), Type: ledger.SaleRecorded, Subject: subject, Actor: "key:1", Data: "{}", Moved: ledger.Sale(amount),
	})
	if err != nil {
		t.Fatal(err)
	}
	return next, e
}

func TestFollow_AnotherOwner(t *testing.T) {
	_, theirs := post(t, ours, ledger.NewHead("usr_b"), 1)
	at := ledger.NewHead("usr_a")
	if _, err := at.Follow(ours, theirs); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("another owner's entry: %v", err)
	}
	theirs.Owner = "usr_a"
	if _, err := at.Follow(ours, theirs); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("another owner's entry under this owner's name: %v", err)
	}
	theirs.Before = at.Hash
	theirs.Hash = theirs.Before.Next(theirs.Own())
	if _, err := at.Follow(nil, theirs); err != nil {
		t.Errorf("with its hash computed again it follows without keys: %v", err)
	}
	if _, err := at.Follow(ours, theirs); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("with its hash computed again: %v", err)
	}
}

// TestKeys_WrongAndRotated checks MACs by the key that they name.
func TestKeys_WrongAndRotated(t *testing.T) {
	at, e := post(t, ours, ledger.NewHead("usr_a"), 1)
	rotated := keys{"k2", map[string]string{"k1": "ours", "k2": "the next"}}
	for name, tt := range map[string]struct {
		keys keys
		fine bool
	}{
		"ours":                      {ours, true},
		"rotated":                   {rotated, true},
		"another under the same id": {oneKey("k1", "another"), false},
		"the same under another id": {oneKey("k2", "ours"), false},
		"none that is known":        {oneKey("k2", "the next"), false},
	} {
		if err := e.Check(tt.keys); (err == nil) != tt.fine || err != nil && !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("with the key %s, the entry: %v", name, err)
		}
		if err := at.Check(tt.keys); (err == nil) != tt.fine || err != nil && !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("with the key %s, the head: %v", name, err)
		}
	}
	next, e2 := post(t, rotated, at, 1)
	if !strings.HasPrefix(e2.MAC, "k2.") || e2.Check(rotated) != nil || next.Check(rotated) != nil {
		t.Errorf("after a rotation the MAC is %q", e2.MAC)
	}
	for _, mac := range []string{"", "k1", "k1.", e.MAC + "=", e.MAC + "A", strings.TrimSuffix(e.MAC, e.MAC[len(e.MAC)-1:]), "." + e.MAC, strings.ReplaceAll(e.MAC, "k1.", "")} {
		forged := e
		if forged.MAC = mac; forged.Check(ours) == nil {
			t.Errorf("the MAC %q is taken for %q", mac, e.MAC)
		}
	}
}

// A MAC is one text: a line break in it, which the base64 decoder would skip, makes it another one.
func TestCheckMAC_LineBreak_Refused(t *testing.T) {
	message := []byte("about\nsomething")
	mac := ledger.MAC(ours, message)
	if !ledger.CheckMAC(ours, mac, message) {
		t.Fatalf("%q is not the MAC that was made", mac)
	}
	for _, lineBreak := range []string{"\n", "\r", "\r\n"} {
		for _, broken := range []string{mac + lineBreak, strings.Replace(mac, ".", "."+lineBreak, 1), mac[:10] + lineBreak + mac[10:]} {
			if ledger.CheckMAC(ours, broken, message) {
				t.Errorf("%q is taken for %q", broken, mac)
			}
		}
	}
}

// TestHead_AnyFieldChanged changes one field of a head that entries led to.
func TestHead_AnyFieldChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, _ := anyJournal(t, "usr_a", 1)
		if err := at.Check(ours); err != nil {
			t.Fatalf("as it was: %v", err)
		}
		leaves(reflect.ValueOf(at), "", func(name string, _ reflect.Value) {
			changed := at
			leaves(reflect.ValueOf(&changed).Elem(), "", func(n string, field reflect.Value) {
				if n == name {
					change(t, field)
				}
			})
			if err := changed.Check(ours); !errors.Is(err, ledger.ErrTampered) {
				t.Fatalf("with another %s: %v", name, err)
			}
			p := ledger.Posting{Owner: changed.Owner, At: time.UnixMicro(1), Type: ledger.SaleRecorded, Subject: "s", Actor: "a", Data: "{}", Moved: ledger.Sale(1)}
			if after, e, err := changed.Post(ours, p); err == nil || after != changed || e != (ledger.Entry{}) {
				t.Fatalf("with another %s it is posted to: %v", name, err)
			}
		})
	})
}

// TestHead_BeforeTheFirstEntry has no MAC, so it must be exactly what a new head is.
func TestHead_BeforeTheFirstEntry(t *testing.T) {
	fresh := ledger.NewHead("usr_a")
	if err := fresh.Check(ours); err != nil {
		t.Errorf("a new head: %v", err)
	}
	for name, change := range map[string]func(*ledger.Head){
		"money":         func(a *ledger.Head) { a.Available = 1 },
		"a count":       func(a *ledger.Head) { a.Counts.Failed = 1 },
		"a number":      func(a *ledger.Head) { a.Number = 1 },
		"another hash":  func(a *ledger.Head) { a.Hash = ledger.FirstHash("usr_b") },
		"no hash":       func(a *ledger.Head) { a.Hash = "" },
		"another owner": func(a *ledger.Head) { a.Owner = "usr_b" },
		"a MAC":         func(a *ledger.Head) { a.MAC = "k1.AAAA" },
	} {
		a := fresh
		if change(&a); !errors.Is(a.Check(ours), ledger.ErrTampered) {
			t.Errorf("a new head with %s: %v", name, a.Check(ours))
		}
	}
}

// TestHead_PutBack says what a MAC can't find: an old head is one that the service wrote. The entries since then
// do not follow on what is posted to it.
func TestHead_PutBack(t *testing.T) {
	old, _ := post(t, ours, ledger.NewHead("usr_a"), 1)
	now, second := post(t, ours, old, 2)
	_, third := post(t, ours, now, 3)
	if err := old.Check(ours); err != nil {
		t.Fatalf("an old head: %v", err)
	}
	fork, forked := post(t, ours, old, 2_000)
	if forked.Number != second.Number || forked.Hash == second.Hash {
		t.Errorf("posted to an old head is %+v, and %+v was there", forked, second)
	}
	if _, err := fork.Follow(ours, third); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("an entry of the one history follows on the other: %v", err)
	}
	if _, err := old.Follow(ours, third); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("an entry follows on a head two before: %v", err)
	}
}

// TestCheckNewest reads the end of a journal of four entries.
func TestCheckNewest(t *testing.T) {
	fresh := ledger.NewHead("usr_a")
	var at [5]ledger.Head // after so many entries
	var all []ledger.Entry
	at[0] = fresh
	for i := range 4 {
		next, e := post(t, ours, at[i], money.Amount(i+1))
		at[i+1], all = next, append(all, e)
	}
	now := at[4]
	richer := now
	richer.Available++
	fork, forked := post(t, ours, at[3], 5)
	_, theirs := post(t, ours, ledger.NewHead("usr_b"), 1)
	changed := slices.Clone(all)
	changed[2].Data = "{ }"
	twice, again := postSale(t, ours, now, all[1].Subject, 2)
	none := ledger.Head{}
	for name, tt := range map[string]struct {
		head   ledger.Head
		from   int64
		known  ledger.Head
		newest []ledger.Entry
		whole  bool
	}{
		"all":                               {now, 0, none, all, true},
		"all, from the first":               {now, 1, none, all, true},
		"from the second":                   {now, 2, none, all[1:], true},
		"the last alone":                    {now, 4, none, all[3:], true},
		"since the second is known":         {now, 0, at[2], all[2:], true},
		"since the second, from it":         {now, 2, at[2], all[2:], true},
		"all is known":                      {now, 0, now, nil, true},
		"no entries yet":                    {fresh, 0, none, nil, true},
		"no entries, where there is one":    {fresh, 1, none, nil, false},
		"another balance":                   {richer, 0, none, all, false},
		"an older head":                     {at[3], 0, none, all, false},
		"another head with that number":     {fork, 0, none, all, false},
		"another entry with that number":    {now, 0, none, append(slices.Clone(all[:3]), forked), false},
		"a changed entry":                   {now, 0, none, changed, false},
		"without the first":                 {now, 0, none, all[1:], false},
		"without the one to begin with":     {now, 2, none, all[2:], false},
		"without one between":               {now, 0, none, append(slices.Clone(all[:1]), all[2:]...), false},
		"without the last":                  {now, 0, none, all[:3], false},
		"without any":                       {now, 0, none, nil, false},
		"without any since what is known":   {now, 0, at[2], nil, false},
		"begins with another owner's":       {now, 1, none, append([]ledger.Entry{theirs}, all[1:]...), false},
		"known is another owner's":          {now, 0, ledger.Head{Owner: "usr_b", Number: 2, Hash: at[2].Hash}, all[2:], false},
		"a sale twice":                      {twice, 0, none, append(slices.Clone(all), again), false},
		"a sale twice, first among all":     {twice, 2, none, append(slices.Clone(all[1:]), again), false},
		"known is before what is read next": {now, 0, at[1], all[2:], false},
	} {
		got, err := tt.head.CheckNewest(ours, tt.from, tt.known, slices.Values(tt.newest))
		if tt.whole && (err != nil || got != tt.head) || !tt.whole && !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("%s: found at entry %d, %v; want it whole: %t", name, got.Number, err, tt.whole)
		}
	}
}

// A listing that was cut says nothing of what is older than its first entry. What is newer has to be in it.
func TestListing_Cut_ExcusesOlderEntriesAlone(t *testing.T) {
	entry := func(number int64) ledger.Entry {
		return ledger.Entry{Number: number, Posting: ledger.Posting{Owner: "usr_a", Type: ledger.BankAccountAdded, Subject: fmt.Sprint("bka_", number)}}
	}
	listed := []ledger.Entry{entry(4), entry(8)}
	for _, cut := range []bool{true, false} {
		limit := len(listed) + 1
		if cut {
			limit = len(listed)
		}
		listing := ledger.ListingOf(ledger.BankAccountAdded, listed, limit)
		for number, want := range map[int64]bool{3: cut, 4: true, 6: false, 8: true, 9: false} {
			if err := listing.Check(entry(number)); (err == nil) != want || err != nil && !errors.Is(err, ledger.ErrNotListed) {
				t.Errorf("entry %d in a listing of entries 4 and 8 that was cut %t: %v; want it complete %t", number, cut, err, want)
			}
		}
	}
}

func TestPost_LacksSomething(t *testing.T) {
	at := ledger.NewHead("usr_a")
	whole := ledger.Posting{Owner: "usr_a", At: time.UnixMicro(1), Type: ledger.AdminDecided, Subject: "s", Actor: "a", Data: "{}"}
	if _, _, err := at.Post(ours, whole); err != nil {
		t.Fatal(err)
	}
	for name, lack := range map[string]func(*ledger.Posting){
		"the owner":       func(p *ledger.Posting) { p.Owner = "" },
		"this owner":      func(p *ledger.Posting) { p.Owner = "usr_b" },
		"the type":        func(p *ledger.Posting) { p.Type = "" },
		"the subject":     func(p *ledger.Posting) { p.Subject = "" },
		"the actor":       func(p *ledger.Posting) { p.Actor = "" },
		"the data":        func(p *ledger.Posting) { p.Data = "" },
		"a movement's id": func(p *ledger.Posting) { p.Moved = ledger.Sale(1) },
	} {
		p := whole
		lack(&p)
		if after, e, err := at.Post(ours, p); err == nil || errors.Is(err, ledger.ErrTampered) || after != at || e != (ledger.Entry{}) {
			t.Errorf("without %s: %+v, %v", name, e, err)
		}
	}
	nobody := ledger.NewHead("")
	p := whole
	p.Owner = ""
	if _, _, err := nobody.Post(ours, p); err == nil {
		t.Error("an entry in nobody's journal")
	}
}

// TestPost_Time keeps microseconds in UTC, as the databases do, so that a stored entry hashes the same.
func TestPost_Time(t *testing.T) {
	when := time.Date(2026, 11, 20, 15, 0, 0, 123_456_789, time.FixedZone("", 19800))
	_, e, err := ledger.NewHead("usr_a").Post(ours, ledger.Posting{Owner: "usr_a", At: when, Type: ledger.AdminDecided, Subject: "s", Actor: "a", Data: "{}"})
	if want := time.Date(2026, 11, 20, 9, 30, 0, 123_456_000, time.UTC); err != nil || e.At != want {
		t.Errorf("%s is kept as %s, %v", when, e.At, err)
	}
}

// TestEntry_DataDigest keeps the chain whole where an entry's data is not at hand, as in a statement. Data that only claims to be a
// digest is changed data.
func TestEntry_DataDigest(t *testing.T) {
	before := ledger.NewHead("usr_a")
	_, e := post(t, ours, before, 1)
	whole := e
	digest := e.Digest()
	e.Data, e.DataDigest = "", digest
	if e.Digest() != digest || e.Check(ours) != nil {
		t.Errorf("by its data's digest: %v", e.Check(ours))
	}
	if _, err := before.Follow(ours, e); err != nil {
		t.Errorf("by its data's digest it does not follow: %v", err)
	}
	for _, data := range []string{`{"erased":"` + string(digest) + `"}`, string(digest), ""} {
		e = whole
		if e.Data = data; e.Check(ours) == nil {
			t.Errorf("the data %s is taken for what it replaces", data)
		}
	}
}

func TestParseBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.Int64().Draw(t, name) }
		b := ledger.Balance{
			Pending: money.Amount(n("pending")), Available: money.Amount(n("available")), InTransit: money.Amount(n("in transit")),
			Earned: money.Amount(n("earned")), Withdrawn: money.Amount(n("withdrawn")),
			Counts:    ledger.Counts{Sales: n("sales"), Processing: n("processing"), Completed: n("completed"), Failed: n("failed"), Cancelled: n("cancelled")},
			HoldUntil: rapid.SampledFrom([]int64{0, 1793610063000004}).Draw(t, "hold"), Frozen: rapid.Bool().Draw(t, "frozen"),
		}
		if read, err := ledger.ParseBalance(b.Text()); err != nil || read != b {
			t.Fatalf("%q is read as %+v, %v", b.Text(), read, err)
		}
	})
	for _, text := range []string{
		"", "0", "0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0 1 2", "0 0 0 0 0 0 0 0 0 0 0 1 0", "0 0 0 0 0 0 0 0 0 00", "0 0 0 0 0 0 0 0 0 +1", "0 0 0 0 0 0 0 0 0 -0",
		"0 0 0 0 0 0 0 0 0 0 ", " 0 0 0 0 0 0 0 0 0 0", "0  0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 x", "0 0 0 0 0 0 0 0 0 9223372036854775808", "0 0 0 0 0 0 0 0 0 1_0",
	} {
		if b, err := ledger.ParseBalance(text); err == nil {
			t.Errorf("%q is read as %+v", text, b)
		}
	}
}

// FuzzEntry compares two entries: they have the same hash only if they are the same.
func FuzzEntry(f *testing.F) {
	f.Fuzz(func(t *testing.T,
		number, at int64, typ, subject, actor, data string, pending, fees, left, cancelled int64,
		number2, at2 int64, typ2, subject2, actor2, data2 string, pending2, fees2, left2, cancelled2 int64,
	) {
		entry := func(number, at int64, typ, subject, actor, data string, pending, fees, left, cancelled int64) ledger.Entry {
			return ledger.Entry{
				Posting: ledger.Posting{
					Owner: "usr_a", At: time.UnixMicro(at), Type: ledger.Type(typ), Subject: subject, Actor: actor, Data: data,
					Moved: ledger.Moved{Pending: money.Amount(pending), Fees: money.Amount(fees)},
				},
				Number: number, After: ledger.Balance{Pending: money.Amount(left), Counts: ledger.Counts{Cancelled: cancelled}},
			}
		}
		one := entry(number, at, typ, subject, actor, data, pending, fees, left, cancelled)
		two := entry(number2, at2, typ2, subject2, actor2, data2, pending2, fees2, left2, cancelled2)
		if (one.Digest() == two.Digest()) != (data == data2) {
			t.Errorf("%q and %q have the digests %s and %s", data, data2, one.Digest(), two.Digest())
		}
		a, b := one, two
		a.Data, b.Data = string(one.Digest()), string(two.Digest()) // all that is hashed of the data
		if same := a == b; same != (one.Own() == two.Own()) {
			t.Errorf("%+v and %+v have the hashes %s and %s", one, two, one.Own(), two.Own())
		}
		first := ledger.FirstHash("usr_a")
		if (one.Own() == two.Own()) != (first.Next(one.Own()) == first.Next(two.Own())) || first.Next(one.Own()) == one.Own().Next(first) {
			t.Errorf("the chain does not tell %s from %s", one.Own(), two.Own())
		}
	})
}
