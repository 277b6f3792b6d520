package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bursar/internal/auth"
)

// route is one method of one path. GET answers HEAD too.
type route struct {
	method  string
	path    string
	handler http.HandlerFunc
}

// routes is all there is. The second word of each handle is who may call.
func (a *api) routes() []route {
	routes := append(slices.Concat(a.adminRoutes(), a.marketplaceRoutes(), a.endpointRoutes()), []route{
		{"POST", "/api/auth/register", handle(a, a.anyone, a.register)},
		{"POST", "/api/auth/login", handle(a, a.anyone, a.login)},
		{"POST", "/api/auth/refresh", handle(a, a.anyone, a.refresh)},
		{"GET", "/api/auth/me", handle(a, a.sessionOrIssuer, a.me)},
		{"PATCH", "/api/auth/me", handle(a, a.signedIn, a.changeMe)},
		{"DELETE", "/api/auth/me", handle(a, a.signedIn, a.deleteMe)},
		{"GET", "/api/auth/security-events", handle(a, a.signedIn, a.securityEvents)},
		{"GET", "/api/admin/users/{userId}/security-events", handle(a, a.admin, a.securityEventsOf)},
		{"POST", "/api/auth/email/change", handle(a, a.signedIn, a.changeEmail)},
		{"POST", "/api/auth/email/confirm", handle(a, a.anyone, a.confirmEmail)},
		{"POST", "/api/auth/login/factor", handle(a, a.anyone, a.loginFactor)},
		{"POST", "/api/auth/passkeys/login/options", handle(a, a.anyone, a.passkeyOptions)},
		{"POST", "/api/auth/passkeys/login", handle(a, a.anyone, a.loginPasskey)},
		{"GET", "/api/auth/factors", handle(a, a.signedIn, a.factors)},
		{"POST", "/api/auth/factors", handle(a, a.signedIn, a.addFactor)},
		{"POST", "/api/auth/factors/{factorId}/confirm", handle(a, a.signedIn, a.confirmFactor)},
		{"DELETE", "/api/auth/factors/{factorId}", handle(a, a.signedIn, a.removeFactor)},
		{"POST", "/api/auth/step-up", handle(a, a.signedIn, a.stepUp)},
		{"POST", "/api/auth/logout", handle(a, a.signedIn, a.logout)},
		{"GET", "/api/auth/export", a.export},
		{"GET", "/api/auth/identities", handle(a, a.signedIn, a.identities)},
		{"DELETE", "/api/auth/identities/{provider}", handle(a, a.signedIn, a.unlinkIdentity)},
		{"GET", "/api/auth/sessions", handle(a, a.signedIn, a.sessions)},
		{"DELETE", "/api/auth/sessions", handle(a, a.signedIn, a.endOtherSessions)},
		{"DELETE", "/api/auth/sessions/{sessionId}", handle(a, a.signedIn, a.endSession)},
		{"POST", "/api/auth/password/change", handle(a, a.signedIn, a.changePassword)},
		{"POST", "/api/auth/verify-email", handle(a, a.signedInOrNot, a.verifyEmail)},
		{"POST", "/api/auth/verify-email/resend", handle(a, a.signedIn, a.resendVerification)},
		{"POST", "/api/auth/password/forgot", handle(a, a.anyone, a.forgotPassword)},
		{"POST", "/api/auth/password/reset", handle(a, a.anyone, a.resetPassword)},
		{"GET", "/api/auth/provider-a", a.beginSignIn(auth.ProviderA)},
		{"GET", "/api/auth/provider-a/callback", a.finishSignIn(auth.ProviderA)},
		{"GET", "/api/auth/provider-b", a.beginSignIn(auth.ProviderB)},
		{"GET", "/api/auth/provider-b/callback", a.finishSignIn(auth.ProviderB)},

		{"GET", linkPath, a.openSessionLink},

		{"GET", "/api/payouts/balance", handle(a, a.payoutRole, a.balance)},
		{"POST", "/api/payouts/request", handle(a, a.payoutRequester, a.requestPayout)},
		{"GET", "/api/payouts/explain", handle(a, a.payoutRole, a.explain)},
		{"GET", "/api/payouts/history", handle(a, a.payoutRole, a.history)},
		{"GET", "/api/payouts/statement", a.statement},
		{"GET", "/api/payouts/adjustments", handle(a, a.payoutRole, a.adjustments)},
		{"GET", "/api/payouts/{payoutId}", handle(a, a.payoutRole, a.payout)},
		{"GET", "/api/payouts/{payoutId}/events", handle(a, a.payoutRole, a.payoutEvents)},
		{"POST", "/api/payouts/{payoutId}/cancel", handle(a, a.payoutRole, a.cancelPayout)},

		{"GET", "/api/bank-account", handle(a, a.payoutRole, a.bankAccount)},
		{"PUT", "/api/bank-account", handle(a, a.payoutRole, a.registerBankAccount)},

		{"GET", "/.well-known/jwks.json", a.jwks},
		{"GET", "/.well-known/checkpoint-keys.json", a.checkpointKeys},
		{"GET", "/healthz", handle(a, a.anyone, a.health)},
		{"GET", "/readyz", handle(a, a.anyone, a.ready)},
		{"GET", "/openapi.json", a.openAPI},
		{"GET", "/docs", a.docsPage},
		{"GET", "/docs/{page}", a.docsPage},
		{"GET", "/{$}", a.home},
	}...)
	for name, read := range a.o.Webhooks {
		routes = append(routes, route{"POST", "/api/gateway/webhooks/" + url.PathEscape(string(name)), a.webhook(read)})
	}
	return routes
}

