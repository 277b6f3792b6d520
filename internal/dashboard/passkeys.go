package dashboard

import (
	"context"
	"encoding/json"
	"errors"

	"bursar/internal/auth"
)

const passkeyLoginPath = "/login/passkey"

// passkeyHeader says that a script sent the form, to learn what a passkey has to sign for it. The form then comes as it always does,
// with the passkey's answer in it. Only an action that needs no proof is carried out by the first, and the second repeats it: each
// form is safe to send twice.
const passkeyHeader = "X-Passkey"

func (v *pageRequest) wantsPasskey() bool { return v.r.Header.Get(passkeyHeader) != "" }

// loginPasskey signs the visitor in by a passkey alone.
func (d *dashboard) loginPasskey(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	var signIn auth.SignIn
	var err error
	if v.wantsPasskey() {
		if v.options, err = d.o.Auth.PasskeyOptions(); err == nil {
			return page{}, nil
		}
	} else {
		signIn, err = d.o.Auth.LoginPasskey(ctx, []byte(v.form.Get(provingPasskey)), d.device(v))
	}
	if err != nil {
		f := d.loginForm(back)
		return d.again(ctx, d.showLogin(f, back), f, err)
	}
	return goTo(back), d.begin(ctx, v, signIn)
}

func passkeyForm() *form {
	return &form{Action: factorsPath + "/passkey", Submit: "Add a passkey", Fields: []field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "off", Max: 50, Optional: true, Hint: "Such as My phone, to tell passkeys apart."},
	}}
}

// passkeyView has a browser make a passkey. Options are what it needs for that.
type passkeyView struct {
	Options string
	Form    *form
}

// addPasskey begins a passkey, which the browser makes on the page that follows.
func (d *dashboard) addPasskey(ctx context.Context, v *pageRequest) (page, error) {
	err := d.prove(ctx, v, auth.ActionAddFactor)
	var made auth.NewPasskey
	if err == nil {
		made, err = d.o.Auth.AddPasskey(ctx, v.who, trimSpace(v.form.Get("name")))
	}
	if err != nil {
		return d.addAgain(ctx, v, err, func(shown *factorsView) *form { return shown.AddPasskey })
	}
	return showPasskey(made.ID, made.Options), nil
}

func showPasskey(factor string, options json.RawMessage) page {
	return show("passkey", "Add a passkey", &passkeyView{string(options), &form{
		Action: factorsPath + "/passkey/confirm", Hidden: []hidden{{"factor", factor}},
	}})
}

// confirmPasskey takes a passkey into use, and shows the recovery codes once.
func (d *dashboard) confirmPasskey(ctx context.Context, v *pageRequest) (page, error) {
	recovery, err := d.o.Auth.ConfirmPasskey(ctx, v.who, v.form.Get("factor"), []byte(v.form.Get("attestation")), d.device(v))
	p, shown, showErr := d.factorsPage(ctx, v)
	switch {
	case showErr != nil || shown.AddPasskey == nil:
		return page{}, errors.Join(err, showErr)
	case err != nil: // the passkey has to be made again, from the start
		return d.again(ctx, p, shown.AddPasskey, err)
	default:
		shown.Codes = recovery
		return p, nil
	}
}
