package dashboard

import (
	"net/http"

	"bursar/internal/auth"
	"bursar/internal/web"
)

// route is one method of one path. GET answers HEAD too.
type route struct {
	method  string
	path    string
	who     audience
	handler handler
}

// routes is all there is: what, for whom, and who answers.
func (d *dashboard) routes() []route {
	return append([]route{
		{"GET", "/{$}", everyone, d.home},
		{"GET", "/login", everyone, d.loginPage},
		{"POST", "/login", everyone, d.login},
		{"POST", passkeyLoginPath, everyone, d.loginPasskey},
		{"GET", "/register", everyone, d.registerPage},
		{"POST", "/register", everyone, d.register},
		{"POST", "/logout", everyone, d.logout},

		{"GET", "/verify-email", everyone, d.verifyEmailPage},
		{"POST", "/verify-email", everyone, d.verifyEmail},
		{"GET", "/forgot-password", everyone, d.forgotPasswordPage},
		{"POST", "/forgot-password", everyone, d.forgotPassword},
		{"GET", "/reset-password", everyone, d.resetPasswordPage},
		{"POST", "/reset-password", everyone, d.resetPassword},

		{"GET", "/dashboard", signedIn, d.overview},
		{"GET", confirmEmailPath, everyone, d.confirmEmailPage},
		{"POST", confirmEmailPath, everyone, d.confirmEmail},
		{"GET", undoEmailPath, everyone, d.undoEmailPage},
		{"POST", undoEmailPath, everyone, d.undoEmail},
		{"GET", undoFactorsPath, everyone, d.undoFactorsPage},
		{"POST", undoFactorsPath, everyone, d.undoFactors},
		{"POST", changeEmailPath, signedIn, d.changeEmail},
		{"GET", web.FactorPath, everyone, d.loginFactorPage},
		{"POST", web.FactorPath, everyone, d.loginFactor},
		{"GET", factorsPath, signedIn, d.factors},
		{"POST", factorsPath, signedIn, d.addFactor},
		{"POST", factorsPath + "/confirm", signedIn, d.confirmFactor},
		{"POST", factorsPath + "/passkey", signedIn, d.addPasskey},
		{"POST", factorsPath + "/passkey/confirm", signedIn, d.confirmPasskey},
		{"POST", factorsPath + "/remove", signedIn, d.removeFactor},
		{"GET", "/dashboard/profile", signedIn, d.profile},
		{"POST", "/dashboard/profile", signedIn, d.saveProfile},
		{"POST", "/dashboard/profile/password", signedIn, d.changePassword},
		{"GET", unlinkPath, signedIn, d.unlinkPage},
		{"POST", unlinkPath, signedIn, d.unlink},
		{"GET", deletePath, signedIn, d.deletePage},
		{"POST", deletePath, signedIn, d.deleteAccount},
		{"POST", "/dashboard/profile/verify-email", signedIn, d.enterCode},
		{"POST", "/dashboard/profile/verify-email/resend", signedIn, d.resendCode},
		{"POST", "/dashboard/profile/sessions/end", signedIn, d.endSession},
		{"POST", "/dashboard/profile/sessions/end-others", signedIn, d.endOtherSessions},

		{"GET", "/dashboard/payouts", sellers, d.payouts},
		{"POST", "/dashboard/payouts", sellers, d.requestPayout},
		{"GET", "/dashboard/payouts/new", sellers, d.newPayout},
		{"GET", reviewPath, sellers, d.reviewPayout},
		{"GET", "/dashboard/payouts/quote", sellers, d.quote},
		{"GET", statementsPath, sellers, d.statements},
		{"GET", "/dashboard/payouts/{id}", sellers, d.payout},
		{"GET", "/dashboard/payouts/{id}/cancel", sellers, d.cancelPage},
		{"POST", "/dashboard/payouts/{id}/cancel", sellers, d.cancel},
		{"GET", "/dashboard/bank-account", sellers, d.bankAccount},
		{"POST", "/dashboard/bank-account", sellers, d.registerBankAccount},
		{"GET", "/dashboard/bank-account/new", sellers, d.bankAccountForm},
		{"GET", "/dashboard/bank-account/branch", sellers, d.branch},
		{"GET", "/dashboard/sales", sellers, d.sales},
		{"GET", salePath, sellers, d.sale},
		{"GET", ledgerPath, sellers, d.sellerLedger},
		{"GET", printPath, sellers, d.printStatement},
	}, d.adminRoutes()...)
}

// audience is who may see a page.
type audience string

// Audiences.
const (
	everyone audience = "everyone"
	signedIn audience = "any signed-in user"
	sellers  audience = "sellers"
	admins   audience = "admins"
)

// admits reports whether a role belongs to the audience.
func (a audience) admits(r auth.Role) bool {
	switch a {
	case sellers:
		return r == auth.Seller
	case admins:
		return r == auth.Admin
	default:
		return true
	}
}

// navEntry is one of the places that a role goes to.
type navEntry struct {
	Path, Label, Icon string
	// Count is how much waits there.
	Count int64
}

// navOf lists the places of a role, most used first.
func navOf(r auth.Role) []navEntry {
	profile := navEntry{"/dashboard/profile", "Profile", "person", 0}
	switch r {
	case auth.Seller:
		return []navEntry{
			{"/dashboard", "Overview", "home", 0},
			{"/dashboard/payouts", "Payouts", "payout", 0},
			{"/dashboard/sales", "Sales", "sale", 0},
			{ledgerPath, "Ledger", "ledger", 0},
			{"/dashboard/bank-account", "Bank", "bank", 0},
			profile,
		}
	case auth.Admin:
		return append(adminNav(), profile)
	default:
		return []navEntry{{"/dashboard", "Overview", "home", 0}, profile}
	}
}

func (d *dashboard) mux() *http.ServeMux {
	methods := web.Methods{}
	for _, rt := range d.routes() {
		methods.Add(rt.method, rt.path, d.serve(rt))
	}
	mux := methods.Mux(func(w http.ResponseWriter, r *http.Request, allow string) {
		w.Header().Set("Allow", allow)
		d.refuse(w, r, errNotAllowed)
	})
	mux.HandleFunc("GET /assets/{file}", d.assets.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		r.Pattern = "" // nothing matched, whatever the mux calls it
		d.refuse(w, r, errNoPage)
	})
	return mux
}
