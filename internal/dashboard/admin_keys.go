package dashboard

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"bursar/internal/auth"
	"bursar/internal/decision"
	"bursar/internal/fault"
	"bursar/internal/ledger"
)

// Where the service keys of the marketplace are.
const (
	keysPath   = adminHome + "/keys"
	newKeyPath = keysPath + "/new"
)

// keysView lists the service keys.
type keysView struct {
	Keys    []keyRow
	NewPath string
}

// keyRow is a service key as admins see it.
type keyRow struct {
	auth.ServiceKey
	status string
	// Rotated says that the one before a rotation is accepted, too.
	Rotated bool
}

func (d *dashboard) keyRow(k auth.ServiceKey) keyRow {
	now := d.o.Now()
	return keyRow{k, k.Status(now), k.RevokedAt.IsZero() && k.RotatedUntil.After(now)}
}

// Label says whether the key is accepted.
func (k keyRow) Label() label {
	switch k.status {
	case "active":
		return label{"Active", good}
	case "expired":
		return label{"Expired", neutral}
	case "revoked":
		return label{"Revoked", neutral}
	default:
		return label{"Changed outside Bursar", bad}
	}
}

// Active reports whether the key can be rotated.
func (k keyRow) Active() bool { return k.status == "active" }

// ScopeWords says what the key may do.
func (k keyRow) ScopeWords() string {
	if k.Scopes == auth.AllScopes() {
		return "all"
	}
	return strings.Join(k.Scopes.List(), ", ")
}

// RotatePath and RevokePath are where the key is replaced and ended.
func (k keyRow) RotatePath() string { return keysPath + "/" + k.ID + "/rotate" }
func (k keyRow) RevokePath() string { return keysPath + "/" + k.ID + "/revoke" }

// keyView is a page that makes, rotates or revokes a key. Secret is the key itself, shown once.
type keyView struct {
	Title, Does, Secret string
	Form                *form
}

// adminKeys lists the service keys.
func (d *dashboard) adminKeys(ctx context.Context, _ *pageRequest) (page, error) {
	all, err := d.o.Auth.ServiceKeys(ctx)
	if err != nil {
		return page{}, err
	}
	shown := keysView{NewPath: newKeyPath}
	for _, k := range all {
		shown.Keys = append(shown.Keys, d.keyRow(k))
	}
	return show("admin-keys", "Service keys", shown), nil
}

// keyAction is one of the ways to change the service keys.
type keyAction struct {
	submit, title, does string
	fields              func() []field
	// do carries it out for the key with that id, if it is about one. It returns the key to show, if there is a new one.
	do func(ctx context.Context, d *dashboard, v *pageRequest, id, actor string) (secret string, err error)
}

var createKey = keyAction{
	submit: "Create key", title: "Create a service key",
	does: "A server of the marketplace calls the API with it. The key is shown once.",
	fields: func() []field {
		return []field{
			{Name: "name", Label: "Name", Type: "text", Autocomplete: "off", Max: 100, Hint: "What the key is for. Names are never used again."},
			{
				Name: "scopes", Label: "Scopes", Type: "textarea", Optional: true, Max: 500,
				Hint: "What the key may do, separated by spaces; none is all: " + string(auth.AllScopes()) + ".",
			},
			{Name: "expiresAt", Label: "Last day", Type: "text", Autocomplete: "off", Optional: true, Max: 10, Hint: "Such as 2027-12-31, in UTC. Without one the key does not expire."},
		}
	},
	do: func(ctx context.Context, d *dashboard, v *pageRequest, _, actor string) (string, error) {
		n := auth.NewServiceKey{Name: v.form.Get("name"), Scopes: strings.Fields(v.form.Get("scopes"))}
		if given := strings.TrimSpace(v.form.Get("expiresAt")); given != "" {
			last, err := time.Parse(time.DateOnly, given)
			if err != nil {
				return "", fault.Field("expiresAt", "must be a day such as 2027-12-31")
			}
			n.ExpiresAt = last.AddDate(0, 0, 1)
		}
		if err := d.proveDecision(ctx, v, decision.CreateServiceKey, n.Name); err != nil {
			return "", err
		}
		secret, _, err := d.o.Auth.CreateServiceKey(ctx, n, actor)
		return secret, err
	},
}

