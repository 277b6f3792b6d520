package dashboard

import (
	"context"
	"errors"
	"slices"

	"bursar/internal/auth"
)

// unlinkPath is where a provider is unlinked.
const unlinkPath = "/dashboard/profile/providers/{provider}/unlink"

// UnlinkPath is where the provider is unlinked; "" if it is not set up any more.
func (i identityRow) UnlinkPath() string {
	if i.Provider == "" {
		return ""
	}
	return "/dashboard/profile/providers/" + string(i.Provider) + "/unlink"
}

// unlinkView asks for the proof to unlink a provider.
type unlinkView struct {
	Place string
	Form  *form
}

func (d *dashboard) unlinkForm(ctx context.Context, v *pageRequest) (page, *unlinkView, error) {
	identities, err := d.o.Auth.Identities(ctx, v.who.UserID)
	if err != nil {
		return page{}, nil, err
	}
	i := slices.IndexFunc(identities, func(i auth.LinkedIdentity) bool {
		return i.Provider != "" && string(i.Provider) == v.r.PathValue("provider")
	})
	if i < 0 {
		return page{}, nil, auth.ErrIdentityNotFound
	}
	row := identityRow{identities[i]}
	shown := &unlinkView{row.Place(), &form{Action: row.UnlinkPath(), Submit: "Unlink it"}}
	err = d.askForProof(ctx, v, shown.Form)
	return show("unlink", "Unlink a provider", shown), shown, err
}

// linkButtons begin a sign-in through each provider that is set up and not linked. None is linked to an admin.
func (d *dashboard) linkButtons(user auth.User, linked []auth.LinkedIdentity) []providerButton {
	if user.Role == auth.Admin {
		return nil
	}
	return slices.DeleteFunc(d.providerButtons("/dashboard/profile", ""), func(b providerButton) bool {
		return slices.ContainsFunc(linked, func(i auth.LinkedIdentity) bool { return i.Provider == b.ID })
	})
}

// unlinkPage says what unlinking a provider means, and asks for a proof.
func (d *dashboard) unlinkPage(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.unlinkForm(ctx, v)
	return p, err
}

// unlink ends that a provider's account signs in to the visitor's.
func (d *dashboard) unlink(ctx context.Context, v *pageRequest) (page, error) {
	p, shown, err := d.unlinkForm(ctx, v)
	if err != nil {
		return page{}, err
	}
	provider := v.r.PathValue("provider")
	if err = d.prove(ctx, v, auth.ActionUnlinkIdentity, provider); err == nil && v.who.Proof == "" {
		err = auth.ErrStepUp
	}
	if err == nil {
		err = d.o.Auth.UnlinkIdentity(ctx, v.who, auth.ProviderID(provider), "", d.device(v))
	}
	if errors.Is(err, auth.ErrToken) {
		return page{}, err
	}
	if err != nil {
		return d.again(ctx, p, shown.Form, needsProof(err, shown.Form))
	}
	return goTo("/dashboard/profile").saying("provider-unlinked"), nil
}
