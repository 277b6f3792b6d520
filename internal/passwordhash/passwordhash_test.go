package passwordhash_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"bursar/internal/passwordhash"
)

// vector is a password with its hash, by a program that is not ours.
type vector struct{ format, by, password, hash string }

// vectors are those of a file in testdata: the format, what made the hash, the password as JSON, and the hash.
func vectors(t *testing.T, file string) []vector {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			t.Fatalf("%s: not four fields: %s", file, line)
		}
		v := vector{fields[0], fields[1], "", fields[3]}
		if err := json.Unmarshal([]byte(fields[2]), &v.password); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// formats is every format, as it is called.
var formats = []string{
	"bcrypt", "argon2id", "argon2i", "argon2d", "scrypt", "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512", "sha256-crypt", "sha512-crypt",
	"Django pbkdf2_sha256", "Django pbkdf2_sha1", "Django argon2", "Django bcrypt_sha256", "Django scrypt", "Firebase scrypt",
}

func TestParse_hashes_of_others(t *testing.T) {
	seen := map[string]int{}
	all := vectors(t, "cheap.tsv")
	least := 3
	if !testing.Short() { // those with the costs that systems have by default take ten seconds
		all, least = append(all, vectors(t, "hashes.tsv")...), 4
	}
	for _, v := range all {
		t.Run(v.format+" by "+v.by, func(t *testing.T) {
			t.Parallel()
			h, err := passwordhash.Parse(v.hash)
			if err != nil {
				t.Fatalf("%s: %v", v.hash, err)
			}
			if h.Format != v.format || h.Work <= 0 {
				t.Errorf("%s is called %s and is %v of work", v.hash, h.Format, h.Work)
			}
			decoy, err := passwordhash.Parse(h.Decoy)
			if err != nil || decoy.Work != h.Work || decoy.Decoy != h.Decoy {
				t.Errorf("the decoy %s of %s is %v of work and not %v: %v", h.Decoy, v.hash, decoy.Work, h.Work, err)
			}
			if !h.Matches(v.password) {
				t.Errorf("%s does not match %q", v.hash, v.password)
			}
			if wrong := "y" + v.password[1:]; h.Matches(wrong) {
				t.Errorf("%s matches %q, which is not %q", v.hash, wrong, v.password)
			}
		})
		seen[v.format]++
	}
	for _, format := range formats {
		if seen[format] < least {
			t.Errorf("%d hashes of %s, want at least %d", seen[format], format, least)
		}
	}
}

// One digit of salt or key that is another makes another hash.
func TestMatches_changed_hash(t *testing.T) {
	tried := map[string]bool{}
	for _, v := range vectors(t, "cheap.tsv") {
		if tried[v.format] {
			continue
		}
		tried[v.format] = true
		t.Run(v.format, func(t *testing.T) {
			for i := range v.hash {
				if last := len("$2b$04$") + 21; v.format == "bcrypt" && i == last {
					continue // only two of its six bits belong to the salt
				}
				const digits = "Ab9"
				for _, digit := range digits {
					changed := v.hash[:i] + string(digit) + v.hash[i+1:]
					if changed == v.hash {
						continue
					}
					h, err := passwordhash.Parse(changed)
					if err == nil && h.Work < 1e9 && h.Matches(v.password) {
						t.Errorf("%s matches as %s does", changed, v.hash)
					}
				}
			}
		})
	}
}

