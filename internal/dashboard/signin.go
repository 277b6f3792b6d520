package dashboard

import (
	"context"
	"errors"
	"net/url"

	"bursar/internal/auth"
	"bursar/internal/web"
)

// home redirects the bare address to the page for the user's role.
func (*dashboard) home(_ context.Context, v *pageRequest) (page, error) {
	if v.signedIn() {
		return goTo(home), nil
	}
	return goTo("/login"), nil
}

// signInView is what the pages to sign in and to register show.
type signInView struct {
	Form    *form
	Buttons []providerButton
	// Problem is why a sign-in through a provider came to nothing.
	Problem string
	// Other is the other of the two pages, with the way back kept.
	Other string
	// Passkey is where a passkey signs in, where browsers offer them.
	Passkey string
}

// providerButton is a link that begins a sign-in through a provider. Role is what a new user becomes, where
// the page asks for it.
type providerButton struct {
	ID          auth.ProviderID
	Label, Path string
	Role        auth.Role
}

func (d *dashboard) providerButtons(back string, role auth.Role) []providerButton {
	var buttons []providerButton
	for _, b := range d.o.Auth.SignInButtons() {
		query := url.Values{}
		if back != home {
			query.Set("redirect", back)
		}
		if role != "" {
			query.Set("role", string(role))
		}
		path := "/api/auth/" + string(b.ID)
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		buttons = append(buttons, providerButton{b.ID, b.Label, path, role})
	}
	return buttons
}

// withBack adds the way back to a path of ours.
func withBack(path, back string) string {
	if back == home {
		return path
	}
	return path + "?" + url.Values{"redirect": {back}}.Encode()
}

// backOf is where the visitor wanted to go: a path of ours, whatever the address says.
func backOf(v *pageRequest) string {
	if back := v.query("redirect"); web.LocalPath(back) {
		return back
	}
	return home
}

func (d *dashboard) loginForm(back string) *form {
	return &form{Action: withBack("/login", back), Submit: "Sign in", Fields: []field{
		{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "username", Max: 254},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Secret: true},
	}}
}

func (d *dashboard) showLogin(f *form, back string) page {
	shown := &signInView{Form: f, Buttons: d.providerButtons(back, ""), Other: withBack("/register", back)}
	if d.o.Auth.OffersPasskeys() {
		shown.Passkey = withBack(passkeyLoginPath, back)
	}
	return show("login", "Sign in", shown)
}

// loginPage asks who the visitor is.
func (d *dashboard) loginPage(_ context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	if v.signedIn() {
		return goTo(back), nil
	}
	p := d.showLogin(d.loginForm(back), back)
	if given := v.query("error"); given != "" {
		shown, _ := p.data.(*signInView)
		shown.Problem = signInProblem(given)
	}
	return p, nil
}

// signInProblem is a sentence of the address where it is one of ours: else anybody could make the page
// say what they like.
func signInProblem(given string) string {
	if auth.IsSignInProblem(given) {
		return given
	}
	return "The sign-in did not succeed. Try again, or sign in with e-mail and password."
}

// login signs the visitor in.
func (d *dashboard) login(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	signIn, err := d.o.Auth.Login(ctx, auth.Credentials{
		Email: v.form.Get("email"), Password: v.form.Get("password"), Device: d.device(v),
	})
	if errors.Is(err, auth.ErrSecondFactor) {
		return d.askForFactor(v, err, back), nil
	}
	if err != nil {
		f := d.loginForm(back).fill(v.form)
		return d.again(ctx, d.showLogin(f, back), f, err)
	}
	return goTo(back), d.begin(ctx, v, signIn)
}

func (d *dashboard) registerForm(back string, role auth.Role) *form {
	return &form{Action: withBack("/register", back), Submit: "Create account", Fields: []field{
		{Name: "role", Label: "I want to…", Type: "choice", Value: string(role), Choices: []choice{
			{string(auth.Seller), "I sell", "See what you earn, and have it paid to your bank account."},
			{string(auth.Buyer), "I buy", "Sign in to the marketplace as a customer."},
		}},
		{Name: "name", Label: "Name", Type: "text", Autocomplete: "name", Max: 50},
		{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "email", Max: 254},
		{Name: "password", Label: "Password", Hint: "At least 8 characters.", Type: "password", Autocomplete: "new-password", Secret: true},
	}}
}

func (d *dashboard) showRegister(f *form, back string, role auth.Role) page {
	return show("register", "Create an account", &signInView{
		Form: f, Buttons: d.providerButtons(back, role), Other: withBack("/login", back),
	})
}

// roleOf is the role that an address or a form asks for; a page of sellers expects one.
func roleOf(chosen string) auth.Role {
	if chosen == string(auth.Buyer) {
		return auth.Buyer
	}
	return auth.Seller
}

// registerPage asks for what an account needs.
func (d *dashboard) registerPage(_ context.Context, v *pageRequest) (page, error) {
	back, role := backOf(v), roleOf(v.query("role"))
	if v.signedIn() {
		return goTo(back), nil
	}
	return d.showRegister(d.registerForm(back, role), back, role), nil
}

// register makes an account and signs its owner in.
func (d *dashboard) register(ctx context.Context, v *pageRequest) (page, error) {
	back := backOf(v)
	signIn, err := d.o.Auth.Register(ctx, auth.Registration{
		Name: v.form.Get("name"), Email: v.form.Get("email"), Password: v.form.Get("password"),
		Role: auth.Role(v.form.Get("role")), Device: d.device(v),
	})
	if err != nil {
		role := roleOf(v.form.Get("role"))
		f := d.registerForm(back, role).fill(v.form)
		return d.again(ctx, d.showRegister(f, back, role), f, err)
	}
	return goTo(back).saying("registered"), d.begin(ctx, v, signIn)
}

// logout ends the visitor's session. A visitor without one is signed out already.
func (d *dashboard) logout(ctx context.Context, v *pageRequest) (page, error) {
	if v.signedIn() {
		if err := d.o.Auth.Logout(ctx, v.who); err != nil {
			return page{}, err
		}
	}
	v.cookies = append(v.cookies, d.cookies.SignIn("", -1))
	return goTo("/login").saying("signed-out"), nil
}

// device is where the visitor comes from.
func (d *dashboard) device(v *pageRequest) auth.Device {
	return auth.Device{Address: d.o.TrustedProxies.Client(v.r), Agent: v.r.UserAgent(), Tokens: d.cookies.Devices(v.r)}
}
