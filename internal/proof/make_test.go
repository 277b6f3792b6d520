package proof_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"bursar/internal/ledger"
	"bursar/internal/proof"
)

// make makes a checkpoint an hour later.
func (o *fixture) make() proof.Checkpoint {
	o.Helper()
	o.rest()
	c, err := o.service.Make(o.Context(), proof.Trust{})
	o.must(err)
	return c
}

// checkpointedAt is where the newest checkpoint has a seller's journal.
func (o *fixture) checkpointedAt(seller string) ledger.Head {
	o.Helper()
	last, _, err := o.store.LastCheckpoint(o.Context())
	o.must(err)
	b, err := o.store.JournalState(o.Context(), last.Number, seller)
	o.must(err)
	return b.Checkpointed
}

// rehash computes the chain of a journal again, as an attacker can who has the database and no keys. The MACs stay.
func (j *journal) rehash() {
	at := ledger.NewHead(j.now.Owner)
	for i := range j.entries {
		e := &j.entries[i]
		e.Hash = at.Hash.Next(e.Own())
		at.Hash = e.Hash
	}
	j.now.Hash = at.Hash
}

// TestMake_LeavesABrokenJournal changes a journal as an attacker with the database could. Checkpoints leave it where
// they had it, say so in the log, and go on with the other journals.
func TestMake_LeavesABrokenJournal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(o *fixture, j *journal, before journal)
		want   string
	}{
		{"row of totals raised", func(_ *fixture, j *journal, _ journal) { j.now.Available += 100 }, "was not written by the service"},
		{"row of totals of an earlier entry", func(_ *fixture, j *journal, _ journal) {
			e := j.entries[7]
			j.now = ledger.Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After, MAC: e.MAC}
			j.entries[7].Number, j.entries = 99, j.entries[:7]
		}, "there is no entry after entry 7"},
		{"row of totals behind the entries", func(_ *fixture, j *journal, _ journal) {
			e := j.entries[2]
			j.now = ledger.Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After, MAC: e.MAC}
		}, "it went back from entry 5 to entry 3"},
		{"put back to an older state", func(_ *fixture, j *journal, before journal) {
			j.entries, j.now = before.entries, before.now
		}, "it went back from entry 5 to entry 3"},
		{"put back to none", func(_ *fixture, j *journal, _ journal) {
			j.entries, j.now = nil, ledger.NewHead(j.now.Owner)
		}, "it went back from entry 5 to entry 0"},
		{"put back, and other entries since", func(o *fixture, j *journal, before journal) {
			j.entries, j.now = before.entries, before.now
			for j.now.Number < 12 {
				o.must(o.store.post(o.mac, ledger.Posting{
					Owner: j.now.Owner, At: o.now, Type: ledger.SaleRecorded, Subject: "another", Actor: "system", Data: "{}", Moved: ledger.Sale(1),
				}))
			}
		}, "entry 6 of usr_a"},
		{"put back, and as many entries since", func(o *fixture, j *journal, before journal) {
			j.entries, j.now = before.entries, before.now
			for j.now.Number < 5 {
				o.must(o.store.post(o.mac, ledger.Posting{
					Owner: j.now.Owner, At: o.now, Type: ledger.SaleRecorded, Subject: "another", Actor: "system", Data: "{}", Moved: ledger.Sale(1),
				}))
			}
		}, "the row of totals is not that after entry 5"},
		{"an entry dropped", func(_ *fixture, j *journal, _ journal) {
			j.entries = append(j.entries[:7:7], j.entries[8:]...)
		}, "entry 9 of usr_a follows on entry 7"},
		{"an entry's amount", func(_ *fixture, j *journal, _ journal) {
			j.entries[5].Moved = ledger.Sale(1)
		}, "entry 6 of usr_a says other totals"},
		{"an entry's data", func(_ *fixture, j *journal, _ journal) {
			j.entries[5].Data = "{}"
		}, "entry 6 of usr_a does not have its hash"},
		{"an entry, and the chain computed again", func(_ *fixture, j *journal, _ journal) {
			j.entries[5].Data = "{}"
			j.rehash()
		}, "was not written by the service"},
		{"an entry, the chain and a MAC by another key", func(_ *fixture, j *journal, _ journal) {
			forged := memory{journals: map[string]*journal{}}
			forged.open("usr_a")
			for _, e := range j.entries {
				_ = forged.post(macKey("an attacker's"), e.Posting)
			}
			*j = journal{entries: forged.journals["usr_a"].entries, now: forged.journals["usr_a"].now, checkpointed: j.checkpointed, behind: j.behind}
		}, "was not written by the service"},
		{"another seller's entry", func(o *fixture, j *journal, _ journal) {
			j.entries[5] = o.store.journals["usr_b"].entries[5]
		}, "entry 6 of usr_b follows on entry 5 of usr_a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := open(t, "usr_a", "usr_b")
			o.trade("usr_a", "one")
			o.trade("usr_b", "one")
			j := o.store.journals["usr_a"]
			before := journal{entries: append([]ledger.Entry{}, j.entries[:3]...)}
			e := j.entries[2]
			before.now = ledger.Head{Owner: e.Owner, Number: e.Number, Hash: e.Hash, Balance: e.After, MAC: e.MAC}
			o.make()
			kept := o.checkpointedAt("usr_a")
			o.trade("usr_a", "two")
			o.trade("usr_b", "two")
			tt.change(o, j, before)
			o.log.Reset()
			o.make()
			if at := o.checkpointedAt("usr_a"); at != kept {
				t.Errorf("the checkpoint has the journal at %+v, and had it at %+v", at, kept)
			}
			if at := o.checkpointedAt("usr_b"); at.Number != 10 {
				t.Errorf("the other seller's journal is in the checkpoint up to entry %d", at.Number)
			}
			if log := o.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "seller=usr_a") || !strings.Contains(log, tt.want) {
				t.Errorf("the log says %s\nwant %q", log, tt.want)
			}
			if _, err := o.service.Statement(o.Context(), "usr_a", time.Time{}, o.now.Add(time.Hour)); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("a statement of a journal that was left behind: %v", err)
			}
			o.log.Reset()
			if o.make(); !strings.Contains(o.log.String(), "seller=usr_a") || o.checkpointedAt("usr_a") != kept {
				t.Error("the next checkpoint takes the journal in, or does not mention it")
			}
		})
	}
}

