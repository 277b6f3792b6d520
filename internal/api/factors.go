package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/money"
	"bursar/internal/payout"
)

// stepUpHeader carries a proof from POST /api/auth/step-up.
const stepUpHeader = "Step-Up"

type loginFactorRequest struct{ auth.SecondStep }

func (req *loginFactorRequest) read(in *input) {
	req.Challenge = in.text("challenge", anything)
	req.SecondProof = in.secondProof()
	if req.Code == "" && req.RecoveryCode == "" && req.Assertion == nil {
		in.noteInvalid("code", "must be a code of your authenticator app, or send recoveryCode or assertion")
	}
	req.Device = in.device()
}

// secondProof takes the code of an app, a recovery code and a passkey's answer, each of which may be absent.
func (in *input) secondProof() auth.SecondProof {
	return auth.SecondProof{
		Code: in.optionalText("code", checkCode), RecoveryCode: in.optionalText("recoveryCode", checkCode),
		Assertion: in.browserAnswer("assertion", in.member("assertion")),
	}
}

// maxBrowserAnswer bounds what a browser answers about a passkey, in bytes. With an attestation that nobody asked for it has 8 kB.
const maxBrowserAnswer = 32 << 10

// browserAnswer takes an object that only the library of passkeys reads.
func (in *input) browserAnswer(name string, value []byte) []byte {
	switch {
	case value == nil:
		return nil
	case value[0] != '{':
		in.noteMalformed(name, "must be an object")
	case len(value) > maxBrowserAnswer:
		in.noteInvalid(name, "must be at most 32 KiB")
	}
	return value
}

// checkCode returns what is wrong with a code's length, or "".
func checkCode(s string) string {
	const most = 64
	if s == "" || len(s) > most {
		return "must be a code of at most 64 characters"
	}
	return ""
}

func (a *api) loginFactor(ctx context.Context, _ caller, req loginFactorRequest) (reply[loggedInJSON], error) {
	return loggedIn(a.o.Auth.LoginFactor(ctx, req.SecondStep))
}

type factorJSON struct {
	ID          string          `json:"id"`
	Type        auth.FactorKind `json:"type"`
	Name        string          `json:"name"`
	CreatedAt   string          `json:"createdAt"`
	ConfirmedAt orNull          `json:"confirmedAt"`
}

type factorsJSON struct {
	Factors           []factorJSON `json:"factors"`
	RecoveryCodesLeft int          `json:"recoveryCodesLeft"`
}

func factorOf(f auth.Factor) factorJSON {
	shown := factorJSON{ID: f.ID, Type: f.Kind, Name: f.Name, CreatedAt: stamp(f.CreatedAt)}
	if f.Confirmed() {
		shown.ConfirmedAt = orNull(stamp(f.ConfirmedAt))
	}
	return shown
}

func (a *api) factors(ctx context.Context, who caller, _ none) (reply[factorsJSON], error) {
	all, left, err := a.o.Auth.Factors(ctx, who.Principal)
	return answer(factorsJSON{mapped(all, factorOf), left}, err)
}

type addFactorRequest struct {
	kind auth.FactorKind
	name string
}

func (req *addFactorRequest) read(in *input) {
	req.kind = auth.FactorKind(in.text("type", func(s string) string {
		if s != string(auth.FactorTOTP) && s != string(auth.FactorPasskey) {
			return "must be totp or passkey"
		}
		return ""
	}))
	req.name = in.optionalText("name", auth.CheckFactorName)
}

