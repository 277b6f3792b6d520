package api

import (
	"context"
	"errors"
	"net/http"

	"bursar/internal/auth"
)

// signedInOrNot lets anyone in, and finds out who is signed in. A token that has expired is as good as none.
func (a *api) signedInOrNot(r *http.Request) (caller, error) {
	who, err := a.signedIn(r)
	if errors.Is(err, auth.ErrToken) || errors.Is(err, auth.ErrSessionNeeded) {
		return caller{}, nil
	}
	return who, err
}

type verifyEmailRequest struct{ token, code string }

func (req *verifyEmailRequest) read(in *input) {
	req.token = in.optionalText("token", anything)
	req.code = in.optionalText("code", anything)
	if in.refusal == nil && len(in.malformed) == 0 && (req.token == "") == (req.code == "") {
		in.noteMalformed("token", "is required, or code in its place")
	}
}

// verifyEmail confirms an address by the link's token, or by the code of the user who is signed in.
func (a *api) verifyEmail(ctx context.Context, who caller, req verifyEmailRequest) (reply[none], error) {
	var err error
	switch {
	case req.token != "":
		err = a.o.Auth.VerifyEmail(ctx, req.token)
	case who.UserID == "":
		err = auth.ErrToken
	default:
		err = a.o.Auth.VerifyEmailByCode(ctx, who.Principal, req.code)
	}
	return reply[none]{message: "Your e-mail address is confirmed."}, err
}

type fromDevice struct{ device auth.Device }

func (req *fromDevice) read(in *input) { req.device = in.device() }

func (a *api) resendVerification(ctx context.Context, who caller, req fromDevice) (reply[none], error) {
	err := a.o.Auth.ResendVerification(ctx, who.Principal, req.device)
	return reply[none]{message: "If your e-mail address is not confirmed yet, a new link and code are on their way to it."}, err
}

type forgotPasswordRequest struct {
	email  string
	device auth.Device
}

func (req *forgotPasswordRequest) read(in *input) {
	req.email = in.text("email", checkNoControls)
	req.device = in.device()
}

func (a *api) forgotPassword(ctx context.Context, _ caller, req forgotPasswordRequest) (reply[none], error) {
	err := a.o.Auth.ForgotPassword(ctx, req.email, req.device)
	return reply[none]{message: "If there is an account with this e-mail address, a mail is on its way to it."}, err
}

type resetPasswordRequest struct {
	token, password string
	device          auth.Device
}

func (req *resetPasswordRequest) read(in *input) {
	req.token = in.text("token", anything)
	req.password = in.text("password", auth.CheckPassword)
	req.device = in.device()
}

func (a *api) resetPassword(ctx context.Context, _ caller, req resetPasswordRequest) (reply[none], error) {
	err := a.o.Auth.SetForgottenPassword(ctx, req.token, req.password, req.device)
	return reply[none]{message: "Your password is set. All sessions were signed out; sign in with the new password."}, err
}

type changeEmailRequest struct {
	email  string
	device auth.Device
}

func (req *changeEmailRequest) read(in *input) {
	req.email = in.text("email", auth.CheckEmail)
	req.device = in.device()
}

func (a *api) changeEmail(ctx context.Context, who caller, req changeEmailRequest) (reply[none], error) {
	err := a.o.Auth.ChangeEmail(ctx, who.Principal, req.email, req.device)
	return reply[none]{message: "If no other account has this address, a link is on its way to it. Your address changes once it is confirmed."}, err
}

type confirmEmailRequest struct {
	token  string
	device auth.Device
}

func (req *confirmEmailRequest) read(in *input) {
	req.token = in.text("token", anything)
	req.device = in.device()
}

func (a *api) confirmEmail(ctx context.Context, _ caller, req confirmEmailRequest) (reply[none], error) {
	err := a.o.Auth.ConfirmEmailChange(ctx, req.token, req.device)
	return reply[none]{message: "Your e-mail address is changed."}, err
}
