package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/web"
)

func (d *dashboard) keepChallenge(v *pageRequest, challenge string, age time.Duration) {
	v.cookies = append(v.cookies, d.cookies.Make(d.cookies.Named(web.ChallengeCookie), challenge, int(age/time.Second)))
}

// askForFactor leads to the page that asks for the second proof.
func (d *dashboard) askForFactor(v *pageRequest, err error, back string) page {
	d.keepChallenge(v, fault.From(err).Details["challenge"], auth.ChallengeLife)
	return goTo(withBack(web.FactorPath, back))
}

func factorForm(back string) *form {
	return &form{Action: withBack(web.FactorPath, back), Submit: "Sign in", Fields: []field{codeField("Code of your authenticator app, or a recovery code")}}
}

// codeField asks for a code of an app, or for a recovery code.
func codeField(label string) field {
	return field{Name: "code", Label: label, Type: "text", Autocomplete: "one-time-code", Max: 64, Secret: true}
}

// codes tells a code of an app, which is digits, from a recovery code.
func codes(typed string) (code, recoveryCode string) {
	typed = strings.Join(strings.Fields(typed), "")
	if strings.Trim(typed, "0123456789") == "" {
		return typed, ""
	}
	return "", typed
}

func showFactor(f *form) page { return show("factor", "Second step", f) }

// loginFactorPage asks for the second proof.
func (d *dashboard) loginFactorPage(_ context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	switch {
	case d.cookies.Value(v.r, web.ChallengeCookie) != "": // also of another user than the one who is signed in
		return showFactor(factorForm(back)), nil
	case v.signedIn():
		return goTo(back), nil
	default:
		return goTo(withBack("/login", back)), nil
	}
}

// loginFactor signs the visitor in whose second proof is right.
func (d *dashboard) loginFactor(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	step := auth.SecondStep{Challenge: d.cookies.Value(v.r, web.ChallengeCookie), Device: d.device(v)}
	step.Code, step.RecoveryCode = codes(v.form.Get("code"))
	signIn, err := d.o.Auth.LoginFactor(ctx, step)
	switch {
	case errors.Is(err, auth.ErrChallenge):
		d.keepChallenge(v, "", -time.Second)
		return goTo(withBack("/login", back)).saying("sign-in-again"), nil
	case err != nil:
		f := factorForm(back)
		return d.again(ctx, showFactor(f), f, err)
	default:
		d.keepChallenge(v, "", -time.Second)
		return goTo(back), d.begin(ctx, v, signIn)
	}
}

// askForProof adds to a form what the visitor proves with, for an action that every user proves: a code, or the password.
func (d *dashboard) askForProof(ctx context.Context, v *pageRequest, f *form) error {
	hasFactor, err := d.secondFactor(ctx, v)
	if err != nil {
		return err
	}
	user, _, err := d.o.Auth.Me(ctx, v.who)
	switch {
	case err != nil:
		return err
	case hasFactor:
		f.Fields = append(f.Fields, codeField("A code of your authenticator app, or a recovery code"))
	case user.PasswordHash != "":
		f.Username = user.Email
		f.Fields = append(f.Fields, field{Name: provingPassword, Label: "Your password", Type: "password", Autocomplete: "current-password", Secret: true})
	default:
		f.Hidden = append(f.Hidden, hidden{provingSignIn, "recent"})
	}
	return nil
}

// proveDecision uses up the proof that an admin's decision needs, from the code in the form.
func (d *dashboard) proveDecision(ctx context.Context, v *pageRequest, a decision.Action, subject string) error {
	if err := d.prove(ctx, v, auth.AdminAction(a), subject); err != nil {
		return err
	}
	return needsCode(d.o.Auth.ProveDecision(ctx, v.who, a, subject))
}