type newFactorJSON struct {
	ID      string          `json:"id"`
	Secret  string          `json:"secret,omitempty"`
	URI     string          `json:"uri,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

func (a *api) addFactor(ctx context.Context, who caller, req addFactorRequest) (reply[newFactorJSON], error) {
	if req.kind == auth.FactorPasskey {
		f, err := a.o.Auth.AddPasskey(ctx, who.Principal, req.name)
		if err != nil {
			return reply[newFactorJSON]{}, err
		}
		return reply[newFactorJSON]{
			status:  http.StatusCreated,
			message: "Have the browser make the passkey, and confirm with its answer.",
			data:    newFactorJSON{ID: f.ID, Options: f.Options},
		}, nil
	}
	f, err := a.o.Auth.AddFactor(ctx, who.Principal, req.name)
	return reply[newFactorJSON]{
		status:  http.StatusCreated,
		message: "Enter the secret in your authenticator app, and confirm with a code of it.",
		data:    newFactorJSON{ID: f.ID, Secret: f.Secret, URI: f.URI},
	}, err
}

type confirmFactorRequest struct {
	factor, code string
	attestation  []byte
	device       auth.Device
}

func (req *confirmFactorRequest) read(in *input) {
	req.factor = in.r.PathValue("factorId")
	req.attestation = in.browserAnswer("attestation", in.member("attestation"))
	if req.attestation == nil {
		req.code = in.text("code", checkCode)
	}
	req.device = in.device()
}

type confirmedJSON struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (a *api) confirmFactor(ctx context.Context, who caller, req confirmFactorRequest) (reply[confirmedJSON], error) {
	var codes []string
	var err error
	if req.attestation != nil {
		codes, err = a.o.Auth.ConfirmPasskey(ctx, who.Principal, req.factor, req.attestation, req.device)
	} else {
		codes, err = a.o.Auth.ConfirmFactor(ctx, who.Principal, req.factor, req.code, req.device)
	}
	if err != nil {
		return reply[confirmedJSON]{}, err
	}
	if codes == nil {
		codes = []string{}
	}
	return reply[confirmedJSON]{message: "The second factor is in use. Keep the recovery codes where you find them without it.", data: confirmedJSON{codes}}, nil
}

type passkeyOptionsJSON struct {
	Options json.RawMessage `json:"options"`
}

func (a *api) passkeyOptions(context.Context, caller, none) (reply[passkeyOptionsJSON], error) {
	options, err := a.o.Auth.PasskeyOptions()
	return answer(passkeyOptionsJSON{options}, err)
}

type loginPasskeyRequest struct {
	assertion []byte
	device    auth.Device
}

func (req *loginPasskeyRequest) read(in *input) {
	req.assertion = in.browserAnswer("assertion", in.required("assertion"))
	req.device = in.device()
}

func (a *api) loginPasskey(ctx context.Context, _ caller, req loginPasskeyRequest) (reply[loggedInJSON], error) {
	return loggedIn(a.o.Auth.LoginPasskey(ctx, req.assertion, req.device))
}

type removeFactorRequest struct {
	factor string
	device auth.Device
}

func (req *removeFactorRequest) read(in *input) {
	req.factor, req.device = in.r.PathValue("factorId"), in.device()
}

func (a *api) removeFactor(ctx context.Context, who caller, req removeFactorRequest) (reply[none], error) {
	err := a.o.Auth.RemoveFactor(ctx, who.Principal, req.factor, req.device)
	return reply[none]{message: "The second factor is removed."}, err
}

type stepUpRequest struct {
	auth.StepUp
	amount money.Amount // of payout.request
}

func (req *stepUpRequest) read(in *input) {
	req.Action = auth.Action(in.text("action", func(s string) string {
		if auth.Action(s).IsAdmins() {
			return ""
		}
		switch auth.Action(s) {
		case auth.ActionReplaceAccount, auth.ActionChangePassword, auth.ActionAddFactor, auth.ActionRemoveFactor, auth.ActionUnlinkIdentity, auth.ActionDeleteAccount, auth.ActionChangeEmail, auth.ActionRequestPayout:
			return ""
		default:
			return "must be bank_account.replace, payout.request, password.change, email.change, factor.add, factor.remove, identity.unlink, account.delete or an admin's decision"
		}
	}))
	switch req.Action {
	case auth.ActionReplaceAccount:
		number, err := bank.ParseNumber(in.text("accountNumber", anything))
		in.noteError(err)
		ifsc, err := bank.ParseIFSC(in.text("ifsc", anything))
		in.noteError(err)
		req.Bound = []string{number.Reveal(), string(ifsc)}
	case auth.ActionRequestPayout:
		req.amount = in.amount("amount")
	case auth.ActionRemoveFactor:
		req.Bound = []string{in.text("factorId", anything)}
	case auth.ActionUnlinkIdentity:
		req.Bound = []string{in.text("provider", anything)}
	case auth.ActionChangeEmail:
		req.Bound = []string{auth.EmailKey(in.text("email", auth.CheckEmail))}
	case auth.ActionChangePassword, auth.ActionAddFactor, auth.ActionDeleteAccount:
	default:
		if req.Action.IsAdmins() {
			req.Bound = []string{in.text("subject", anything)}
		}
	}
	req.Password = in.optionalText("password", anything)
	req.SecondProof = in.secondProof()
	req.Device = in.device()
}

type proofJSON struct {
	Proof     string `json:"proof"`
	ExpiresAt string `json:"expiresAt"`
}

func (a *api) stepUp(ctx context.Context, who caller, req stepUpRequest) (reply[proofJSON], error) {
	if req.Action.IsAdmins() && who.Role != auth.Admin {
		return reply[proofJSON]{}, errAdminsOnly
	}
	if req.Action == auth.ActionRequestPayout {
		account, err := a.o.Bank.Account(ctx, who.UserID)
		if errors.Is(err, bank.ErrNone) {
			err = payout.ErrBankUnverified
		}
		if err != nil {
			return reply[proofJSON]{}, err
		}
		req.Bound = payout.ProofBinding(req.amount, account.ID)
	}
	proof, until, err := a.o.Auth.StepUp(ctx, who.Principal, req.StepUp)
	return answer(proofJSON{proof, stamp(until.Truncate(time.Millisecond))}, err)
}
