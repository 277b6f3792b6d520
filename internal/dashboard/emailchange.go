package dashboard

import (
	"context"

	"bursar/internal/auth"
)

const (
	confirmEmailPath = "/confirm-email"
	undoEmailPath    = "/undo-email-change"
	changeEmailPath  = "/dashboard/profile/email"

	newEmailHeading  = "Confirm your new e-mail address"
	undoEmailHeading = "Undo the change of your e-mail address"
)

func emailForm() *form {
	return &form{Action: changeEmailPath, Submit: "Send a link to it", Fields: []field{
		{Name: "email", Label: "New e-mail address", Type: "email", Autocomplete: "email", Max: 254, Hint: "It is used once you open the link in the mail."},
	}}
}

// changeEmail mails a link to the visitor's new address.
func (d *dashboard) changeEmail(ctx context.Context, v *pageRequest) (page, error) {
	email := trimSpace(v.form.Get("email"))
	err := d.prove(ctx, v, auth.ActionChangeEmail, auth.EmailKey(email))
	if err == nil {
		err = d.o.Auth.ChangeEmail(ctx, v.who, email, d.device(v))
	}
	if err == nil {
		return goTo("/dashboard/profile").saying("email-link-mailed"), nil
	}
	p, shown, showErr := d.profilePage(ctx, v)
	if showErr != nil {
		return page{}, showErr
	}
	return d.again(ctx, p, shown.Email.fill(v.form), needsProof(err, shown.Email))
}

// emailPage shows what a link does, with the button that does it.
func (d *dashboard) emailPage(ctx context.Context, v *pageRequest, undo bool, heading, sentence, submit, path string) (page, error) {
	token := v.query("token")
	email, err := d.o.Auth.CheckEmailToken(ctx, token, undo)
	if err != nil {
		return deadLink(heading, err)
	}
	return show("link", heading, linkView{Heading: heading, Sentence: sentence + email + ".", Form: &form{
		Action: path, Submit: submit, Hidden: []hidden{{"token", token}},
	}}), nil
}

func (d *dashboard) confirmEmailPage(ctx context.Context, v *pageRequest) (page, error) {
	return d.emailPage(ctx, v, false, newEmailHeading, "Your account gets the address ", "Confirm e-mail address", confirmEmailPath)
}

// confirmEmail makes the new address the account's.
func (d *dashboard) confirmEmail(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.ConfirmEmailChange(ctx, v.form.Get("token"), d.device(v)); err != nil {
		return deadLink(newEmailHeading, err)
	}
	next := "/login"
	if v.signedIn() {
		next = "/dashboard/profile"
	}
	return goTo(next).saying("email-changed"), nil
}

func (d *dashboard) undoEmailPage(ctx context.Context, v *pageRequest) (page, error) {
	return d.emailPage(ctx, v, true, undoEmailHeading, "All sessions of your account end. Your password is removed, and a link that sets another one is mailed. Second factors, providers and bank accounts that were added since are removed too. Payouts are on hold, and the address is again ", "Undo the change", undoEmailPath)
}

// undoEmail gives the account its former address back.
func (d *dashboard) undoEmail(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.UndoEmailChange(ctx, v.form.Get("token"), d.device(v)); err != nil {
		return deadLink(undoEmailHeading, err)
	}
	return goTo("/login").saying("email-undone"), nil
}
