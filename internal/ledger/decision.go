package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"bursar/internal/decision"
)

// RecordDecision appends d to the journal of its owner, in the transaction that carries it out.
func RecordDecision(ctx context.Context, tx Appender, d decision.Decision) error {
	data, err := Facts("id", d.ID, "action", d.Action, "note", d.Note)
	if err != nil {
		return err
	}
	typ := AdminDecided
	switch d.Action {
	case decision.FreezePayouts, decision.PausePayouts:
		typ = PayoutsFrozen
	case decision.UnfreezePayouts, decision.ResumePayouts:
		typ = PayoutsUnfrozen
	default:
	}
	owner := cmp.Or(d.Owner, decision.Platform)
	_, err = tx.Append(ctx, Posting{Owner: owner, At: d.At, Type: typ, Subject: d.Subject, Actor: DecidedBy(d), Data: data})
	return err
}

// DecisionOf reads a decision back from its entry.
func DecisionOf(e Entry) (decision.Decision, error) {
	var facts struct {
		ID     string          `json:"id"`
		Action decision.Action `json:"action"`
		Note   string          `json:"note"`
	}
	err := json.Unmarshal([]byte(e.Data), &facts)
	if err != nil {
		err = fmt.Errorf("read entry %d of %s: %w", e.Number, e.Owner, err)
	}
	by := Decider(e.Actor)
	return decision.Decision{
		ID: facts.ID, At: e.At, Admin: by.Admin, Operator: by.Operator, User: by.User, Key: by.Key,
		Action: facts.Action, Owner: e.Owner, Subject: e.Subject, Note: facts.Note,
	}, err
}
