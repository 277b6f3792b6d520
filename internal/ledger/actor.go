package ledger

import (
	"strings"

	"bursar/internal/decision"
)

// Who causes an entry, as [Posting.Actor] names them. Behind a colon comes an id or a name.
const (
	ActorUser        = "user:"
	ActorIssuer      = "issuer:" // a seller, by a token of that issuer
	ActorKey         = "key:"
	ActorAdmin       = "admin:"
	ActorOperator    = "operator:"
	ActorGateway     = "gateway"
	ActorMarketplace = "marketplace" // where no service key is named
	ActorSystem      = "system"
)

// CutActor splits an actor into one of these and what is behind the colon.
func CutActor(actor string) (kind, name string) {
	if i := strings.IndexByte(actor, ':') + 1; i > 0 {
		return actor[:i], actor[i:]
	}
	return actor, ""
}

// DecidedBy is the actor who made a decision.
func DecidedBy(d decision.Decision) string {
	switch {
	case d.Operator != "":
		return ActorOperator + d.Operator
	case d.User != "":
		return ActorUser + d.User
	case d.Key != "":
		return ActorKey + d.Key
	case d.Admin != "":
		return ActorAdmin + d.Admin
	default:
		return ActorSystem
	}
}

// Decider is who an actor is, if they can decide.
func Decider(actor string) (by decision.By) {
	switch kind, name := CutActor(actor); kind {
	case ActorOperator:
		by.Operator = name
	case ActorUser:
		by.User = name
	case ActorKey:
		by.Key = name
	case ActorAdmin:
		by.Admin = name
	}
	return by
}
