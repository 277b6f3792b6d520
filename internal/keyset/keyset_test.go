package keyset

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bursar/internal/bank"
	"bursar/internal/ledger"
)

var (
	_ bank.Keys   = (*Set)(nil)
	_ ledger.Keys = (*Set)(nil)
)

func pathIn(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "data", "keys.json")
}

func open(t *testing.T, path string) *Set {
	t.Helper()
	s, err := Open(t.Context(), File(path))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeysSurviveARestart(t *testing.T) {
	path := pathIn(t)
	first := open(t, path)
	encrypted, err := first.Encrypt("000123456789", "ba_1")
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, path)
	kid, key := first.SigningKey()
	kidAgain, keyAgain := second.SigningKey()
	if kid != kidAgain || !key.Equal(keyAgain) {
		t.Error("the signing key changed")
	}
	if !bytes.Equal(first.RefreshMAC([]byte("m")), second.RefreshMAC([]byte("m"))) {
		t.Error("the refresh secret changed")
	}
	if first.Fingerprint() != second.Fingerprint() {
		t.Error("the fingerprint changed")
	}
	if got, err := second.Decrypt(encrypted, "ba_1"); err != nil || got != "000123456789" {
		t.Errorf("Open = %q, %v", got, err)
	}
}

func TestFile_OwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such bits")
	}
	path := pathIn(t)
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, want 0600", info.Mode().Perm())
	}
	leftovers, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(leftovers) != 1 {
		t.Errorf("%d files in the directory, want 1 (%v)", len(leftovers), err)
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o660} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), File(path)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("Open of a file with mode %v: %v, want an error that says what to do", mode, err)
		}
	}
}

func TestSet_BrokenFile_KeepsKeys(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	kid, _ := s.SigningKey()
	var said []string
	s.OnTrouble(func(err error) { said = append(said, err.Error()) })
	for i, text := range []string{"{", "[", string(s.Document()), ""} {
		s.readAt = time.Now().Add(-time.Hour)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, _ := s.SigningKey(); again != kid {
			t.Error("the keys changed")
		}
		if _, ok := s.VerificationKey("unknown"); ok {
			t.Error("an unknown key was found")
		}
		if want := []int{1, 1, 1, 2}[i]; len(said) != want || !strings.Contains(said[want-1], path) {
			t.Errorf("after text %d was said %q, want %d messages", i, said, want)
		}
	}
}

