package keyset

import (
	"path/filepath"
	"testing"
)

// FuzzDecrypt decrypts what was not encrypted, or for something else: it never comes out as anything.
func FuzzDecrypt(f *testing.F) {
	keys, err := Open(f.Context(), File(filepath.Join(f.TempDir(), "keys.json")))
	if err != nil {
		f.Fatal(err)
	}
	const plain, purpose = "50100234567812", "bka_1"
	genuine, err := keys.Encrypt(plain, purpose)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(genuine, purpose)
	f.Add(genuine, "bka_2")
	f.Add(genuine[:len(genuine)-1], purpose)
	f.Add(genuine+"A", purpose)
	f.Fuzz(func(t *testing.T, encrypted, purposeText string) {
		text, err := keys.Decrypt(encrypted, purposeText)
		if isGenuine := encrypted == genuine && purposeText == purpose; isGenuine != (err == nil) || (text == plain) != isGenuine || err != nil && text != "" {
			t.Errorf("%q for %q opens as %q: %v", encrypted, purposeText, text, err)
		}
	})
}

// FuzzDocument reads any document as a key set: it is refused, or can encrypt and decrypt.
func FuzzDocument(f *testing.F) {
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := FromJSON(document)
		if err != nil {
			if keys != nil {
				t.Error("refused, and used")
			}
			return
		}
		encrypted, err := keys.Encrypt("x", "y")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := keys.Decrypt(encrypted, "y"); err != nil || text != "x" {
			t.Errorf("opens as %q: %v", text, err)
		}
	})
}