// adminRoutes are for admins alone.
func (a *api) adminRoutes() []route {
	return []route{
		{"POST", "/api/admin/bank-accounts/{accountId}/verification", handle(a, a.admin, a.resolveBankAccount)},
		{"POST", "/api/admin/users/{userId}/access", handle(a, a.admin, a.setAccess)},
		{"POST", "/api/admin/sellers/{sellerId}/lift-hold", handle(a, a.admin, a.liftHold)},
		{"POST", "/api/admin/sellers/{sellerId}/freeze", handle(a, a.admin, a.freeze)},
		{"POST", "/api/admin/sellers/{sellerId}/unfreeze", handle(a, a.admin, a.unfreeze)},
		{"GET", "/api/admin/sellers/{sellerId}/adjustments", handle(a, a.admin, a.adjustmentsOf)},
		{"POST", "/api/admin/sellers/{sellerId}/adjustments", handle(a, a.adminOr(auth.ScopeSellersWrite), a.adjust)},
		{"GET", "/api/admin/keys", handle(a, a.admin, a.serviceKeys)},
		{"POST", "/api/admin/keys", handle(a, a.admin, a.createServiceKey)},
		{"POST", "/api/admin/keys/{keyId}/rotate", handle(a, a.admin, a.rotateServiceKey)},
		{"POST", "/api/admin/keys/{keyId}/revoke", handle(a, a.admin, a.revokeServiceKey)},
		{"GET", "/api/admin/inbox", handle(a, a.admin, a.inbox)},
		{"POST", "/api/admin/inbox/ask", handle(a, a.admin, a.askGateway)},
		{"POST", "/api/admin/inbox/{subject}/claim", handle(a, a.admin, a.claimTask)},
		{"POST", "/api/admin/inbox/{subject}/release", handle(a, a.admin, a.releaseTask)},
		{"GET", "/api/admin/decisions", a.adminDecisions()},
		{"GET", "/api/admin/figures", handle(a, a.admin, a.figures)},
		{"GET", "/api/admin/search", handle(a, a.admin, a.search)},
		{"GET", "/api/admin/payouts", a.adminPayouts()},
		{"GET", "/api/admin/payouts/{payoutId}", handle(a, a.admin, a.adminPayout)},
		{"POST", "/api/admin/payouts/{payoutId}/ask", handle(a, a.admin, a.askAboutPayout)},
		{"POST", "/api/admin/payouts/{payoutId}/review", handle(a, a.admin, a.reviewPayout)},
		{"POST", "/api/admin/payouts/{payoutId}/match", handle(a, a.admin, a.matchTransfer)},
		{"POST", "/api/admin/payouts/{payoutId}/resolve", handle(a, a.admin, a.resolveDiscrepancy)},
		{"POST", "/api/admin/payouts/{payoutId}/refund", handle(a, a.admin, a.refundPayout)},
		{"GET", "/api/admin/bank-accounts/{accountId}", handle(a, a.admin, a.adminBankAccount)},
		{"GET", "/api/admin/users", handle(a, a.admin, a.users)},
		{"GET", "/api/admin/users/{userId}", handle(a, a.admin, a.user)},
		{"GET", "/api/admin/differences", handle(a, a.admin, a.differences)},
		{"GET", "/api/admin/differences/{differenceId}", handle(a, a.admin, a.difference)},
		{"POST", "/api/admin/differences/{differenceId}/resolve", handle(a, a.admin, a.resolveDifference)},
		{"GET", "/api/admin/reconciliation", handle(a, a.admin, a.reconciliation)},
		{"GET", "/api/admin/ledger/audit", handle(a, a.admin, a.audit)},
		{"POST", "/api/admin/ledger/audit", handle(a, a.admin, a.beginAudit)},
		{"GET", "/api/admin/health", handle(a, a.admin, a.workHealth)},
		{"GET", "/api/admin/mails", handle(a, a.admin, a.mails)},
		{"GET", "/api/admin/mails/{mailId}", handle(a, a.admin, a.mail)},
		{"GET", "/api/admin/unmatched-transfers", handle(a, a.admin, a.unmatchedTransfers)},
		{"GET", "/api/admin/unmatched-transfers/{id}", handle(a, a.admin, a.unmatchedTransfer)},
		{"POST", "/api/admin/unmatched-transfers/{id}/resolve", handle(a, a.admin, a.resolveUnmatched)},
		{"GET", "/api/admin/sellers/{sellerId}/notes", handle(a, a.admin, a.notesOf)},
		{"POST", "/api/admin/sellers/{sellerId}/notes", handle(a, a.admin, a.addNote)},
		{"GET", "/api/admin/payouts/pause", handle(a, a.admin, a.pauseState)},
		{"POST", "/api/admin/payouts/pause", handle(a, a.admin, a.pause)},
		{"POST", "/api/admin/payouts/resume", handle(a, a.admin, a.resume)},
	}
}