// askForCode adds to a form for an admin's decision the code that it needs, if the admin has a second factor.
func (d *dashboard) askForCode(ctx context.Context, v *pageRequest, f *form) error {
	hasFactor, err := d.secondFactor(ctx, v)
	if hasFactor {
		f.Fields = append(f.Fields, codeField("A code of your authenticator app"))
	}
	return err
}

// What a form proves with, beside a code: the password, or that the visitor signed in a short time ago.
const (
	provingPassword = "password"
	provingSignIn   = "signIn"
)

// isProofMissing reports whether an action failed for want of a proof.
func isProofMissing(err error) bool {
	f := fault.From(err)
	if f == nil {
		return false
	}
	return errors.Is(err, auth.ErrStepUp) || errors.Is(err, auth.ErrStaleSignIn) || errors.Is(err, auth.ErrThrottled) || errors.Is(err, auth.ErrBusy) ||
		f.Details["code"] != "" || f.Details[provingPassword] != ""
}

// needsProof turns the wish for a proof into one about the field of the form that it is made with.
func needsProof(err error, f *form) error {
	if errors.Is(err, auth.ErrStepUp) && f.Field(provingPassword) != nil {
		return fault.Field(provingPassword, "must be given")
	}
	return needsCode(err)
}

// prove gets the proof that an action needs, from the code or the password in the form.
func (d *dashboard) prove(ctx context.Context, v *pageRequest, a auth.Action, bound ...string) error {
	r := auth.StepUp{Action: a, Bound: bound, Device: d.device(v), Password: v.form.Get(provingPassword)}
	if v.form.Get("code") == "" && r.Password == "" && !v.form.Has(provingSignIn) {
		return nil // the action says whether it needs one
	}
	r.Code, r.RecoveryCode = codes(v.form.Get("code"))
	proof, _, err := d.o.Auth.StepUp(ctx, v.who, r)
	if err == nil {
		v.who.Proof = proof
	}
	if errors.Is(err, auth.ErrFactorCode) {
		err = fault.Field("code", "is wrong, was used already, or is too old: enter the one that is shown now")
	}
	return err
}

// needsCode turns the wish for a proof into one about the field for it.
func needsCode(err error) error {
	if errors.Is(err, auth.ErrStepUp) {
		return fault.Field("code", "must be a code of your authenticator app, or a recovery code")
	}
	return err
}

// secondFactor reports whether the visitor has one, so that forms ask for a code.
func (d *dashboard) secondFactor(ctx context.Context, v *pageRequest) (bool, error) {
	all, _, err := d.o.Auth.Factors(ctx, v.who)
	for _, f := range all {
		if f.Confirmed() {
			return true, err
		}
	}
	return false, err
}

// factorsView is the visitor's second factors.
type factorsView struct {
	Factors []auth.Factor
	Left    int
	Add     *form
	Removes map[string]*form
	// Codes are shown once.
	Codes []string
}

// enrolView shows the secret of a new factor, once.
type enrolView struct {
	auth.NewFactor
	QR   template.HTML
	Form *form
}

// Link opens the secret in an app of the same device. It is a secret of the service's own making, of a scheme that templates
// do not know.
func (e enrolView) Link() template.URL {
	if !strings.HasPrefix(e.URI, "otpauth://totp/") {
		return "#"
	}
	return template.URL(e.URI) //nolint:gosec // the scheme was looked at
}

func (d *dashboard) factorsPage(ctx context.Context, v *pageRequest) (page, *factorsView, error) {
	all, left, err := d.o.Auth.Factors(ctx, v.who)
	if err != nil {
		return page{}, nil, err
	}
	shown := &factorsView{Left: left, Add: &form{Action: factorsPath, Submit: "Add an authenticator app"}, Removes: map[string]*form{}}
	for _, f := range all {
		if !f.Confirmed() {
			continue
		}
		shown.Factors = append(shown.Factors, f)
		shown.Removes[f.ID] = &form{
			Action: factorsPath + "/remove", Submit: "Remove it", Hidden: []hidden{{"factor", f.ID}},
			Fields: []field{codeField("A code of an app, or a recovery code")},
		}
	}
	if len(shown.Factors) > 0 {
		shown.Add.Fields = []field{codeField("A code of an app that you have added, or a recovery code")}
	}
	return show("factors", "Second factors", shown), shown, nil
}

