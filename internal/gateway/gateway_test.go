package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bursar/internal/gateway"
	"bursar/internal/money"
)

// named is a gateway of which only its name and what it pays are asked.
type named struct {
	gateway.Gateway
	name gateway.Name
	pays gateway.Capabilities
}

func (n named) Name() gateway.Name                 { return n.name }
func (n named) Capabilities() gateway.Capabilities { return n.pays }

func paying(name gateway.Name, currency string) named {
	return named{name: name, pays: gateway.Capabilities{Currency: currency}}
}

func TestRouter(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	first, second, foreign := paying("first", "INR"), paying("second", "INR"), paying("foreign", "USD")
	for name, tt := range map[string]struct {
		current gateway.Name
		all     []gateway.Gateway
		want    gateway.Name // "" for an error
	}{
		"the one that is named":            {"second", []gateway.Gateway{first, second}, "second"},
		"another one pays nothing of ours": {"second", []gateway.Gateway{foreign, second}, "second"},
		"it pays in another currency":      {"foreign", []gateway.Gateway{foreign, second, first}, ""},
		"it is not there":                  {"third", []gateway.Gateway{first}, ""},
		"two of one name":                  {"first", []gateway.Gateway{first, first}, ""},
		"one without a name":               {"first", []gateway.Gateway{first, paying("", "INR")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := gateway.NewRouter(inr, tt.current, tt.all...)
			if (err == nil) != (tt.want != "") {
				t.Fatalf("err = %v", err)
			}
			if err != nil {
				return
			}
			if g := r.Current(); g.Name() != tt.want {
				t.Errorf("picked %v", g)
			}
			for _, g := range tt.all {
				if found, err := r.Named(g.Name()); err != nil || found.Name() != g.Name() {
					t.Errorf("%s is not found: %v", g.Name(), err)
				}
			}
			for _, name := range []gateway.Name{"", "gone"} {
				if _, err := r.Named(name); !errors.Is(err, gateway.ErrNotConfigured) {
					t.Errorf("%q: %v", name, err)
				}
			}
		})
	}
}

func TestResendFor(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		0: 0, time.Hour: 45 * time.Minute, 24 * time.Hour: 18 * time.Hour, 7 * 24 * time.Hour: 6 * 24 * time.Hour, 60 * 24 * time.Hour: 59 * 24 * time.Hour,
	} {
		if got := (gateway.Capabilities{KeyLifetime: lifetime}).ResendFor(); got != want {
			t.Errorf("keys live for %s: %s, want %s", lifetime, got, want)
		}
	}
}

func TestRail_Carries(t *testing.T) {
	r := gateway.Rail{Min: 10, Max: 20}
	for amount, want := range map[money.Amount]bool{9: false, 10: true, 20: true, 21: false} {
		if got := r.Carries(amount); got != want {
			t.Errorf("%d: %t", amount, got)
		}
	}
	if !(gateway.Rail{}).Carries(1) {
		t.Error("a rail without limits carries nothing")
	}
}

// TestDestination_Masked keeps the number out of all that prints.
func TestDestination_Masked(t *testing.T) {
	d := gateway.Destination{Holder: "Asha Rao", AccountNumber: "50100123456789", IFSC: "HDFC0000053"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "d", d, "p", &d)
	inJSON, err := json.Marshal(map[string]any{"d": d, "p": &d})
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%v %+v %#v %s %q %d %x %v", d, d, d, d, d, d, d, struct{ D *gateway.Destination }{&d}.D) + log.String() + string(inJSON)
	if strings.Contains(printed, "501001234") || strings.Contains(printed, "Asha") || !strings.Contains(printed, "****6789") {
		t.Errorf("printed %s", printed)
	}
}

func TestIsID(t *testing.T) {
	for s, want := range map[string]bool{"txn_1": true, "!": true, "~": true, "": false, "txn 1": false, "txn\x7f": false, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false} {
		if got := gateway.IsID(s); got != want {
			t.Errorf("%q may be an id: %t, want %t", s, got, want)
		}
	}
}