// An attacker who can write to the place of the key set replaces it by another one while a service runs.
func TestSet_ForeignFile_KeepsKeys(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	kid, sum := s.MAC([]byte("message"))
	other, err := encode(newDocument(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	s.readAt = time.Now().Add(-time.Hour)
	if again, _ := s.MAC([]byte("message")); again != kid || !s.CheckMAC(kid, []byte("message"), sum) {
		t.Error("the service took up the keys of another installation")
	}
}

func TestRotate_OtherRotationRunning_IsError(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Rotate(t.Context(), time.Now(), 0)
	if err == nil || !strings.Contains(err.Error(), path+".new") {
		t.Errorf("Rotate beside another = %v, want an error that names the file", err)
	}
	if _, err := os.Stat(path + ".new"); err != nil {
		t.Error("the other's work was removed")
	}
}

func TestBrokenKeySets(t *testing.T) {
	good := newDocument(time.Now())
	tests := map[string]struct {
		change func(*document)
		want   string
	}{
		"version":                {func(d *document) { d.Version = 2 }, "version is 2"},
		"no signing key":         {func(d *document) { d.Signing = nil }, "lacks a signing key"},
		"no encryption key":      {func(d *document) { d.Encryption = nil }, "lacks a signing key or an encryption key"},
		"short seed":             {func(d *document) { d.Signing = []signingKey{{KID: "x", Seed: []byte("short")}} }, "signing key number 1"},
		"foreign kid":            {func(d *document) { d.Signing = []signingKey{{KID: "x", Seed: good.Signing[0].Seed}} }, "signing key number 1"},
		"signing key twice":      {func(d *document) { d.Signing = append(d.Signing, d.Signing[0]) }, "signing key number 2"},
		"short refresh":          {func(d *document) { d.RefreshSecret = []byte("short") }, "refresh secret"},
		"short encryption key":   {func(d *document) { d.Encryption = []encryptionKey{{KID: "x", Key: []byte("short")}} }, "encryption key number 1"},
		"encryption key id":      {func(d *document) { d.Encryption = []encryptionKey{{KID: "a.b", Key: newSecret()}} }, "encryption key number 1"},
		"encryption key unnamed": {func(d *document) { d.Encryption = []encryptionKey{{Key: newSecret()}} }, "encryption key number 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDocument(time.Now())
			tt.change(&d)
			data, err := encode(d)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := FromJSON(data); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("FromJSON = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestFromJSON_Invalid_IsError(t *testing.T) {
	good, err := encode(newDocument(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "{", "null", "[]", "nonsense", string(good[:len(good)/2]), string(good) + "{}", `{"version":1,"hunter2":"hunter2"}`} {
		if _, err := FromJSON([]byte(data)); err == nil {
			t.Errorf("FromJSON(%.20q) took it", data)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("an error quotes what it read: %v", err)
		}
	}
}

func TestKeysFromElsewhere(t *testing.T) {
	path := pathIn(t)
	file := open(t, path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	given, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	if given.Fingerprint() != file.Fingerprint() || !bytes.Equal(given.JWKS(), file.JWKS()) {
		t.Error("the same keys differ")
	}
	if err := given.Rotate(t.Context(), time.Now(), 0); err == nil {
		t.Error("keys that are kept elsewhere were rotated here")
	}
}

func TestPublishedKeysArePublic(t *testing.T) {
	s := open(t, pathIn(t))
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(s.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 1 || !set.Keys[0].IsPublic() || !set.Keys[0].Valid() {
		t.Fatalf("JWKS = %s", s.JWKS())
	}
	kid, key := s.SigningKey()
	if set.Keys[0].KeyID != kid || !key.Public().(ed25519.PublicKey).Equal(set.Keys[0].Key) {
		t.Error("the published key is not the one that signs")
	}
	if set.Keys[0].Use != "sig" || set.Keys[0].Algorithm != "EdDSA" {
		t.Errorf("use %q, alg %q", set.Keys[0].Use, set.Keys[0].Algorithm)
	}
}

func TestDecrypt_InItsPlaceOnly(t *testing.T) {
	s := open(t, pathIn(t))
	encrypted, err := s.Encrypt("000123456789", "ba_1")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(encrypted, "123456") || !strings.HasPrefix(encrypted, "v1.") {
		t.Errorf("encrypted = %q", encrypted)
	}
	again, err := s.Encrypt("000123456789", "ba_1")
	if err != nil || again == encrypted {
		t.Error("the same value encrypted twice is recognisable")
	}
	other := open(t, pathIn(t))
	parts := strings.Split(encrypted, ".")
	flipped := []byte(parts[2])
	flipped[20] ^= 1
	tests := map[string]struct {
		set                *Set
		encrypted, context string
	}{
		"another row":     {s, encrypted, "ba_2"},
		"other keys":      {other, encrypted, "ba_1"},
		"changed":         {s, parts[0] + "." + parts[1] + "." + string(flipped), "ba_1"},
		"cut":             {s, encrypted[:len(encrypted)-4], "ba_1"},
		"another version": {s, "v2" + encrypted[2:], "ba_1"},
		"unknown key":     {s, "v1.nokey." + parts[2], "ba_1"},
		"not encrypted":   {s, "000123456789", "ba_1"},
		"empty":           {s, "", "ba_1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := tt.set.Decrypt(tt.encrypted, tt.context); err == nil || got != "" {
				t.Errorf("Open = %q, %v; want an error", got, err)
			}
		})
	}
}

func TestEncrypt_WithTheNewestKey(t *testing.T) {
	d := newDocument(time.Now())
	encrypted := encryptWith(t, d, "secret")
	d.Encryption = append(d.Encryption, encryptionKey{KID: "newest", Key: newSecret()})
	if encrypted := encryptWith(t, d, "secret"); !strings.HasPrefix(encrypted, "v1.newest.") {
		t.Errorf("encrypted with another key than the newest: %q", encrypted)
	}
	if got, err := setOf(t, d).Decrypt(encrypted, "context"); err != nil || got != "secret" {
		t.Errorf("Open with an older key = %q, %v", got, err)
	}
}

func setOf(t *testing.T, d document) *Set {
	t.Helper()
	data, err := encode(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encryptWith(t *testing.T, d document, plaintext string) string {
	t.Helper()
	encrypted, err := setOf(t, d).Encrypt(plaintext, "context")
	if err != nil {
		t.Fatal(err)
	}
	return encrypted
}

func TestSet_Printed_HidesKeys(t *testing.T) {
	path := pathIn(t)
	s := open(t, path)
	d, err := decode(s.Document())
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%v %+v %#v", s, s, s)
	for _, secret := range [][]byte{d.Signing[0].Seed, d.RefreshSecret, d.Encryption[0].Key} {
		for _, form := range []string{string(secret), fmt.Sprint(secret), fmt.Sprintf("%x", secret), base64.StdEncoding.EncodeToString(secret)} {
			if strings.Contains(printed, form) {
				t.Fatal("printing a key set shows a key")
			}
		}
	}
}
