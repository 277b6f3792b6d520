package api

import (
	"context"
	"math"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

const defaultEventsLimit = 20

// securityEventsRequest asks for a page of security events. user is empty for one's own.
type securityEventsRequest struct {
	user   string
	before int64
	limit  int
}

func (req *securityEventsRequest) read(in *input) {
	if req.user = in.r.PathValue("userId"); req.user != "" && !id.Valid(auth.UserIDPrefix, req.user) {
		in.refuse(auth.ErrUserNotFound)
	}
	req.before = int64(in.number("before", 0, math.MaxInt))
	req.limit = in.number("limit", defaultEventsLimit, auth.MaxSecurityEvents)
}

type securityEventsJSON struct {
	Events []securityEventJSON `json:"events"`
	// Next is for the parameter before of the next page; left out on the last.
	Next int64 `json:"next,omitempty"`
}

type securityEventJSON struct {
	Number   int64           `json:"number"`
	At       string          `json:"at"`
	Type     ledger.Type     `json:"type"`
	By       string          `json:"by"`
	Action   decision.Action `json:"action,omitempty"`
	Address  orNull          `json:"address"`
	Agent    orNull          `json:"userAgent"`
	Provider string          `json:"provider,omitempty"`
}

func securityEventOf(e auth.SecurityEvent) securityEventJSON {
	return securityEventJSON{e.Number, stamp(e.At), e.Type, e.By, e.Action, orNull(e.Address), orNull(e.Agent), e.Provider}
}

// securityEvents lists the caller's own events.
func (a *api) securityEvents(ctx context.Context, who caller, req securityEventsRequest) (reply[securityEventsJSON], error) {
	return a.listSecurityEvents(ctx, who.UserID, req)
}

// securityEventsOf lists a user's events for an admin.
func (a *api) securityEventsOf(ctx context.Context, _ caller, req securityEventsRequest) (reply[securityEventsJSON], error) {
	return a.listSecurityEvents(ctx, req.user, req)
}

func (a *api) listSecurityEvents(ctx context.Context, user string, req securityEventsRequest) (reply[securityEventsJSON], error) {
	events, err := a.o.Auth.SecurityEvents(ctx, user, req.before, req.limit+1)
	if err != nil {
		return reply[securityEventsJSON]{}, err
	}
	hasMore := len(events) > req.limit
	events = events[:min(len(events), req.limit)]
	shown := securityEventsJSON{Events: mapped(events, securityEventOf)}
	if hasMore {
		shown.Next = events[len(events)-1].Number
	}
	return reply[securityEventsJSON]{data: shown}, nil
}