// TestMake_BrokenBeforeItsFirstCheckpoint is in no checkpoint at all.
func TestMake_BrokenBeforeItsFirstCheckpoint(t *testing.T) {
	o := open(t, "usr_a", "usr_b")
	o.trade("usr_a", "one")
	o.trade("usr_b", "one")
	o.store.journals["usr_a"].now.Available++
	if c := o.make(); c.Journals != 1 || o.checkpointedAt("usr_a").Hash != "" {
		t.Errorf("the checkpoint has %d journals, and the broken one at %+v", c.Journals, o.checkpointedAt("usr_a"))
	}
}

// TestMake_AfterAForgedCheckpoint makes none after one that was changed in the database.
func TestMake_AfterAForgedCheckpoint(t *testing.T) {
	attacker := keys{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}
	for _, tt := range []struct {
		name   string
		change func(o *fixture)
		want   string
	}{
		{"a journal's hash", func(o *fixture) {
			at := o.store.journals["usr_a"].checkpointed[1]
			at.Hash = ledger.HashOf("another")
			o.store.journals["usr_a"].checkpointed[1] = at
		}, "checkpoint 1 does not hold the journals"},
		{"a journal's number", func(o *fixture) {
			at := o.store.journals["usr_a"].checkpointed[1]
			at.Number--
			o.store.journals["usr_a"].checkpointed[1] = at
		}, "checkpoint 1 does not hold the journals"},
		{"a seller dropped", func(o *fixture) { delete(o.store.journals, "usr_a") }, "checkpoint 1 does not hold the journals"},
		{"the root", func(o *fixture) { o.store.checkpoints[0].Root = strings.Repeat("0", 64) }, "the signature is not that of its key"},
		{"signed by an attacker", func(o *fixture) {
			o.store.checkpoints = nil
			_, err := o.with(attacker, o.mac).Make(o.Context(), proof.Trust{})
			o.must(err)
		}, "is not in the key set"},
	} {
		o := open(t, "usr_a", "usr_b")
		o.trade("usr_a", "one")
		o.make()
		tt.change(o)
		c, err := o.service.Make(t.Context(), proof.Trust{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: checkpoint %d, %v; want %q", tt.name, c.Number, err, tt.want)
		}
	}
}

// TestMake_Trust goes on from a key that the operator approves by its id, and from no other.
func TestMake_Trust(t *testing.T) {
	o := open(t, "usr_a")
	o.trade("usr_a", "one")
	o.make()
	next := o.with(keys{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}, o.mac)
	if _, err := next.Make(t.Context(), proof.Trust{Key: "another"}); err == nil {
		t.Error("a checkpoint was made after one that another key signed")
	}
	if c, err := next.Make(t.Context(), proof.Trust{Key: o.keys.key().ID}); err != nil || c.Number != 2 {
		t.Errorf("with a trusted key: checkpoint %d, %v", c.Number, err)
	}
}

// TestMake_ContinuesTheLast holds each checkpoint to the one before.
func TestMake_ContinuesTheLast(t *testing.T) {
	o := open(t, "usr_a", "usr_idle")
	var last proof.Checkpoint
	for i := range 3 {
		o.trade("usr_a", fmt.Sprint(i))
		c := o.make()
		o.must(c.Follows(last))
		o.must(c.SignedBy(o.keys.key()))
		if at := o.checkpointedAt("usr_a"); c.Journals != 2 || at.Number != int64(5*(i+1)) || at.Hash != o.store.journals["usr_a"].now.Hash {
			t.Errorf("checkpoint %d has %d journals, and usr_a's at %+v", c.Number, c.Journals, at)
		}
		last = c
	}
	if c := o.make(); c.Root != last.Root {
		t.Error("nothing happened, and the root is another one")
	}
	if len(o.store.journals["usr_a"].checkpointed) != 3 || len(o.store.journals["usr_idle"].checkpointed) != 1 {
		t.Error("journals that did not change were written again")
	}
}

func TestMakeDue(t *testing.T) {
	o := open(t, "usr_a")
	for _, tt := range []struct {
		later time.Duration
		want  int
	}{{0, 1}, {59 * time.Minute, 1}, {time.Minute, 2}, {-2 * time.Hour, 3}} {
		o.now = o.now.Add(tt.later)
		more, err := o.service.MakeDue(t.Context())
		o.must(err)
		if got := len(o.store.checkpoints); got != tt.want || more != 0 {
			t.Errorf("%s later there are %d checkpoints, want %d", tt.later, got, tt.want)
		}
	}
	o.rest()
	o.store.holder, o.store.until = "another instance", o.now.Add(time.Minute)
	if _, err := o.service.MakeDue(t.Context()); err != nil || len(o.store.checkpoints) != 3 {
		t.Errorf("while another instance makes one: %d checkpoints, %v", len(o.store.checkpoints), err)
	}
	if _, err := o.service.Make(t.Context(), proof.Trust{}); err == nil {
		t.Error("two instances make a checkpoint at once")
	}
}

// TestMismatches holds the journals against what was kept elsewhere.
func TestMismatches(t *testing.T) {
	type kept = []proof.Kept
	setUp := func(t *testing.T) (*fixture, kept) {
		t.Helper()
		o := open(t, "usr_a", "usr_b")
		o.trade("usr_a", "one")
		c := o.make()
		statement, err := proof.ReadKept(bytes.NewReader(o.statement("usr_a", noon, o.now, proof.JSON)))
		o.must(err)
		text := c.Text() + "signature " + c.Signature + "\n"
		checkpoints, err := proof.ReadKept(strings.NewReader(text + text))
		o.must(err)
		if len(checkpoints) != 2 || checkpoints[1].Checkpoint != c || statement[0].Checkpoint != c || statement[0].Journal.Number != 5 {
			t.Fatalf("read are %+v and %+v", checkpoints, statement)
		}
		if _, err := proof.ReadKept(strings.NewReader(strings.Replace(text, "journals 2", "journals 3", 1) + "more\n")); err == nil {
			t.Error("a checkpoint with more below it was read")
		}
		first, _, _ := strings.Cut(text, "\n")
		for _, damaged := range []string{first, first + " \n", first + "2\nnumber 1\n", first + " \n" + text} {
			if kept, err := proof.ReadKept(strings.NewReader(damaged)); err == nil {
				t.Errorf("%d checkpoints were read of %q", len(kept), damaged)
			}
		}
		o.trade("usr_a", "two")
		return o, append(statement, checkpoints[0])
	}
	for _, tt := range []struct {
		name       string
		change     func(o *fixture)
		statement  string
		checkpoint string
	}{
		{"nothing", func(*fixture) {}, "", ""},
		{"an entry", func(o *fixture) { o.store.journals["usr_a"].entries[3].Actor = "admin:usr_x" }, "usr_a's first 5 entries are not", ""},
		{"a MAC", func(o *fixture) { o.store.journals["usr_a"].entries[3].MAC = "k.AAAA" }, "usr_a's first 5 entries are not", ""},
		{"the last entries dropped", func(o *fixture) {
			o.store.journals["usr_a"].entries = o.store.journals["usr_a"].entries[:4]
		}, "usr_a's first 5 entries are not", ""},
		{"other entries by the service", func(o *fixture) {
			o.store.open("usr_a")
			o.trade("usr_a", "another")
		}, "usr_a's first 5 entries are not", ""},
		{"checkpoints dropped", func(o *fixture) { o.store.checkpoints = nil }, "checkpoint 1 of", "is not in the database"},
		{"another checkpoint", func(o *fixture) { o.store.checkpoints[0].Journals++ }, "checkpoint 1 of", "is another one than"},
	} {
		o, kept := setUp(t)
		tt.change(o)
		for i, want := range []string{tt.statement, tt.checkpoint} {
			got, err := o.service.Mismatches(t.Context(), kept[i])
			if text := strings.Join(got, " "); err != nil || (want == "") != (text == "") || !strings.Contains(text, want) {
				t.Errorf("%s: %q, %v; want %q", tt.name, text, err, want)
			}
		}
	}
	o, kept1 := setUp(t)
	kept1[1].Checkpoint.Root = strings.Repeat("0", 64)
	if _, err := o.service.Mismatches(t.Context(), kept1[1]); err == nil {
		t.Error("what nobody signed is taken as kept")
	}
	stranger := open(t, "usr_a").with(keys{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}, "another")
	if _, err := stranger.Mismatches(t.Context(), kept1[0]); err == nil {
		t.Error("what another installation signed is taken as kept")
	}
}

// TestStatement_OfATamperedJournal gives a file that does not verify, or none.
func TestStatement_OfATamperedJournal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(j *journal)
		want   string
	}{
		{"an entry", func(j *journal) { j.entries[6].Subject = "another" }, "Number 7 is not what was recorded"},
		{"an entry, and the chain computed again", func(j *journal) {
			j.entries[6].Subject = "another"
			j.rehash()
		}, "Number 10 is not what was recorded"}, // the first with a hash in a checkpoint
		{"an entry dropped", func(j *journal) { j.entries = append(j.entries[:6:6], j.entries[7:]...) }, "Number 8 follows number 6"},
		{"the last entries dropped", func(j *journal) { j.entries = j.entries[:12] }, "The checkpoint holds 15 entries of this journal, and the statement accounts for 12."},
	} {
		o := open(t, "usr_a")
		for _, ref := range []string{"one", "two", "three"} {
			o.trade("usr_a", ref)
			o.make()
		}
		tt.change(o.store.journals["usr_a"])
		v, err := proof.Verify(bytes.NewReader(o.statement("usr_a", noon, o.now, proof.CSV)), nil)
		if got := strings.Join(v.Problems, " "); err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	o := open(t, "usr_a")
	o.trade("usr_a", "one")
	begin := o.now
	o.trade("usr_a", "two")
	o.make()
	j := o.store.journals["usr_a"]
	j.entries = append(j.entries[:4:4], j.entries[5:]...)
	if _, err := o.service.Statement(t.Context(), "usr_a", begin, o.now); err == nil || !strings.Contains(err.Error(), "entry 5 of usr_a is not there") {
		t.Errorf("a statement was made without the entry before its period: %v", err)
	}
}

