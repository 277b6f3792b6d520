package dashboard

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"bursar/internal/auth"
	"bursar/internal/ledger"
)

// profileView is what a user can see and change about themselves.
type profileView struct {
	User       auth.User
	Profile    *form
	Password   *form
	Code       *form // where the address is to be confirmed
	Sessions   []sessionRow
	Identities []identityRow
	Passkeys   []auth.Factor
	Buttons    []providerButton // of the providers that are not linked
	Events     []securityRow
	Email      *form
}

// Initials stand where a picture would be: one of another site would tell that site who looks at it.
func (p profileView) Initials() string {
	var initials []rune
	for word := range strings.FieldsSeq(p.User.Name) {
		if c, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(c) || unicode.IsDigit(c) {
			initials = append(initials, unicode.ToUpper(c))
		}
	}
	if len(initials) > 2 {
		initials = []rune{initials[0], initials[len(initials)-1]}
	}
	return string(initials)
}

// sessionRow is a sign-in as its user tells it from others.
type sessionRow struct {
	auth.SessionInfo
	Where   string
	Current bool
}

// identityRow is a way to sign in through a provider.
type identityRow struct{ auth.LinkedIdentity }

// Place is what people call the provider, or where one is that is not set up any more, without what every address begins with.
func (i identityRow) Place() string {
	if i.Provider != "" {
		return i.Label
	}
	return strings.TrimPrefix(strings.TrimPrefix(i.Issuer, "https://"), "http://")
}

func profileForm(u auth.User) *form {
	return &form{Action: "/dashboard/profile", Submit: "Save profile", Fields: []field{
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "name", Max: 50, Value: u.Name},
		{Name: "bio", Label: "About you", Type: "textarea", Optional: true, Max: 500, Value: u.Profile.Bio},
		{Name: "website", Label: "Website", Type: "url", Autocomplete: "url", Optional: true, Max: 2048, Value: u.Profile.Website},
		{
			Name: "avatar", Label: "Profile photo URL", Type: "url", Autocomplete: "photo", Optional: true, Max: 2048, Value: u.Profile.Avatar,
			Hint: "Marketplaces may show it. These pages show your initials.",
		},
	}}
}

func passwordForm(u auth.User) *form {
	f := &form{
		Action: "/dashboard/profile/password", Submit: "Set password",
		Username: u.Email, // tells a password manager whose password it is
	}
	if u.PasswordHash != "" {
		f.Submit = "Change password"
		f.Fields = []field{{Name: "currentPassword", Label: "Current password", Type: "password", Autocomplete: "current-password", Secret: true}}
	}
	f.Fields = append(f.Fields, field{
		Name: "newPassword", Label: "New password", Type: "password", Autocomplete: "new-password", Secret: true,
		Hint: "At least 8 characters. All your other sessions are signed out.",
	})
	return f
}

func (d *dashboard) profilePage(ctx context.Context, v *pageRequest) (page, *profileView, error) {
	user, _, err := d.o.Auth.Me(ctx, v.who)
	if err != nil {
		return page{}, nil, err
	}
	sessions, err := d.o.Auth.Sessions(ctx, v.who)
	if err != nil {
		return page{}, nil, err
	}
	identities, err := d.o.Auth.Identities(ctx, v.who.UserID)
	if err != nil {
		return page{}, nil, err
	}
	events, err := d.o.Auth.SecurityEvents(ctx, v.who.UserID, 0, eventsShown)
	if err != nil && !errors.Is(err, ledger.ErrTampered) { // whose journal was changed can still change the password
		return page{}, nil, err
	}
	factors, _, err := d.o.Auth.Factors(ctx, v.who)
	if err != nil {
		return page{}, nil, err
	}
	shown := &profileView{User: user, Profile: profileForm(user), Password: passwordForm(user), Events: securityRows(events)}
	if !user.Verified {
		shown.Code = codeForm()
	}
	shown.Email = emailForm()
	if err := d.askForProof(ctx, v, shown.Email); err != nil {
		return page{}, nil, err
	}
	askFor(factors, shown.Password)
	for _, f := range factors {
		if f.Kind == auth.FactorPasskey && f.Confirmed() {
			shown.Passkeys = append(shown.Passkeys, f)
		}
	}
	for _, s := range sessions {
		shown.Sessions = append(shown.Sessions, sessionRow{s, deviceName(s.Agent), s.ID == v.who.Session})
	}
	for _, i := range identities {
		shown.Identities = append(shown.Identities, identityRow{i})
	}
	shown.Buttons = d.linkButtons(user, identities)
	return show("profile", "Profile", shown), shown, nil
}

// profile shows who the visitor is here.
func (d *dashboard) profile(ctx context.Context, v *pageRequest) (page, error) {
	p, _, err := d.profilePage(ctx, v)
	return p, err
}

// saveProfile changes what others may see of the visitor.
func (d *dashboard) saveProfile(ctx context.Context, v *pageRequest) (page, error) {
	err := d.o.Auth.SetProfile(ctx, v.who, auth.ProfileChange{
		Name: new(trimSpace(v.form.Get("name"))), Bio: new(strings.ReplaceAll(v.form.Get("bio"), "\r\n", "\n")),
		Website: new(trimSpace(v.form.Get("website"))), Avatar: new(trimSpace(v.form.Get("avatar"))),
	}, d.device(v))
	if err == nil {
		return goTo("/dashboard/profile").saying("profile-saved"), nil
	}
	p, shown, showErr := d.profilePage(ctx, v)
	if showErr != nil {
		return page{}, showErr
	}
	return d.again(ctx, p, shown.Profile.fill(v.form), err)
}

// changePassword replaces the visitor's password.
func (d *dashboard) changePassword(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.prove(ctx, v, auth.ActionChangePassword); err != nil {
		return d.passwordAgain(ctx, v, err)
	}
	token, err := d.o.Auth.ChangePassword(ctx, v.who, v.form.Get("currentPassword"), v.form.Get("newPassword"), d.device(v))
	if err == nil {
		d.rememberDevice(v, v.who.UserID, token)
		return goTo("/dashboard/profile").saying("password-changed"), nil
	}
	return d.passwordAgain(ctx, v, needsCode(err))
}

// passwordAgain shows the form with what is wrong.
func (d *dashboard) passwordAgain(ctx context.Context, v *pageRequest, err error) (page, error) {
	p, shown, showErr := d.profilePage(ctx, v)
	if showErr != nil {
		return page{}, showErr
	}
	return d.again(ctx, p, shown.Password, err)
}

// endSession signs the visitor out somewhere else.
func (d *dashboard) endSession(ctx context.Context, v *pageRequest) (page, error) {
	err := d.o.Auth.EndSession(ctx, v.who, v.form.Get("session"), d.device(v))
	if err != nil && !errors.Is(err, auth.ErrNoSession) { // it has ended, as it should
		return page{}, err
	}
	return goTo("/dashboard/profile").saying("session-ended"), nil
}

// endOtherSessions signs the visitor out everywhere else.
func (d *dashboard) endOtherSessions(ctx context.Context, v *pageRequest) (page, error) {
	if err := d.o.Auth.EndOtherSessions(ctx, v.who, d.device(v)); err != nil {
		return page{}, err
	}
	return goTo("/dashboard/profile").saying("sessions-ended"), nil
}

// deviceName names a browser from what it calls itself, which may be anything.
func deviceName(agent string) string { return cmp.Or(auth.DeviceName(agent), agent, "Unknown device") }
