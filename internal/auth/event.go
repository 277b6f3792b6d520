package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bursar/internal/decision"
	"bursar/internal/ledger"
)

// SecurityEvent is a change of how a user signs in or is paid, as the user's journal has it.
type SecurityEvent struct {
	// Number is the journal's. Type is one of the types below, a hold on payouts, or an admin's decision.
	Number int64
	At     time.Time
	Type   ledger.Type
	// Action is what an admin decided; empty for other events.
	Action decision.Action
	// By is who made the change: "user", "admin" or "service".
	By string
	// Address and Agent are where the change came from; either may be empty.
	Address, Agent string
	// Provider is where the identity is that was linked or unlinked; empty for other events.
	Provider string
}

// eventFacts is what the entry of an event says.
type eventFacts struct {
	Address  string          `json:"address"`
	Agent    string          `json:"agent"`
	Provider string          `json:"provider"`
	Action   decision.Action `json:"action"`
}

// record adds a security event to the user's journal, in the transaction of the change. More facts are names and values in turn.
func (s *Service) record(ctx context.Context, tx Tx, userID string, what ledger.Type, from Device, more ...any) error {
	data, err := ledger.Facts(append([]any{
		"address", printable(from.Address, maxAddressBytes), "agent", printable(from.Agent, maxAgentBytes),
	}, more...)...)
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, ledger.Posting{Owner: userID, At: s.o.Now(), Type: what, Subject: userID, Actor: ledger.ActorUser + userID, Data: data})
	return err
}

// party is what kind of actor an entry names.
func party(actor string) string {
	switch kind, _ := ledger.CutActor(actor); kind {
	case ledger.ActorUser, ledger.ActorAdmin:
		return strings.TrimSuffix(kind, ":")
	default:
		return "service"
	}
}

// MaxSecurityEvents bounds how many events a page has. One more can be asked for, to know whether there is another page.
const MaxSecurityEvents = 100

// SecurityEvents lists a user's events numbered below before, newest first, up to limit; before 0 begins at the newest. It
// fails with [ledger.ErrTampered] unless the service wrote all of them.
func (s *Service) SecurityEvents(ctx context.Context, userID string, before int64, limit int) ([]SecurityEvent, error) {
	entries, err := s.o.Store.EntriesAboutBefore(ctx, userID, userID, before, min(max(limit, 1), MaxSecurityEvents+1))
	if err != nil {
		return nil, err
	}
	events := make([]SecurityEvent, len(entries))
	for i, e := range entries {
		var facts eventFacts
		if err := json.Unmarshal([]byte(e.Data), &facts); err != nil {
			return nil, fmt.Errorf("read entry %d of %s: %w", e.Number, e.Owner, err)
		}
		events[i] = SecurityEvent{
			Number: e.Number, At: e.At, Type: e.Type, Action: facts.Action, By: party(e.Actor),
			Address: facts.Address, Agent: facts.Agent, Provider: facts.Provider,
		}
	}
	return events, nil
}
