package keyset

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMAC_IsOfItsMessageAndKey(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	kid, sum := s.MAC([]byte("entry 1"))
	if kid == "" || strings.Contains(kid, ".") || len(sum) != sha256.Size {
		t.Fatalf("MAC = %q, %d bytes", kid, len(sum))
	}
	if again := open(t, path); !again.CheckMAC(kid, []byte("entry 1"), sum) {
		t.Error("the same keys do not know their MAC after a restart")
	}
	other := open(t, pathIn(t))
	d := newDocument(time.Now())
	d.Encryption = []encryptionKey{{KID: kid, Key: newSecret()}}
	flipped := slices.Clone(sum)
	flipped[0] ^= 1
	for name, tt := range map[string]struct {
		set     *Set
		kid     string
		message string
		sum     []byte
	}{
		"another message":            {s, kid, "entry 2", sum},
		"a longer message":           {s, kid, "entry 1 ", sum},
		"another sum":                {s, kid, "entry 1", flipped},
		"a shorter sum":              {s, kid, "entry 1", sum[:31]},
		"no sum":                     {s, kid, "entry 1", nil},
		"no key":                     {s, "", "entry 1", sum},
		"an unknown key":             {s, "nokey", "entry 1", sum},
		"other keys":                 {other, kid, "entry 1", sum},
		"another key under the same": {setOf(t, d), kid, "entry 1", sum},
	} {
		if tt.set.CheckMAC(tt.kid, []byte(tt.message), tt.sum) {
			t.Errorf("%s: the MAC is taken for good", name)
		}
	}
}

// TestMAC_KeyIsDerived from the key that encrypts. Neither key makes the sums of the other, and no MAC tells the key.
func TestMAC_KeyIsDerived(t *testing.T) {
	d := newDocument(time.Now())
	key := d.Encryption[0].Key
	kid, sum := setOf(t, d).MAC([]byte("entry 1"))
	hmacOf := func(key, message []byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(message)
		return h.Sum(nil)
	}
	if kid != d.Encryption[0].KID || bytes.Equal(sum, hmacOf(key, []byte("entry 1"))) {
		t.Errorf("the MAC of key %s is made with the key that encrypts", kid)
	}
	if want := hmacOf(hmacOf(key, []byte("bursar journal mac v1")), []byte("entry 1")); !bytes.Equal(sum, want) {
		t.Errorf("MAC = %x, want %x: every entry that is stored would seem tampered with", sum, want)
	}
}

func TestMAC_AfterRotation(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	first, sum := s.MAC([]byte("entry 1"))
	d, err := decode(s.Document())
	if err != nil {
		t.Fatal(err)
	}
	d.Encryption = append(d.Encryption, encryptionKey{KID: "newest", Key: newSecret()})
	rotated := setOf(t, d)
	if kid, _ := rotated.MAC([]byte("entry 2")); kid != "newest" {
		t.Errorf("a MAC is made with %s, want the newest key", kid)
	}
	if !rotated.CheckMAC(first, []byte("entry 1"), sum) {
		t.Error("what an older key authenticated is not known any more")
	}
}

// TestCheckMAC_KeyOfAnotherInstance has an entry written with a key that was added since the keys were read.
func TestCheckMAC_KeyOfAnotherInstance(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	d, err := decode(s.Document())
	if err != nil {
		t.Fatal(err)
	}
	d.Encryption = append(d.Encryption, encryptionKey{KID: "newest", Key: newSecret()})
	next, err := encode(d)
	if err != nil {
		t.Fatal(err)
	}
	if replaced, err := s.source.Replace(t.Context(), s.Document(), next); err != nil || !replaced {
		t.Fatalf("replaced %t, %v", replaced, err)
	}
	kid, sum := open(t, path).MAC([]byte("entry 1"))
	s.readAt = time.Now().Add(-time.Hour)
	if kid != "newest" || !s.CheckMAC(kid, []byte("entry 1"), sum) {
		t.Errorf("an instance does not look for key %s, which it does not know", kid)
	}
}
