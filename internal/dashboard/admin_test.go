package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"bursar/internal/auth"
)

// adminPages are the addresses of all pages for admins, in an office with something to show on each.
func (o *adminFixture) adminPages() []string {
	o.Helper()
	unknown, inReview := o.unknown(500_00), o.sendToReview(o.unknown(501_00))
	o.withDiscrepancy("it has a transfer of 0.01 INR, ordered were 0.02")
	o.unmatched("pout_unmatched", "its seller is not in the ledger")
	account := o.inReview(o.signUp("Vikram Singh", auth.Seller), "VIKRAM SINHA")
	_, difference := o.paidTwice()
	seller, payouts := adminHome+"/sellers/"+o.seller.id, adminHome+"/payouts/"
	return []string{
		adminHome, adminHome + "/inbox", adminHome + "/inbox?kind=unknown", adminHome + "/search", adminHome + "/search?q=a", adminHome + "/payouts", adminHome + "/payouts?status=processing",
		payouts + string(unknown), payouts + string(unknown) + "/review", payouts + string(unknown) + "/ask",
		payouts + string(inReview) + "/match", payouts + string(inReview) + "/refund",
		adminHome + "/bank-accounts/" + string(account), adminHome + "/unmatched-transfers/paper:pout_unmatched", adminHome + "/sellers", seller, seller + "/access",
		difference, reconciliation, adminHome + "/ledger", adminHome + "/health", adminHome + "/decisions", adminHome + "/mails", adminHome + "/keys", adminHome + "/keys/new",
	}
}

func TestAdminPages_OnlyForAdmins(t *testing.T) {
	o := openAdminFixture(t)
	buyer, stranger := o.signUp("Kabir Gupta", auth.Buyer), o.browse()
	for _, path := range o.adminPages() {
		page := o.admin.get(path).want(t, http.StatusOK).saysNot(t, accountDigits, "ZgotmplZ", "&lt;no value", "%!")
		checkPage(t, path, page)
		stranger.get(path).leadsTo(t, "/login?redirect="+url.QueryEscape(path))
		for _, other := range []*browser{buyer.browser, o.seller.browser} {
			other.get(path).want(t, http.StatusForbidden).reads(t, "You don't have access to this page.")
		}
	}
	if strings.Contains(o.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has errors: %s", o.log)
	}
}
