package dashboard

import (
	"context"
	"errors"
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/fault"
)

// Pages that mails lead to. Opening one uses nothing up: programs that scan mails open every link.

// linkView is a page with one form.
type linkView struct {
	Heading, Sentence string
	// Pending is the registration that a button confirms; nil on other pages.
	Pending *auth.Pending
	Form    *form // nil where there is nothing to do
}

const (
	confirmHeading = "Confirm your e-mail address"
	resetHeading   = "Set a new password"
)

func verifyForm(token string) *form {
	return &form{Action: "/verify-email", Submit: "Confirm e-mail address", Hidden: []hidden{{"token", token}}}
}

// deadLink is the page of a link that permits nothing.
func deadLink(heading string, err error) (page, error) {
	f := fault.From(err)
	if f == nil || f.Code != auth.ErrMailToken.Code {
		return page{}, err
	}
	p := show("link", heading, linkView{Heading: heading, Sentence: f.Message})
	p.status = http.StatusBadRequest
	return p, nil
}

// verifyEmailPage says who registered, and asks for the press of a button.
func (d *dashboard) verifyEmailPage(ctx context.Context, v *pageRequest) (page, error) {
	token := v.query("token")
	pending, err := d.o.Auth.PendingRegistration(ctx, token)
	if err != nil {
		return deadLink(confirmHeading, err)
	}
	return show("link", confirmHeading, linkView{Heading: confirmHeading, Pending: &pending, Form: verifyForm(token)}), nil
}

// verifyEmail confirms an address.
func (d *dashboard) verifyEmail(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.VerifyEmail(ctx, v.form.Get("token")); err != nil {
		return deadLink(confirmHeading, err)
	}
	// Confirming may have ended the visitor's own session, so it is checked once more.
	next := home
	if _, err := d.o.Auth.Authenticate(ctx, d.cookies.Token(v.r)); errors.Is(err, auth.ErrToken) {
		next = "/login"
	} else if err != nil {
		return page{}, err
	}
	return goTo(next).saying("email-confirmed"), nil
}

func forgotForm() *form {
	return &form{Action: "/forgot-password", Submit: "Send the link", Fields: []field{
		{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "username", Max: 254},
	}}
}

// forgotPasswordPage asks whose password is forgotten.
func (*dashboard) forgotPasswordPage(context.Context, *pageRequest) (page, error) {
	const heading = "Forgot your password?"
	return show("link", heading, linkView{Heading: heading, Sentence: "We mail you a link to set another one.", Form: forgotForm()}), nil
}

// forgotPassword has a link mailed.
func (d *dashboard) forgotPassword(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.ForgotPassword(ctx, v.form.Get("email"), d.device(v)); err != nil {
		return page{}, err
	}
	return goTo("/login").saying("reset-mailed"), nil
}

func resetForm(token string) *form {
	return &form{Action: "/reset-password", Submit: "Set password", Hidden: []hidden{{"token", token}}, Fields: []field{{
		Name: "password", Label: "New password", Type: "password", Autocomplete: "new-password", Secret: true,
		Hint: "At least 8 characters. All your sessions are signed out.",
	}}}
}

func (*dashboard) showReset(f *form) page {
	return show("link", resetHeading, linkView{Heading: resetHeading, Form: f})
}

// resetPasswordPage asks for the new password.
func (d *dashboard) resetPasswordPage(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.CheckResetToken(ctx, v.query("token")); err != nil {
		return deadLink(resetHeading, err)
	}
	return d.showReset(resetForm(v.query("token"))), nil
}

// resetPassword sets the password.
func (d *dashboard) resetPassword(ctx context.Context, v *pageRequest) (page, error) {
	token := v.form.Get("token")
	if err := d.o.Auth.SetForgottenPassword(ctx, token, v.form.Get("password"), d.device(v)); err != nil {
		if errors.Is(err, auth.ErrMailToken) {
			return deadLink(resetHeading, err)
		}
		f := resetForm(token)
		return d.again(ctx, d.showReset(f), f, err)
	}
	return goTo("/login").saying("password-reset"), nil
}

func codeForm() *form {
	return &form{Action: "/dashboard/profile/verify-email", Submit: "Confirm", Fields: []field{{
		Name: "code", Label: "Code from the mail", Type: "text", InputMode: "numeric", Autocomplete: "one-time-code", Max: 8, Hint: "Eight digits.",
	}}}
}

// enterCode confirms the visitor's address by the code from the mail.
func (d *dashboard) enterCode(ctx context.Context, v *pageRequest) (page, error) {
	err := d.o.Auth.VerifyEmailByCode(ctx, v.who, trimSpace(v.form.Get("code")))
	if err == nil {
		return goTo("/dashboard/profile").saying("email-confirmed"), nil
	}
	p, shown, showErr := d.profilePage(ctx, v)
	if showErr != nil {
		return page{}, showErr
	}
	return d.again(ctx, p, shown.Code, err)
}

// resendCode mails the visitor another link and code.
func (d *dashboard) resendCode(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.ResendVerification(ctx, v.who, d.device(v)); err != nil {
		return page{}, err
	}
	return goTo("/dashboard/profile").saying("code-mailed"), nil
}

const (
	undoFactorsPath    = "/remove-factors"
	undoFactorsHeading = "Remove the second factor"
)

// undoFactorsPage asks for the press of a button.
func (d *dashboard) undoFactorsPage(ctx context.Context, v *pageRequest) (page, error) {
	token := v.query("token")
	if err := d.o.Auth.CheckUndoFactor(ctx, token); err != nil {
		return deadLink(undoFactorsHeading, err)
	}
	return show("link", undoFactorsHeading, linkView{
		Heading:  undoFactorsHeading,
		Sentence: "Use this if you did not add it. Your account has no second factor then, all its sessions end, and payouts are on hold for a while. Set a new password afterwards.",
		Form:     &form{Action: undoFactorsPath, Submit: "Remove it and end all sessions", Hidden: []hidden{{"token", token}}},
	}), nil
}

// undoFactors removes the visitor's second factors.
func (d *dashboard) undoFactors(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.UndoFactors(ctx, v.form.Get("token"), d.device(v)); err != nil {
		return deadLink(undoFactorsHeading, err)
	}
	return goTo("/forgot-password").saying("factors-undone"), nil
}
