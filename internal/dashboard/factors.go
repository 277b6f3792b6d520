package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"slices"
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

// factorView asks for the second proof of a sign-in.
type factorView struct {
	Form             *form
	ByApp, ByPasskey bool
}

func (d *dashboard) showFactor(ctx context.Context, challenge, back string) (page, *factorView, error) {
	byApp, options, err := d.o.Auth.SecondStepMethods(ctx, challenge)
	f := codeField("Code of your authenticator app, or a recovery code")
	if !byApp {
		f.Label = "Recovery code"
	}
	if options != nil {
		f.Passkey = "Use your passkey"
	}
	shown := &factorView{&form{Action: withBack(web.FactorPath, back), Submit: "Sign in", Fields: []field{f}}, byApp, options != nil}
	return show("factor", "Second step", shown), shown, err
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

// secondProof is what a form proves a second factor with.
func secondProof(v *pageRequest) (given auth.SecondProof) {
	if answer := v.form.Get(provingPasskey); answer != "" {
		return auth.SecondProof{Assertion: []byte(answer)}
	}
	given.Code, given.RecoveryCode = codes(v.form.Get("code"))
	return given
}

// loginFactorPage asks for the second proof.
func (d *dashboard) loginFactorPage(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	challenge := d.cookies.Value(v.r, web.ChallengeCookie)
	switch {
	case challenge != "": // also of another user than the one who is signed in
		p, _, err := d.showFactor(ctx, challenge, back)
		if errors.Is(err, auth.ErrChallenge) {
			return d.signInAgain(v, back), nil
		}
		return p, err
	case v.signedIn():
		return goTo(back), nil
	default:
		return goTo(withBack("/login", back)), nil
	}
}

// signInAgain leads back to the first step of a sign-in.
func (d *dashboard) signInAgain(v *pageRequest, back string) page {
	d.keepChallenge(v, "", -time.Second)
	return goTo(withBack("/login", back)).saying("sign-in-again")
}

// loginFactor signs the visitor in whose second proof is right.
func (d *dashboard) loginFactor(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	step := auth.SecondStep{Challenge: d.cookies.Value(v.r, web.ChallengeCookie), SecondProof: secondProof(v), Device: d.device(v)}
	var signIn auth.SignIn
	var err error
	if v.wantsPasskey() {
		if _, v.options, err = d.o.Auth.SecondStepMethods(ctx, step.Challenge); err == nil {
			return page{}, nil
		}
	} else {
		signIn, err = d.o.Auth.LoginFactor(ctx, step)
	}
	switch {
	case errors.Is(err, auth.ErrChallenge):
		return d.signInAgain(v, back), nil
	case err != nil:
		p, shown, showErr := d.showFactor(ctx, step.Challenge, back)
		if showErr != nil {
			return page{}, errors.Join(err, showErr)
		}
		return d.again(ctx, p, shown.Form, err)
	default:
		err := d.begin(ctx, v, signIn)
		d.keepChallenge(v, "", -time.Second)
		return goTo(back), err
	}
}

// askForProof adds to a form what the visitor proves with, for an action that every user proves: a second factor, or the password.
func (d *dashboard) askForProof(ctx context.Context, v *pageRequest, f *form) error {
	if err := d.askForCode(ctx, v, f); err != nil || f.Field("code") != nil {
		return err
	}
	user, _, err := d.o.Auth.Me(ctx, v.who)
	switch {
	case err != nil:
		return err
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

// askForCode adds to a form the code that its action needs, if the visitor has a second factor.
func (d *dashboard) askForCode(ctx context.Context, v *pageRequest, f *form) error {
	all, _, err := d.o.Auth.Factors(ctx, v.who)
	if err == nil {
		askFor(all, f)
	}
	return err
}

// askFor adds to a form a code of one of the factors, or a passkey among them.
func askFor(all []auth.Factor, f *form) {
	has := func(kind auth.FactorKind) bool {
		return slices.ContainsFunc(all, func(one auth.Factor) bool { return one.Kind == kind && one.Confirmed() })
	}
	asked := codeField("A code of your authenticator app, or a recovery code")
	if has(auth.FactorPasskey) {
		asked.Passkey = "Confirm with a passkey"
	}
	asked.Suffix = strings.ReplaceAll(f.Action, "/", "-")
	for _, h := range f.Hidden {
		if h.Name == "factor" {
			asked.Suffix += "-" + h.Value
		}
	}
	switch {
	case has(auth.FactorTOTP):
	case asked.Passkey != "":
		asked.Label = "A recovery code"
	default:
		return
	}
	f.Fields = append(f.Fields, asked)
}

// What a form proves with, beside a code: the password, a passkey, or that the visitor signed in a short time ago.
const (
	provingPassword = "password"
	provingPasskey  = "assertion"
	provingSignIn   = "signIn"
)

// isProofMissing reports whether an action failed for want of a proof.
func isProofMissing(err error) bool {
	f := fault.From(err)
	if f == nil {
		return false
	}
	return errors.Is(err, auth.ErrStepUp) || errors.Is(err, auth.ErrStaleSignIn) || errors.Is(err, auth.ErrThrottled) || errors.Is(err, auth.ErrBusy) ||
		errors.Is(err, auth.ErrPasskey) || f.Details["code"] != "" || f.Details[provingPassword] != ""
}

// needsProof turns the wish for a proof into one about the field of the form that it is made with.
func needsProof(err error, f *form) error {
	if errors.Is(err, auth.ErrStepUp) && f.Field(provingPassword) != nil {
		return fault.Field(provingPassword, "is required")
	}
	return needsCode(err)
}

// prove gets the proof that an action needs, from what the form proves with. For a browser that is to ask a passkey it gets the
// passkey's options, and fails: the form comes again with the answer.
func (d *dashboard) prove(ctx context.Context, v *pageRequest, a auth.Action, bound ...string) error {
	r := auth.StepUp{Action: a, Bound: bound, Device: d.device(v), Password: v.form.Get(provingPassword)}
	if v.wantsPasskey() {
		_, _, err := d.o.Auth.StepUp(ctx, v.who, auth.StepUp{Action: a, Bound: bound, Device: r.Device})
		if errors.Is(err, auth.ErrStepUp) {
			v.options = json.RawMessage(fault.From(err).Details["options"])
		}
		return cmp.Or(err, error(auth.ErrStepUp))
	}
	r.SecondProof = secondProof(v)
	if r.SecondProof.Empty() && r.Password == "" && !v.form.Has(provingSignIn) {
		return nil // the action says whether it needs one
	}
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

// factorsView is the visitor's second factors.
type factorsView struct {
	Factors []auth.Factor
	Left    int
	AddApp  *form
	// AddPasskey is nil where browsers offer none.
	AddPasskey *form
	Removes    map[string]*form
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
	shown := &factorsView{Left: left, AddApp: &form{Action: factorsPath, Submit: "Add an authenticator app"}, Removes: map[string]*form{}}
	askFor(all, shown.AddApp)
	if d.o.Auth.OffersPasskeys() {
		shown.AddPasskey = passkeyForm()
		askFor(all, shown.AddPasskey)
	}
	for _, f := range all {
		if f.Confirmed() {
			shown.Factors = append(shown.Factors, f)
			shown.Removes[f.ID] = &form{Action: factorsPath + "/remove", Submit: "Remove it", Hidden: []hidden{{"factor", f.ID}}}
			askFor(all, shown.Removes[f.ID])
		}
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
		return d.addAgain(ctx, v, err, func(shown *factorsView) *form { return shown.AddApp })
	}
	return enrolPage(f)
}

// addAgain shows once more the form that adds a factor. Before the first factor a visitor may have to prove who they are otherwise.
func (d *dashboard) addAgain(ctx context.Context, v *pageRequest, err error, formOf func(*factorsView) *form) (page, error) {
	p, shown, showErr := d.factorsPage(ctx, v)
	if showErr != nil {
		return page{}, errors.Join(err, showErr)
	}
	f := formOf(shown)
	if f == nil {
		return page{}, err
	}
	if isProofMissing(err) && len(shown.Factors) == 0 {
		if err := d.askForProof(ctx, v, f); err != nil {
			return page{}, err
		}
	}
	return d.again(ctx, p, f.fill(v.form), needsProof(err, f))
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
