package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"unicode"

	"bursar/internal/auth"
)

type registerRequest struct{ auth.Registration }

func (req *registerRequest) read(in *input) {
	in.missingIsInvalid = true
	req.Name = in.text("name", auth.CheckName)
	req.Email = in.text("email", auth.CheckEmail)
	req.Password = in.text("password", auth.CheckPassword)
	req.Role = auth.Buyer
	in.optionalText("role", func(s string) string {
		role, ok := auth.ParseRole(s)
		if !ok || s == "" {
			return "must be seller or buyer"
		}
		req.Role = role
		return ""
	})
	req.Device = in.device()
}

func (in *input) device() auth.Device { return in.api.device(in.r) }

// device is where a request comes from.
func (a *api) device(r *http.Request) auth.Device {
	return auth.Device{Address: a.o.TrustedProxies.Client(r), Agent: r.UserAgent(), Tokens: a.cookies.Devices(r)}
}

// knownDevice is what a browser is known by after its user signed in. It is no sign-in.
func knownDevice(s auth.SignIn) deviceCookie { return deviceCookie{s.User.ID, s.DeviceToken} }

// userJSON is a user as the interface shows it. Endpoints that leave something out leave it zero.
type userJSON struct {
	ID         string       `json:"id"`
	Name       string       `json:"name"`
	Email      string       `json:"email"`
	Role       auth.Role    `json:"role"`
	IsVerified bool         `json:"isVerified"`
	CreatedAt  string       `json:"createdAt,omitempty"`
	Profile    *profileJSON `json:"profile,omitempty"`
	Stats      *statsJSON   `json:"stats,omitempty"`
}

type profileJSON struct {
	Avatar  string `json:"avatar"`
	Bio     string `json:"bio"`
	Website string `json:"website"`
}

type statsJSON struct {
	TotalSales     int64       `json:"totalSales"`
	TotalEarnings  json.Number `json:"totalEarnings"`
	ProductsListed int64       `json:"productsListed"`
}

func userOf(u auth.User) userJSON {
	return userJSON{ID: u.ID, Name: u.Name, Email: u.Email, Role: u.Role, IsVerified: u.Verified}
}

type registeredJSON struct {
	User         userJSON `json:"user"`
	Token        string   `json:"token"`
	RefreshToken string   `json:"refreshToken"`
}

func (a *api) register(ctx context.Context, _ caller, req registerRequest) (reply[registeredJSON], error) {
	signIn, err := a.o.Auth.Register(ctx, req.Registration)
	if err != nil {
		return reply[registeredJSON]{}, err
	}
	user := userOf(signIn.User)
	user.CreatedAt = stamp(signIn.User.CreatedAt)
	return reply[registeredJSON]{
		status:  http.StatusCreated,
		message: "Welcome. Your account is ready.",
		device:  knownDevice(signIn),
		data:    registeredJSON{user, signIn.Token, signIn.RefreshToken},
	}, nil
}

type loginRequest struct{ auth.Credentials }

func (req *loginRequest) read(in *input) {
	req.Email = in.text("email", checkNoControls)
	req.Password = in.text("password", anything)
	req.Device = in.device()
}

// checkNoControls returns what is wrong with a text of one line, or "".
func checkNoControls(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "must not contain control characters"
	}
	return ""
}

type loggedInJSON struct {
	User         userJSON `json:"user"`
	Token        string   `json:"token"`
	ExpiresIn    string   `json:"expiresIn"`
	RefreshToken string   `json:"refreshToken"`
}

func (a *api) login(ctx context.Context, _ caller, req loginRequest) (reply[loggedInJSON], error) {
	return loggedIn(a.o.Auth.Login(ctx, req.Credentials))
}

// loggedIn answers the step that ends a sign-in.
func loggedIn(signIn auth.SignIn, err error) (reply[loggedInJSON], error) {
	return reply[loggedInJSON]{
		message: "You are signed in.",
		device:  knownDevice(signIn),
		data:    loggedInJSON{userOf(signIn.User), signIn.Token, lifetime(signIn.ExpiresIn), signIn.RefreshToken},
	}, err
}

type refreshRequest struct{ refreshToken string }

func (req *refreshRequest) read(in *input) { req.refreshToken = in.text("refreshToken", anything) }

type refreshedJSON struct {
	Token        string `json:"token"`
	ExpiresIn    string `json:"expiresIn"`
	RefreshToken string `json:"refreshToken"`
}

func (a *api) refresh(ctx context.Context, _ caller, req refreshRequest) (reply[refreshedJSON], error) {
	signIn, err := a.o.Auth.Refresh(ctx, req.refreshToken)
	return reply[refreshedJSON]{
		data: refreshedJSON{signIn.Token, lifetime(signIn.ExpiresIn), signIn.RefreshToken},
	}, err
}

type meJSON struct {
	User userJSON `json:"user"`
}

func (a *api) me(ctx context.Context, who caller, _ none) (reply[meJSON], error) {
	u, stats, err := a.o.Auth.Me(ctx, who.Principal)
	if err != nil {
		return reply[meJSON]{}, err
	}
	user := userOf(u)
	user.CreatedAt = stamp(u.CreatedAt)
	user.Profile = &profileJSON{u.Profile.Avatar, u.Profile.Bio, u.Profile.Website}
	user.Stats = &statsJSON{stats.TotalSales, a.amount(stats.TotalEarnings), stats.ProductsListed}
	return reply[meJSON]{data: meJSON{user}}, nil
}

func (a *api) logout(ctx context.Context, who caller, _ none) (reply[none], error) {
	err := a.o.Auth.Logout(ctx, who.Principal)
	return reply[none]{message: "You are signed out.", endCookie: who.byCookie}, err
}