// marketplaceRoutes are for servers of the marketplace, each with the scope that it needs.
func (a *api) marketplaceRoutes() []route {
	return []route{
		{"POST", "/api/marketplace/sales", handle(a, a.marketplace(auth.ScopeSalesWrite), a.recordSale)},
		{"POST", "/api/marketplace/sales:batch", handle(a, a.marketplace(auth.ScopeSalesWrite), a.recordSales)},
		{"POST", "/api/marketplace/sales/{saleId}/refund", handle(a, a.marketplace(auth.ScopeSalesWrite), a.refundSale)},
		{"POST", "/api/marketplace/sellers", handle(a, a.marketplace(auth.ScopeSellersWrite), a.createSeller)},
		{"GET", "/api/marketplace/sellers", handle(a, a.marketplace(auth.ScopeSellersRead), a.sellers)},
		{"GET", "/api/marketplace/sellers/{sellerId}", handle(a, a.marketplace(auth.ScopeSellersRead), a.seller)},
		{"GET", "/api/marketplace/sellers/{sellerId}/balance", handle(a, a.marketplace(auth.ScopeBalancesRead), a.sellerBalance)},
		{"GET", "/api/marketplace/sellers/{sellerId}/explain", handle(a, a.marketplace(auth.ScopeBalancesRead), a.explainSeller)},
		{"GET", "/api/marketplace/sellers/{sellerId}/sales", handle(a, a.marketplace(auth.ScopeBalancesRead), a.sellerSales)},
		{"GET", "/api/marketplace/sellers/{sellerId}/payouts", handle(a, a.marketplace(auth.ScopePayoutsRead), a.sellerPayouts)},
		{"POST", "/api/marketplace/sellers/{sellerId}/payouts", handle(a, a.marketplace(auth.ScopePayoutsWrite), a.requestSellerPayout)},
		{"PUT", "/api/marketplace/sellers/{sellerId}/bank-account", handle(a, a.marketplace(auth.ScopeSellersWrite), a.registerSellerBankAccount)},
		{"POST", "/api/marketplace/sellers/{sellerId}/session", handle(a, a.marketplace(auth.ScopeSellersWrite), a.createSessionLink)},
		{"PUT", "/api/marketplace/sellers/{sellerId}", handle(a, a.marketplace(auth.ScopeSellersWrite), a.setSeller)},
		{"GET", "/api/events", handle(a, a.marketplace(auth.ScopeEventsRead), a.feed)},
	}
}

// elsewhere answers what is no route of ours: the pages, if there are any, or that there is nothing.
func (a *api) elsewhere(w http.ResponseWriter, r *http.Request) {
	r.Pattern = "" // nothing matched, whatever the mux calls it
	if a.o.Pages == nil || r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") {
		a.fail(w, r, errNoRoute)
		return
	}
	a.o.Pages.ServeHTTP(w, r)
}