const factorsPath = "/dashboard/profile/factors"

// factors shows the visitor's second factors.
func (d *dashboard) factors(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.factorsPage(ctx, v)
	return p, err
}

// addFactor shows a new secret.
func (d *dashboard) addFactor(ctx context.Context, v *pageRequest) (page, error) {
	err := d.prove(ctx, v, auth.ActionAddFactor)
	var f auth.NewFactor
	if err == nil {
		f, err = d.o.Auth.AddFactor(ctx, v.who, "")
	}
	if err != nil {
		p, shown, showErr := d.factorsPage(ctx, v)
		if showErr != nil {
			return page{}, errors.Join(err, showErr)
		}
		if isProofMissing(err) && len(shown.Factors) == 0 {
			if err := d.askForProof(ctx, v, shown.Add); err != nil {
				return page{}, err
			}
		}
		return d.again(ctx, p, shown.Add, needsProof(err, shown.Add))
	}
	return enrolPage(f)
}

func enrolPage(f auth.NewFactor) (page, error) {
	code, err := qrCode(f.URI)
	return show("enrol", "Add an authenticator app", &enrolView{f, code, &form{
		Action: factorsPath + "/confirm", Submit: "Confirm", Hidden: []hidden{{"factor", f.ID}, {"secret", f.Secret}, {"uri", f.URI}},
		Fields: []field{codeField("The code that the app shows now")},
	}}), err
}

// qrCode draws a text for a camera.
func qrCode(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("draw a QR code: %w", err)
	}
	const quiet = 4
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := range size {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	whole := size + 2*quiet
	return template.HTML(fmt.Sprintf(`<svg class="qr" role="img" aria-label="QR code of the secret" viewBox="0 0 %d %d" width="200" height="200" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%dv%dh-%dz"/><path fill="#000" d="%s"/></svg>`, //nolint:gosec // made of numbers alone
		whole, whole, whole, whole, whole, path.String())), nil
}

// confirmFactor takes a factor into use, and shows the recovery codes once.
func (d *dashboard) confirmFactor(ctx context.Context, v *pageRequest) (page, error) {
	code, _ := codes(v.form.Get("code"))
	recovery, err := d.o.Auth.ConfirmFactor(ctx, v.who, v.form.Get("factor"), code, d.device(v))
	if err == nil {
		p, shown, err := d.factorsPage(ctx, v)
		if shown != nil {
			shown.Codes = recovery
		}
		return p, err
	}
	if !errors.Is(err, auth.ErrFactorCode) && !errors.Is(err, auth.ErrThrottled) {
		return page{}, err
	}
	p, drawErr := enrolPage(auth.NewFactor{Factor: auth.Factor{ID: v.form.Get("factor")}, Secret: v.form.Get("secret"), URI: v.form.Get("uri")})
	if drawErr != nil {
		return page{}, errors.Join(err, drawErr)
	}
	shown, _ := p.data.(*enrolView)
	return d.again(ctx, p, shown.Form, err)
}

// removeFactor takes a factor out of use.
func (d *dashboard) removeFactor(ctx context.Context, v *pageRequest) (page, error) {
	factor := v.form.Get("factor")
	err := d.prove(ctx, v, auth.ActionRemoveFactor, factor)
	if err == nil {
		err = d.o.Auth.RemoveFactor(ctx, v.who, factor, d.device(v))
	}
	if err == nil {
		return goTo(factorsPath).saying("factor-removed"), nil
	}
	p, shown, showErr := d.factorsPage(ctx, v)
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	f, known := shown.Removes[factor]
	if !known {
		return page{}, err
	}
	return d.again(ctx, p, f, needsCode(err))
}
