package dashboard

import (
	"context"
	"errors"

	"bursar/internal/auth"
)

const deletePath = "/dashboard/profile/delete"

// DeletePath is where the account is deleted.
func (profileView) DeletePath() string { return deletePath }

func (d *dashboard) deleteForm(ctx context.Context, v *pageRequest) (page, *form, error) {
	f := &form{Action: deletePath, Submit: "Delete my account"}
	err := d.askForProof(ctx, v, f)
	return show("delete", "Delete your account", f), f, err
}

// deletePage says what a deletion means, and asks for a proof.
func (d *dashboard) deletePage(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.deleteForm(ctx, v)
	return p, err
}

// deleteAccount deletes the visitor's account, and signs the browser out.
func (d *dashboard) deleteAccount(ctx context.Context, v *pageRequest) (page, error) {
	p, f, err := d.deleteForm(ctx, v)
	if err != nil {
		return page{}, err
	}
	if err = d.prove(ctx, v, auth.ActionDeleteAccount); err == nil && v.who.Proof == "" {
		err = auth.ErrStepUp
	}
	if err == nil {
		err = d.o.Auth.DeleteAccount(ctx, v.who, "", d.device(v))
	}
	if errors.Is(err, auth.ErrToken) {
		return page{}, err
	}
	if err != nil {
		return d.again(ctx, p, f, needsProof(err, f))
	}
	v.cookies = append(v.cookies, d.cookies.SignIn("", -1))
	return goTo("/login").saying("account-deleted"), nil
}
