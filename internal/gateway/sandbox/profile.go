package sandbox

import (
	"math"
	"net/http"
	"slices"
	"time"

	"bursar/internal/gateway/razorpayx"
)

// Profile is which features the sandbox offers.
type Profile string

const (
	// Full is RazorpayX as it is.
	Full Profile = "full"
	// Limited is a poorer gateway on the same wire. It honours an idempotency key for [LimitedKeyLifetime];
	// after that the same key makes a new payout. It drops notes. It answers 400 to lists of payouts and of
	// transactions, cancellations and validations. Payouts can be looked up by id and by reference.
	Limited Profile = "limited"

	// LimitedKeyLifetime is how long the limited profile honours an idempotency key.
	LimitedKeyLifetime = 24 * time.Hour
)

func (p Profile) known() bool { return p == "" || p == Full || p == Limited }

// keysHonouredSince is the instant, in microseconds, after which a payout's key must have been used first.
func (p Profile) keysHonouredSince(now time.Time) int64 {
	if p == Limited {
		return now.Add(-LimitedKeyLifetime).UnixMicro()
	}
	return math.MinInt64
}

var (
	// notLimited are the routes that the limited profile does not offer.
	notLimited = []string{
		"POST /v1/payouts/{id}/cancel",
		"GET /v1/transactions", "GET /v1/transactions/{id}",
		"POST /v1/fund_accounts/validations", "GET /v1/fund_accounts/validations", "GET /v1/fund_accounts/validations/{id}",
	}
	errNotOffered = &refusal{http.StatusBadRequest, razorpayx.Problem{
		Code: razorpayx.CodeBadRequest, Description: "This feature is not supported for your account.", Source: "business",
		Step: "NA", Reason: "feature_not_supported",
	}}
)

// offered refuses calls that the profile does not offer.
func (s *Sandbox) offered(v1 *http.ServeMux) http.Handler {
	if s.o.Profile != Limited {
		return v1
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, route := v1.Handler(r)
		isList := route == "GET /v1/payouts" && r.URL.Query().Get("reference_id") == ""
		if isList || slices.Contains(notLimited, route) {
			writeJSON(w, errNotOffered.status, razorpayx.ErrorBody{Error: errNotOffered.problem})
			return
		}
		v1.ServeHTTP(w, r)
	})
}
