package api

import (
	"context"
	"net/http"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/id"
	"bursar/internal/ledger"
)

// serviceKeyJSON is a service key as admins see it.
type serviceKeyJSON struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Status       string   `json:"status"`
	Scopes       []string `json:"scopes"`
	CreatedAt    string   `json:"createdAt"`
	ExpiresAt    orNull   `json:"expiresAt"`
	LastUsedOn   orNull   `json:"lastUsedOn"`
	RotatedUntil orNull   `json:"rotatedUntil"`
	RevokedAt    orNull   `json:"revokedAt"`
}

func (a *api) serviceKeyOf(k auth.ServiceKey) serviceKeyJSON {
	now := a.o.Now()
	shown := serviceKeyJSON{
		ID: k.ID, Name: k.Name, Status: k.Status(now), Scopes: k.Scopes.List(), CreatedAt: stamp(k.CreatedAt),
		ExpiresAt: stampOrNull(k.ExpiresAt), LastUsedOn: orNull(k.UsedOn), RevokedAt: stampOrNull(k.RevokedAt),
	}
	if k.RotatedUntil.After(now) {
		shown.RotatedUntil = stampOrNull(k.RotatedUntil)
	}
	return shown
}

// newServiceKeyJSON also has the key itself, which is shown once.
type newServiceKeyJSON struct {
	serviceKeyJSON
	Key string `json:"key"`
}

type serviceKeysJSON struct {
	Keys []serviceKeyJSON `json:"keys"`
}

func (a *api) serviceKeys(ctx context.Context, _ caller, _ none) (reply[serviceKeysJSON], error) {
	all, err := a.o.Auth.ServiceKeys(ctx)
	return answer(serviceKeysJSON{mapped(all, a.serviceKeyOf)}, err)
}

type createServiceKeyRequest struct{ auth.NewServiceKey }

func (req *createServiceKeyRequest) read(in *input) {
	req.Name = in.text("name", auth.CheckKeyName)
	req.Scopes = in.optionalTexts("scopes", len(auth.AllScopes().List()))
	if _, err := auth.ParseScopes(req.Scopes); err != nil {
		in.noteError(err)
	}
	if req.Scopes != nil && len(req.Scopes) == 0 { // a caller who computed none does not mean all
		in.noteInvalid("scopes", "must name a scope; a key with all is made without this field")
	}
	in.misnamed("scope", "scopes") // as the command line calls them
	in.misnamed("expires", "expiresAt")
	req.ExpiresAt = in.optionalInstant("expiresAt")
	if now := in.api.o.Now(); !req.ExpiresAt.IsZero() && !req.ExpiresAt.After(now) {
		in.noteInvalid("expiresAt", "must be in the future")
	}
}

func (a *api) createServiceKey(ctx context.Context, who caller, req createServiceKeyRequest) (reply[newServiceKeyJSON], error) {
	if err := a.o.Auth.ProveDecision(ctx, who.Principal, decision.CreateServiceKey, req.Name); err != nil {
		return reply[newServiceKeyJSON]{}, err
	}
	key, stored, err := a.o.Auth.CreateServiceKey(ctx, req.NewServiceKey, actorAdmin(who))
	return reply[newServiceKeyJSON]{
		status: http.StatusCreated, message: "This is the only time the key is shown.",
		data: newServiceKeyJSON{a.serviceKeyOf(stored), key},
	}, err
}

// actorAdmin names an admin in the journal.
func actorAdmin(who caller) string { return ledger.ActorAdmin + who.UserID }

// keyID takes the id of a service key from the path.
func (in *input) keyID() string {
	key := in.r.PathValue("keyId")
	if !id.Valid(auth.ServiceKeyPrefix, key) {
		in.refuse(auth.ErrKeyNotFound)
	}
	return key
}

// defaultGrace is how long a rotated key is accepted, where the request does not say.
const defaultGrace = 24 * time.Hour

type rotateServiceKeyRequest struct {
	key   string
	grace time.Duration
}

func (req *rotateServiceKeyRequest) read(in *input) {
	req.key = in.keyID()
	req.grace = defaultGrace
	in.misnamed("grace", "graceSeconds")
	if in.member("graceSeconds") == nil {
		return
	}
	seconds := in.count("graceSeconds")
	if seconds > int64(auth.MaxRotationGrace/time.Second) {
		in.noteInvalid("graceSeconds", "must be at most 2592000, which is 30 days")
	}
	req.grace = time.Duration(seconds) * time.Second
}

func (a *api) rotateServiceKey(ctx context.Context, who caller, req rotateServiceKeyRequest) (reply[newServiceKeyJSON], error) {
	if err := a.o.Auth.ProveDecision(ctx, who.Principal, decision.RotateServiceKey, req.key); err != nil {
		return reply[newServiceKeyJSON]{}, err
	}
	key, stored, err := a.o.Auth.RotateServiceKey(ctx, req.key, req.grace, actorAdmin(who))
	return reply[newServiceKeyJSON]{
		message: "The new key works at once. This is the only time it is shown.", data: newServiceKeyJSON{a.serviceKeyOf(stored), key},
	}, err
}

type revokeServiceKeyRequest struct{ key string }

func (req *revokeServiceKeyRequest) read(in *input) { req.key = in.keyID() }

func (a *api) revokeServiceKey(ctx context.Context, who caller, req revokeServiceKeyRequest) (reply[serviceKeyJSON], error) {
	if err := a.o.Auth.ProveDecision(ctx, who.Principal, decision.RevokeServiceKey, req.key); err != nil {
		return reply[serviceKeyJSON]{}, err
	}
	key, err := a.o.Auth.RevokeServiceKey(ctx, req.key, actorAdmin(who))
	return reply[serviceKeyJSON]{message: "The key is refused from the next request on.", data: a.serviceKeyOf(key)}, err
}
