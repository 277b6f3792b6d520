package ledger_test

import (
	"testing"

	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// TestDecidedBy names each kind of decider as an actor, and Decider finds the decider in it again.
func TestDecidedBy(t *testing.T) {
	for actor, d := range map[string]decision.Decision{
		"admin:usr_a":   {Admin: "usr_a"},
		"operator:asha": {Operator: "asha"},
		"user:usr_b":    {User: "usr_b"},
		"key:key_1":     {Key: "key_1"},
		"system":        {},
	} {
		if got := ledger.DecidedBy(d); got != actor {
			t.Errorf("%+v was decided by %s, want %s", d, got, actor)
		}
		if got, want := ledger.Decider(actor), (decision.By{Admin: d.Admin, Operator: d.Operator, User: d.User, Key: d.Key}); got != want {
			t.Errorf("%s decides as %+v, want %+v", actor, got, want)
		}
	}
	for _, actor := range []string{ledger.ActorGateway, ledger.ActorSystem, ledger.ActorIssuer + "shop"} {
		if got := ledger.Decider(actor); got != (decision.By{}) {
			t.Errorf("%s decides as %+v", actor, got)
		}
	}
}
