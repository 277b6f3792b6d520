package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/mail"
)

// marketplace calls a route for service keys.
func (h *fixture) marketplace(method, path, body string) answer {
	h.t.Helper()
	return h.do(call{method: method, path: "/api/marketplace/" + path, token: h.serviceKey, body: body})
}

// newSeller makes a seller of the marketplace.
func (h *fixture) newSeller(externalID string) user {
	h.t.Helper()
	u := user{email: externalID + "@example.com"}
	u.id = h.marketplace("POST", "sellers", fmt.Sprintf(`{"externalId":%q,"name":"Asha Rao","email":%q}`, externalID, u.email)).want(h.t, 201).text(h.t, "data.sellerId")
	return u
}

func TestSellersByExternalID(t *testing.T) {
	h := openFixture(t)
	const body = `{"externalId":"shop/17ü","name":"Asha Rao","email":"Asha@example.com"}`
	const path = "sellers/ext:shop%2F17%C3%BC"
	created := h.marketplace("POST", "sellers", body).want(t, 201)
	id := created.text(t, "data.sellerId")
	const shown = `{"success":true,"data":{"sellerId":"usr_X","externalId":"shop/17ü","name":"Asha Rao","email":"Asha@example.com",` +
		`"isVerified":false,"suspended":false,"createdAt":"2026-11-20T09:30:00.123Z"}}`
	created.wantBody(t, shown)
	h.marketplace("POST", "sellers", body).want(t, 200).wantBody(t, shown)
	h.marketplace("GET", path, "").want(t, 200).wantBody(t, shown)
	h.marketplace("GET", "sellers/"+id, "").want(t, 200).wantBody(t, shown)
	h.marketplace("POST", "sellers", strings.Replace(body, "Asha Rao", "Asha Raut", 1)).wantFailure(t, 409, "seller_conflict", "name")
	h.marketplace("POST", "sellers", strings.Replace(body, "Asha@", "other@", 1)).wantFailure(t, 409, "seller_conflict", "email")
	h.marketplace("POST", "sellers", strings.Replace(body, "17ü", "18", 1)).wantFailure(t, 409, "email_taken")
	h.marketplace("POST", "sellers", `{"externalId":"a b","name":"x","email":"x"}`).wantFailure(t, 422, "validation_failed", "externalId", "name", "email")
	h.marketplace("POST", "sellers", `{"externalId":""}`).wantFailure(t, 400, "invalid_request", "name", "email")

	sale := func(seller string) answer {
		return h.marketplace("POST", "sales", fmt.Sprintf(`{"saleId":"s1","sellerId":%q,"amount":100,"occurredAt":"2026-11-20T09:30:00Z"}`, seller))
	}
	first := sale("ext:shop/17ü").want(t, 201)
	if first.text(t, "data.sellerId") != id || first.text(t, "data.externalId") != "shop/17ü" {
		t.Errorf("the sale is %s", first.body)
	}
	sale(id).want(t, 200) // is the same sale
	sale("ext:nobody").wantFailure(t, 404, "seller_not_found")
	sale("ext:").wantFailure(t, 422, "validation_failed", "sellerId")
	if put := h.marketplace("PUT", path, `{"productsListed":7}`).want(t, 200); put.text(t, "data.sellerId") != id || put.text(t, "data.externalId") != "shop/17ü" {
		t.Errorf("PUT is answered with %s", put.body)
	}
	buyer := h.signUp("Bo", auth.Buyer)
	for _, unknown := range []string{"ext:", "ext:nobody", "usr_" + strings.Repeat("0", 24), "asha@example.com", buyer.id, "%00", "ext:%00", "ext:%ff"} {
		h.marketplace("GET", "sellers/"+unknown, "").wantFailure(t, 404, "seller_not_found")
	}

	for i := range 4 {
		h.newSeller(fmt.Sprint("more-", i))
	}
	var listed []string
	for after := ""; ; {
		page := h.marketplace("GET", "sellers?limit=2"+after, "").want(t, 200)
		for i := range len(page.read(t, "data.sellers").([]any)) {
			listed = append(listed, page.text(t, fmt.Sprintf("data.sellers.%d.externalId", i)))
		}
		if !strings.Contains(page.body, `"next"`) {
			break
		}
		after = "&after=" + page.text(t, "data.next")
	}
	if slices.Sort(listed); strings.Join(listed, " ") != "more-0 more-1 more-2 more-3 shop/17ü" {
		t.Errorf("the list is %v", listed)
	}
	h.marketplace("GET", "sellers?limit=0&after=x", "").wantFailure(t, 422, "validation_failed", "limit", "after")
}

// TestSellerByExternalID_Swapped exchanges the external ids of two sellers by hand: neither leads to the other's money.
func TestSellerByExternalID_Swapped(t *testing.T) {
	h := openFixture(t)
	h.newSeller("a")
	h.newSeller("b")
	h.place.ByHand(t, `UPDATE users SET external_id = 'c' WHERE external_id = 'a'`)
	h.place.ByHand(t, `UPDATE users SET external_id = 'a' WHERE external_id = 'b'`)
	h.place.ByHand(t, `UPDATE users SET external_id = 'b' WHERE external_id = 'c'`)
	for _, name := range []string{"a", "b"} {
		h.marketplace("GET", "sellers/ext:"+name, "").wantFailure(t, 409, "records_tampered")
		h.marketplace("POST", "sales", `{"saleId":"s1","sellerId":"ext:`+name+`","amount":100}`).wantFailure(t, 409, "records_tampered")
		h.marketplace("POST", "sellers", `{"externalId":"`+name+`","name":"Asha Rao","email":"`+name+`@example.com"}`).wantFailure(t, 409, "seller_conflict", "email")
	}
	if list := h.marketplace("GET", "sellers", "").want(t, 200); len(list.read(t, "data.sellers").([]any)) != 0 {
		t.Errorf("the list is %s", list.body)
	}
}

// TestSellerByExternalID_AddressOfAnother has a squatter register a seller's address, before the marketplace makes the seller
// and after. Neither gives the squatter the seller's account.
func TestSellerByExternalID_AddressOfAnother(t *testing.T) {
	h := openFixture(t)
	squatter := h.signUp("Asha", auth.Seller)
	body := `{"externalId":"17","name":"Asha Rao","email":"` + strings.ToUpper(squatter.email) + `"}`
	h.marketplace("POST", "sellers", body).wantFailure(t, 409, "email_taken")
	h.marketplace("GET", "sellers/ext:17", "").wantFailure(t, 404, "seller_not_found")

	seller := h.newSeller("18")
	register := fmt.Sprintf(`{"name":"Mallory","email":%q,"password":%q,"role":"buyer"}`, seller.email, password)
	h.do(call{method: "POST", path: "/api/auth/register", body: register}).wantFailure(t, 400, "email_taken")
	login := fmt.Sprintf(`{"email":%q,"password":%q}`, seller.email, password)
	h.do(call{method: "POST", path: "/api/auth/login", body: login}).wantFailure(t, 401, "invalid_credentials")
	mailed := h.mailbox.To(seller.email)
	if len(mailed) != 1 {
		t.Fatalf("the owner is mailed %d times; want once", len(mailed))
	}
	if _, isNotice := mailed[0].(mail.AccountExists); !isNotice { // a link would activate the squatter's password
		t.Errorf("the owner is mailed a %T", mailed[0])
	}
}
