package api

import (
	"context"
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
	req.Code, req.RecoveryCode = in.codes()
	if req.Code == "" && req.RecoveryCode == "" {
		in.noteInvalid("code", "must be a code of your authenticator app, or send recoveryCode")
	}
	req.Device = in.device()
}

// codes takes the code of an app and a recovery code, either of which may be absent.
func (in *input) codes() (code, recoveryCode string) {
	return in.optionalText("code", checkCode), in.optionalText("recoveryCode", checkCode)
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
	CreatedAt   string          `json:"createdAt"`
	ConfirmedAt orNull          `json:"confirmedAt"`
}

type factorsJSON struct {
	Factors           []factorJSON `json:"factors"`
	RecoveryCodesLeft int          `json:"recoveryCodesLeft"`
}

func (a *api) factors(ctx context.Context, who caller, _ none) (reply[factorsJSON], error) {
	all, left, err := a.o.Auth.Factors(ctx, who.Principal)
	if err != nil {
		return reply[factorsJSON]{}, err
	}
	shown := factorsJSON{Factors: make([]factorJSON, len(all)), RecoveryCodesLeft: left}
	for i, f := range all {
		shown.Factors[i] = factorJSON{ID: f.ID, Type: f.Kind, CreatedAt: stamp(f.CreatedAt)}
		if f.Confirmed() {
			shown.Factors[i].ConfirmedAt = orNull(stamp(f.ConfirmedAt))
		}
	}
	return reply[factorsJSON]{data: shown}, nil
}

type addFactorRequest struct{}

func (*addFactorRequest) read(in *input) {
	in.text("type", func(s string) string {
		if s != string(auth.FactorTOTP) {
			return "must be totp"
		}
		return ""
	})
}

type newFactorJSON struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	URI    string `json:"uri"`
}

func (a *api) addFactor(ctx context.Context, who caller, _ addFactorRequest) (reply[newFactorJSON], error) {
	f, err := a.o.Auth.AddFactor(ctx, who.Principal)
	if err != nil {
		return reply[newFactorJSON]{}, err
	}
	return reply[newFactorJSON]{
		status:  http.StatusCreated,
		message: "Enter the secret in your authenticator app, and confirm with a code of it.",
		data:    newFactorJSON{f.ID, f.Secret, f.URI},
	}, nil
}

type confirmFactorRequest struct {
	factor, code string
	device       auth.Device
}

func (req *confirmFactorRequest) read(in *input) {
	req.factor = in.r.PathValue("factorId")
	req.code = in.text("code", checkCode)
	req.device = in.device()
}

type confirmedJSON struct {
	RecoveryCodes []string `json:"recoveryCodes"`
}

func (a *api) confirmFactor(ctx context.Context, who caller, req confirmFactorRequest) (reply[confirmedJSON], error) {
	codes, err := a.o.Auth.ConfirmFactor(ctx, who.Principal, req.factor, req.code, req.device)
	if err != nil {
		return reply[confirmedJSON]{}, err
	}
	if codes == nil {
		codes = []string{}
	}
	return reply[confirmedJSON]{message: "The second factor is in use. Keep the recovery codes where you find them without it.", data: confirmedJSON{codes}}, nil
}

type removeFactorRequest struct {
	factor string
	device auth.Device
}

func (req *removeFactorRequest) read(in *input) {
	req.factor, req.device = in.r.PathValue("factorId"), in.device()
}

func (a *api) removeFactor(ctx context.Context, who caller, req removeFactorRequest) (reply[none], error) {
	if err := a.o.Auth.RemoveFactor(ctx, who.Principal, req.factor, req.device); err != nil {
		return reply[none]{}, err
	}
	return reply[none]{message: "The second factor is removed."}, nil
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
		case auth.ActionReplaceAccount, auth.ActionChangePassword, auth.ActionAddFactor, auth.ActionRemoveFactor, auth.ActionDeleteAccount, auth.ActionChangeEmail, auth.ActionRequestPayout:
			return ""
		default:
			return "must be bank_account.replace, payout.request, password.change, email.change, factor.add, factor.remove, account.delete or an admin's decision"
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
	case auth.ActionChangeEmail:
		req.Bound = []string{auth.EmailKey(in.text("email", auth.CheckEmail))}
	case auth.ActionChangePassword, auth.ActionAddFactor, auth.ActionDeleteAccount:
	default:
		if req.Action.IsAdmins() {
			req.Bound = []string{in.text("subject", anything)}
		}
	}
	req.Password = in.optionalText("password", anything)
	req.Code, req.RecoveryCode = in.codes()
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
	if err != nil {
		return reply[proofJSON]{}, err
	}
	return reply[proofJSON]{data: proofJSON{proof, stamp(until.Truncate(time.Millisecond))}}, nil
}
