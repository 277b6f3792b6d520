package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// onRecord is a decision as the journal has it: in whose, as which entry, about what, when, in microseconds since 1970, and
// what was decided.
type onRecord struct {
	owner   string
	number  int64
	subject string
	at      int64
	action  decision.Action
}

// actionIn reads what was decided from the data of an entry, or "".
func actionIn(data string) decision.Action {
	var says struct{ Action decision.Action }
	_ = json.Unmarshal([]byte(data), &says)
	return says.Action
}

// decides lists the types of entries that are decisions. The table is the model's own.
var decides = []ledger.Type{ledger.AdminDecided, ledger.PayoutsFrozen, ledger.PayoutsUnfrozen, ledger.BalanceAdjusted}

// knows reports whether it knows a journal's owner from the beginning: a seller or the platform, and not a person who registered by API.
func (o *model) knows(owner string) bool {
	return o.sellers[owner] != nil || owner == decision.Platform
}

// decisions lists all decisions in the journals of those it knows, the newest first.
func (o *model) decisions() (all []onRecord) {
	for owner, j := range o.journals {
		if o.knows(owner) {
			all = append(all, j.decisions...)
		}
	}
	slices.SortFunc(all, func(a, b onRecord) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.owner, a.owner), cmp.Compare(b.number, a.number))
	})
	return all
}

// checkOnRecord wants the list of all decisions, and that of those about one subject, to have each decision in the journals once, the newest first.
func (m *market) checkOnRecord(on *instance) {
	m.follow(on, decision.Platform) // operators decide about webhooks
	all := m.model.decisions()
	m.compareDecisions(on, "", all)
	if len(all) == 0 {
		return
	}
	subject := all[len(all)/2].subject
	m.compareDecisions(on, subject, slices.DeleteFunc(all, func(d onRecord) bool { return d.subject != subject }))
}

func (m *market) compareDecisions(on *instance, subject string, want []onRecord) {
	const most = 1_000_000
	got, err := on.db.Decisions(m.ctx, subject, most)
	got = slices.DeleteFunc(got, func(d decision.Decision) bool { return !m.model.knows(d.Owner) })
	other := firstOther(got, want)
	m.assert(decisionsKept, err == nil && other == "", subject, "%d decisions about %q are listed (error %v), and the journals have %d: %s", len(got), subject, err, len(want), other)
}

func (r onRecord) is(d decision.Decision) bool {
	return d.Owner == r.owner && d.Subject == r.subject && d.At.UnixMicro() == r.at && d.Action == r.action && r.action != ""
}

// firstOther tells where a list of decisions departs from what the journals have.
func firstOther(got []decision.Decision, want []onRecord) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("entry %d of %s, about %s, is missing", want[i].number, want[i].owner, want[i].subject)
		case i >= len(want) || !want[i].is(got[i]):
			return fmt.Sprintf("%+v is too much, or not in its place", got[i])
		}
	}
	return ""
}