var rotateKey = keyAction{
	submit: "Rotate key", title: "Rotate the key",
	does: "A new key takes its place at once and is shown once. The one before is accepted for a while, so that you can replace it everywhere.",
	fields: func() []field {
		return []field{{
			Name: "graceSeconds", Label: "Hours that the key before is accepted", Type: "text", InputMode: "numeric", Autocomplete: "off", Max: 3, Value: "24",
			Hint: "0 to 720. With 0 every earlier key ends now.",
		}}
	},
	do: func(ctx context.Context, d *dashboard, v *pageRequest, id, actor string) (string, error) {
		hours, err := strconv.Atoi(strings.TrimSpace(v.form.Get("graceSeconds")))
		if err != nil || hours < 0 || hours > int(auth.MaxRotationGrace/time.Hour) {
			return "", fault.Field("graceSeconds", "must be a whole number from 0 to 720")
		}
		if err := d.proveDecision(ctx, v, decision.RotateServiceKey, id); err != nil {
			return "", err
		}
		secret, _, err := d.o.Auth.RotateServiceKey(ctx, id, time.Duration(hours)*time.Hour, actor)
		return secret, err
	},
}

var revokeKey = keyAction{
	submit: "Revoke key", title: "Revoke the key",
	does:   "The key is refused from the next request on, and sessions that its links opened end. It can't be undone.",
	fields: func() []field { return nil },
	do: func(ctx context.Context, d *dashboard, v *pageRequest, id, actor string) (string, error) {
		if err := d.proveDecision(ctx, v, decision.RevokeServiceKey, id); err != nil {
			return "", err
		}
		_, err := d.o.Auth.RevokeServiceKey(ctx, id, actor)
		return "", err
	},
}

// keyRoutes are the pages about service keys.
func (d *dashboard) keyRoutes() []route {
	return []route{
		{"GET", keysPath, admins, d.adminKeys},
		{"GET", newKeyPath, admins, d.askKey(createKey)},
		{"POST", newKeyPath, admins, d.changeKey(createKey)},
		{"GET", keysPath + "/{id}/rotate", admins, d.askKey(rotateKey)},
		{"POST", keysPath + "/{id}/rotate", admins, d.changeKey(rotateKey)},
		{"GET", keysPath + "/{id}/revoke", admins, d.askKey(revokeKey)},
		{"POST", keysPath + "/{id}/revoke", admins, d.changeKey(revokeKey)},
	}
}

// showKey shows the form of an action, about the key that the address names, if it names one.
func (d *dashboard) showKey(ctx context.Context, v *pageRequest, a keyAction) (page, *keyView, error) {
	shown := &keyView{Title: a.title, Does: a.does, Form: &form{Action: v.r.URL.Path, Submit: a.submit, Fields: a.fields()}}
	if id := v.r.PathValue("id"); id != "" {
		all, err := d.o.Auth.ServiceKeys(ctx)
		if err != nil {
			return page{}, nil, err
		}
		found := false
		for _, k := range all {
			if k.ID == id {
				shown.Title, found = a.title+" "+k.Name, true
			}
		}
		if !found {
			return page{}, nil, errNoPage
		}
	}
	return show("admin-key", shown.Title, shown), shown, d.askForCode(ctx, v, shown.Form)
}

func (d *dashboard) askKey(a keyAction) handler {
	return func(ctx context.Context, v *pageRequest) (page, error) {
		p, _, err := d.showKey(ctx, v, a)
		return p, err
	}
}

// changeKey carries an action out. A new key is on the page that answers, and nowhere else.
func (d *dashboard) changeKey(a keyAction) handler {
	return func(ctx context.Context, v *pageRequest) (page, error) {
		p, shown, err := d.showKey(ctx, v, a)
		if err != nil {
			return page{}, err
		}
		secret, err := a.do(ctx, d, v, v.r.PathValue("id"), ledger.ActorAdmin+v.who.UserID)
		switch {
		case errors.Is(err, auth.ErrKeyNameTaken):
			return d.again(ctx, p, shown.Form.fill(v.form), fault.Field("name", "was used before; choose another one"))
		case err != nil:
			return d.again(ctx, p, shown.Form.fill(v.form), err)
		case secret == "":
			return goTo(keysPath).saying("key-revoked"), nil
		default:
			shown.Secret, shown.Form = secret, nil
			return p, nil
		}
	}
}