func TestParse_limits(t *testing.T) {
	const salt, key = "c2FsdHNhbHRzYWx0c2FsdA", "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U"
	tests := []struct {
		name, within, beyond, says string
	}{
		{"bcrypt", "$2b$14$" + strings.Repeat("a", 53), "$2b$15$" + strings.Repeat("a", 53), "the cost of this bcrypt hash is 15, and may be 14 at most"},
		{"argon2 memory", "$argon2id$v=19$m=65536,t=2,p=1$" + salt + "$" + key, "$argon2id$v=19$m=65537,t=2,p=1$" + salt + "$" + key, "memory in KiB of"},
		{"argon2 passes", "$argon2i$v=19$m=65536,t=16,p=1$" + salt + "$" + key, "$argon2i$v=19$m=65536,t=17,p=1$" + salt + "$" + key, "memory in KiB times passes"},
		{"argon2 threads", "$argon2d$v=19$m=4096,t=1,p=16$" + salt + "$" + key, "$argon2d$v=19$m=4096,t=1,p=17$" + salt + "$" + key, "parallelism"},
		{"scrypt memory", "$scrypt$ln=16,r=8,p=1$" + salt + "$" + key, "$scrypt$ln=16,r=9,p=1$" + salt + "$" + key, "memory in KiB (N × r ÷ 8)"},
		{"scrypt N", "$scrypt$ln=19,r=1,p=1$" + salt + "$" + key, "$scrypt$ln=21,r=1,p=1$" + salt + "$" + key, "beyond the limit"},
		{"scrypt work", "$scrypt$ln=15,r=8,p=16$" + salt + "$" + key, "$scrypt$ln=15,r=8,p=17$" + salt + "$" + key, "times parallelism"},
		{"Kratos' scrypt", "$scrypt$ln=65536,r=8,p=1$" + salt + "$" + key, "$scrypt$ln=131072,r=8,p=1$" + salt + "$" + key, "memory in KiB"},
		{"pbkdf2", "$pbkdf2-sha256$2000000$" + salt + "$" + key, "$pbkdf2-sha256$2000001$" + salt + "$" + key, "is 2000001, and may be 2000000 at most"},
		{"pbkdf2 with a long key", "$pbkdf2-sha1$1000000$" + salt + "$" + key, "$pbkdf2-sha1$1000001$" + salt + "$" + key, "times the blocks of the key"},
		{"SHA-crypt", "$5$rounds=1000000$salt$" + strings.Repeat("a", 43), "$5$rounds=1000001$salt$" + strings.Repeat("a", 43), "rounds"},
		{"Django pbkdf2", "pbkdf2_sha256$2000000$salt$" + key + "=", "pbkdf2_sha256$2000001$salt$" + key + "=", "Django pbkdf2_sha256"},
		{"Django argon2", "argon2$argon2id$v=19$m=102400,t=2,p=8$" + salt + "$" + key, "argon2$argon2id$v=19$m=102401,t=2,p=8$" + salt + "$" + key, "costs too much"},
		{"Django bcrypt", "bcrypt_sha256$$2b$12$" + strings.Repeat("a", 53), "bcrypt_sha256$$2b$31$" + strings.Repeat("a", 53), "costs too much"},
		{"Django scrypt", "scrypt$16384$salt$8$5$" + key, "scrypt$1048576$salt$8$5$" + key, "costs too much"},
		{
			"Firebase", "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=" + key + "$" + salt + "$" + key,
			"$fbscrypt$v=1,n=18,r=8,p=1,ss=Bw==,sk=" + key + "$" + salt + "$" + key, "costs too much",
		},
		{
			"Kratos' Firebase", "$firescrypt$ln=14,r=8,p=1$" + salt + "$" + key + "$Bw==$" + key,
			"$firescrypt$ln=31,r=8,p=1$" + salt + "$" + key + "$Bw==$" + key, "beyond the limit",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := passwordhash.Parse(test.within); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			_, err := passwordhash.Parse(test.beyond)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("beyond the limit: %v; want something about %q", err, test.says)
			}
		})
	}
}

