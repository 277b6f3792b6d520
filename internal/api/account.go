package api

import (
	"context"

	"bursar/internal/auth"
)

// changeMeRequest names the parts of a profile to change. A part that is absent or null stays as it is.
type changeMeRequest struct {
	auth.ProfileChange
	device auth.Device
}

func (req *changeMeRequest) read(in *input) {
	req.device = in.device()
	for field, part := range map[string]**string{"name": &req.Name, "avatar": &req.Avatar, "bio": &req.Bio, "website": &req.Website} {
		if value := in.optionalText(field, anything); in.member(field) != nil {
			*part = &value
		}
	}
}

func (a *api) changeMe(ctx context.Context, who caller, req changeMeRequest) (reply[meJSON], error) {
	if err := a.o.Auth.SetProfile(ctx, who.Principal, req.ProfileChange, req.device); err != nil {
		return reply[meJSON]{}, err
	}
	answer, err := a.me(ctx, who, none{})
	answer.message = "Your profile is saved."
	return answer, err
}

type deleteMeRequest struct {
	password string
	device   auth.Device
}

func (req *deleteMeRequest) read(in *input) {
	req.password, req.device = in.passwordOrProof(), in.device()
}

// passwordOrProof takes the password of a user who sends no proof. A proof needs no body.
func (in *input) passwordOrProof() string {
	if in.r.ContentLength == 0 {
		return ""
	}
	return in.optionalText("password", anything)
}

func (a *api) deleteMe(ctx context.Context, who caller, req deleteMeRequest) (reply[none], error) {
	err := a.o.Auth.DeleteAccount(ctx, who.Principal, req.password, req.device)
	return reply[none]{message: "Your account is deleted.", endCookie: who.byCookie}, err
}

type sessionJSON struct {
	ID         string   `json:"id"`
	Current    bool     `json:"current"`
	CreatedAt  string   `json:"createdAt"`
	LastUsedAt string   `json:"lastUsedAt"`
	UserAgent  string   `json:"userAgent"`
	Address    string   `json:"address"`
	Methods    []string `json:"methods"`
}

type sessionsJSON struct {
	Sessions []sessionJSON `json:"sessions"`
}

func (a *api) sessions(ctx context.Context, who caller, _ none) (reply[sessionsJSON], error) {
	live, err := a.o.Auth.Sessions(ctx, who.Principal)
	return answer(sessionsJSON{mapped(live, func(s auth.SessionInfo) sessionJSON {
		return sessionJSON{s.ID, s.ID == who.Session, stamp(s.CreatedAt), stamp(s.LastUsedAt), s.Agent, s.Address, s.Methods}
	})}, err)
}

type endSessionRequest struct {
	id     string
	device auth.Device
}

func (req *endSessionRequest) read(in *input) {
	req.id, req.device = in.r.PathValue("sessionId"), in.device()
}

func (a *api) endSession(ctx context.Context, who caller, req endSessionRequest) (reply[none], error) {
	err := a.o.Auth.EndSession(ctx, who.Principal, req.id, req.device)
	return reply[none]{message: "The session has ended.", endCookie: who.byCookie && req.id == who.Session}, err
}

type endOtherSessionsRequest struct{ device auth.Device }

func (req *endOtherSessionsRequest) read(in *input) { req.device = in.device() }

func (a *api) endOtherSessions(ctx context.Context, who caller, req endOtherSessionsRequest) (reply[none], error) {
	err := a.o.Auth.EndOtherSessions(ctx, who.Principal, req.device)
	return reply[none]{message: "All your other sessions have ended."}, err
}

type changePasswordRequest struct {
	current, next string
	device        auth.Device
}

func (req *changePasswordRequest) read(in *input) {
	req.current = in.optionalText("currentPassword", anything)
	req.next = in.text("newPassword", auth.CheckPassword)
	req.device = in.device()
}

func (a *api) changePassword(ctx context.Context, who caller, req changePasswordRequest) (reply[none], error) {
	token, err := a.o.Auth.ChangePassword(ctx, who.Principal, req.current, req.next, req.device)
	return reply[none]{
		message: "Your password is changed. All your other sessions have ended.",
		device:  deviceCookie{who.UserID, token},
	}, err
}

type identitiesJSON struct {
	Identities []signInJSON `json:"identities"`
}

func (a *api) identities(ctx context.Context, who caller, _ none) (reply[identitiesJSON], error) {
	all, err := a.signInsOf(ctx, who)
	return answer(identitiesJSON{all}, err)
}

type unlinkIdentityRequest struct {
	provider auth.ProviderID
	password string
	device   auth.Device
}

func (req *unlinkIdentityRequest) read(in *input) {
	req.provider, req.password, req.device = auth.ProviderID(in.r.PathValue("provider")), in.passwordOrProof(), in.device()
}

func (a *api) unlinkIdentity(ctx context.Context, who caller, req unlinkIdentityRequest) (reply[none], error) {
	err := a.o.Auth.UnlinkIdentity(ctx, who.Principal, req.provider, req.password, req.device)
	return reply[none]{message: "The provider is unlinked. All your other sessions have ended."}, err
}
