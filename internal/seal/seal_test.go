package seal_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"bursar/internal/keyset"
	"bursar/internal/seal"
)

func TestCheck(t *testing.T) {
	open := func() seal.Keys {
		keys, err := keyset.Open(t.Context(), keyset.File(filepath.Join(t.TempDir(), "keys.json")))
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	keys, since := open(), time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	seals := seal.Seals{Keys: keys, Since: since}
	mine, err := seals.Make("pyt_1 of 500")
	if err != nil {
		t.Fatal(err)
	}
	others, err := seal.Seals{Keys: open()}.Make("pyt_1 of 500")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := keys.Seal("50100123456789", "pyt_1 of 500")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		seal   string
		madeAt time.Time
		words  string
		broken bool
	}{
		"as it was written":            {mine, since, "pyt_1 of 500", false},
		"changed":                      {mine, since, "pyt_1 of 501", true},
		"sealed with another's key":    {others, since, "pyt_1 of 500", true},
		"a secret in a seal's place":   {secret, since, "pyt_1 of 500", true},
		"without a seal":               {"", since, "pyt_1 of 500", true},
		"from before, without a seal":  {"", since.Add(-time.Microsecond), "pyt_1 of 500", false},
		"from before, changed by then": {mine, since.Add(-time.Microsecond), "pyt_1 of 700", false},
	} {
		if err := seals.Check(tt.seal, tt.madeAt, tt.words); errors.Is(err, seal.ErrBroken) != tt.broken || err != nil && !tt.broken {
			t.Errorf("%s: %v, want broken: %t", name, err, tt.broken)
		}
	}
}