func TestParse_refusals(t *testing.T) {
	const salt, key = "c2FsdHNhbHRzYWx0c2FsdA", "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U"
	tests := map[string]string{
		"empty":                     "",
		"plain text":                "tamarind-42-lane",
		"MD5":                       "5f4dcc3b5aa765d61d8327deb882cf99",
		"md5-crypt":                 "$1$deadbeef$Q7g0UO4hRC0mgQUQ/qkjZ0",
		"bcrypt with the sign bug":  "$2x$10$" + strings.Repeat("a", 53),
		"bcrypt, short":             "$2b$10$" + strings.Repeat("a", 52),
		"bcrypt, long":              "$2b$10$" + strings.Repeat("a", 54),
		"bcrypt, cost below 4":      "$2b$03$" + strings.Repeat("a", 53),
		"bcrypt, another alphabet":  "$2b$10$" + strings.Repeat("a", 52) + "+",
		"argon2 version 1.0":        "$argon2id$m=4096,t=2,p=1$" + salt + "$" + key,
		"argon2 version 16":         "$argon2id$v=16$m=4096,t=2,p=1$" + salt + "$" + key,
		"argon2 without a key":      "$argon2d$v=19$m=2048,t=1,p=1$" + salt + "$",
		"argon2, key of one byte":   "$argon2d$v=19$m=2048,t=1,p=1$" + salt + "$YQ",
		"argon2, no memory":         "$argon2d$v=19$m=7,t=1,p=1$" + salt + "$" + key,
		"argon2, no passes":         "$argon2d$v=19$m=2048,t=0,p=1$" + salt + "$" + key,
		"argon2, no threads":        "$argon2d$v=19$m=2048,t=1,p=0$" + salt + "$" + key,
		"argon2, negative":          "$argon2d$v=19$m=-2048,t=1,p=1$" + salt + "$" + key,
		"argon2, a number too long": "$argon2d$v=19$m=99999999999999999999,t=1,p=1$" + salt + "$" + key,
		"argon2, more parameters":   "$argon2id$v=19$m=2048,t=1,p=1,data=YQ$" + salt + "$" + key,
		"argon2, one part more":     "$argon2id$v=19$m=2048,t=1,p=1$" + salt + "$" + key + "$",
		"scrypt, N no power of two": "$scrypt$ln=16385,r=8,p=1$" + salt + "$" + key,
		"scrypt without r":          "$scrypt$ln=14,p=1$" + salt + "$" + key,
		"scrypt, N is one":          "$scrypt$ln=0,r=8,p=1$" + salt + "$" + key,
		"pbkdf2 without rounds":     "$pbkdf2-sha256$" + salt + "$" + key,
		"pbkdf2, no rounds":         "$pbkdf2-sha256$0$" + salt + "$" + key,
		"pbkdf2, another length":    "$pbkdf2-sha256$i=1000,l=31$" + salt + "$" + key,
		"SHA-crypt, few rounds":     "$5$rounds=999$salt$" + strings.Repeat("a", 43),
		"SHA-crypt, long salt":      "$5$saltsaltsaltsalts$" + strings.Repeat("a", 43),
		"SHA-crypt, short key":      "$6$salt$" + strings.Repeat("a", 85),
		"Django, no password":       "!Jd8uPQbNe2ZxQ7gOaMwWmT3kq0vYb5sC1rLhXtFy",
		"Django, unsalted":          "pbkdf2_sha256$1000$$" + key,
		"Firebase without a key":    "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==$" + salt + "$" + key,
		"Firebase, another length":  "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=" + key + "$" + salt + "$" + key[:24],
		"base64 not canonical":      "$argon2id$v=19$m=2048,t=1,p=1$" + salt + "$" + key[:42] + "V",
		"too long":                  "$5$" + strings.Repeat("a", 1100),
	}
	for name, encoded := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := passwordhash.Parse(encoded)
			if err == nil {
				t.Fatalf("%s was taken for %s", encoded, h.Format)
			}
			if h.Matches("password") || h.Matches("") {
				t.Error("what was refused matches a password")
			}
			for _, secret := range []string{salt, key, encoded} {
				if secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error repeats the hash: %v", err)
				}
			}
		})
	}
}

// A password that no form would take is not checked at its whole length: SHA-crypt's cost grows with it.
func TestMatches_long_password(t *testing.T) {
	for _, v := range vectors(t, "cheap.tsv") {
		if v.password != strings.Repeat("x", 80) {
			continue
		}
		h, err := passwordhash.Parse(v.hash)
		if err != nil {
			t.Fatal(err)
		}
		bcrypts := v.format == "bcrypt" // looks at 72 bytes
		for length, want := range map[int]bool{80: true, 81: bcrypts, 2000: false, 1 << 20: false} {
			if got := h.Matches(strings.Repeat("x", length)); got != want {
				t.Errorf("%s with %d bytes: %v", v.hash, length, got)
			}
		}
	}
}

// FuzzParse reads any text. What is read is affordable, and is read the same again.
func FuzzParse(f *testing.F) {
	f.Add("$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy")
	f.Add("$scrypt$ln=4,r=8,p=1$c2FsdA$a2V5a2V5a2V5a2V5a2V5aw")
	f.Fuzz(func(t *testing.T, encoded string) {
		h, err := passwordhash.Parse(encoded)
		if err != nil {
			if h.Matches("password") {
				t.Error("what was refused matches")
			}
			return
		}
		const most = 3e9
		if h.Work < 0 || h.Work > most {
			t.Errorf("%q is %v of work", encoded, h.Work)
		}
		if h.Work < 1e6 && h.Matches("") && !strings.Contains(encoded, "$") {
			t.Errorf("%q matches the empty password", encoded)
		}
	})
}