func TestNew_LacksAPart(t *testing.T) {
	if _, err := proof.New(proof.Options{}); err == nil {
		t.Error("a service was made of nothing")
	}
}

// TestService_StoreFails lets each call to the store fail in turn. The error comes back, and nothing is taken for done.
func TestService_StoreFails(t *testing.T) {
	for name, do := range map[string]func(o *fixture, kept proof.Kept) error{
		"MakeDue": func(o *fixture, _ proof.Kept) error {
			_, err := o.service.MakeDue(o.Context())
			return err
		},
		"Statement": func(o *fixture, _ proof.Kept) error {
			s, err := o.service.Statement(o.Context(), "usr_a", noon.Add(time.Minute), noon.Add(time.Hour))
			if err == nil {
				err = s.Write(io.Discard, proof.JSON)
			}
			return err
		},
		"Statement made elsewhere": func(o *fixture, _ proof.Kept) error {
			_, err := o.with(o.keys, o.mac).Statement(o.Context(), "usr_a", noon.Add(time.Minute), noon.Add(time.Hour))
			return err
		},
		"Mismatches": func(o *fixture, kept proof.Kept) error {
			_, err := o.service.Mismatches(o.Context(), kept)
			return err
		},
		"Mismatches with an old key": func(o *fixture, kept proof.Kept) error {
			_, err := o.with(keys{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}, o.mac).Mismatches(o.Context(), kept)
			return err
		},
		"JWKS": func(o *fixture, _ proof.Kept) error {
			_, err := o.service.JWKS(o.Context())
			return err
		},
	} {
		calls := 0
		for isReached := true; isReached; calls++ {
			o := open(t, "usr_a", "usr_b")
			o.trade("usr_a", "one")
			o.make()
			kept, err := proof.ReadKept(bytes.NewReader(o.statement("usr_a", noon, o.now, proof.JSON)))
			o.must(err)
			o.trade("usr_a", "two")
			o.rest()
			o.store.failIn = calls + 1
			err = do(o, kept[0])
			if isReached = o.store.failIn <= 0; isReached != errors.Is(err, errStore) {
				t.Errorf("%s, when call %d fails: %v", name, calls+1, err)
			}
			o.store.failIn = 0
			if c := o.make(); c.SignedBy(o.keys.key()) != nil || o.checkpointedAt("usr_a").Number != 10 {
				t.Errorf("%s, after call %d failed: the next checkpoint has the journal at %+v", name, calls+1, o.checkpointedAt("usr_a"))
			}
		}
		if calls < 2 {
			t.Errorf("%s never failed", name)
		}
	}
}
