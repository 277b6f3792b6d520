package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/ledger"
)

// TestServiceKey_CreateRotateRevoke creates, lists, rotates and revokes a key, as an admin with a second factor.
func TestServiceKey_CreateRotateRevoke(t *testing.T) {
	h := openFixture(t)
	admin, seller := h.signUp("Ada", auth.Admin), h.signUp("Asha", auth.Seller)
	a, _, _ := h.enrol(admin)
	act := func(by user, path, body, action, subject string) answer {
		t.Helper()
		var headers map[string]string
		if action != "" {
			h.clock.advance(30 * time.Second) // of the app's next code
			headers = header("Step-Up", h.stepUp(admin, `"action":"admin.`+action+`","subject":"`+subject+`","code":"`+a.code()+`"`).want(t, 200).text(t, "data.proof"))
		}
		return h.do(call{method: "POST", path: "/api/admin/keys" + path, token: by.token, body: body, header: headers})
	}
	refund := func(key string) answer {
		return h.do(call{method: "POST", path: "/api/marketplace/sales/s1/refund", token: key, body: `{"refundId":"r"}`})
	}
	const shop = `{"name":"shop","scopes":["sales:write","payouts:read"],"expiresAt":"2026-12-01T00:00:00Z"}`
	act(seller, "", shop, "", "").wantFailure(t, 403, "forbidden")
	h.do(call{method: "GET", path: "/api/admin/keys", token: seller.token}).wantFailure(t, 403, "forbidden")
	act(admin, "", shop, "", "").wantFailure(t, 401, "step_up_required", "methods")
	act(admin, "", shop, "create_key", "till").wantFailure(t, 401, "step_up_required", "methods")
	act(admin, "", `{"scopes":"all"}`, "", "").wantFailure(t, 400, "invalid_request", "name", "scopes")
	act(admin, "", `{"name":" ","scopes":["all"],"expiresAt":"2026-11-19T00:00:00Z"}`, "", "").wantFailure(t, 422, "validation_failed", "name", "scopes", "expiresAt")
	act(admin, "", `{"name":"x","scopes":[1]}`, "", "").wantFailure(t, 400, "invalid_request", "scopes")
	act(admin, "", `{"name":"x","scope":["sales:write"],"expires":"1d"}`, "", "").wantFailure(t, 400, "invalid_request", "scope", "expires")
	act(admin, "", `{"name":"x","scopes":[]}`, "", "").wantFailure(t, 422, "validation_failed", "scopes")

	created := act(admin, "", shop, "create_key", "shop").want(t, 201)
	key, id := created.text(t, "data.key"), created.text(t, "data.id")
	if created.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer with the key has Cache-Control %q", created.header.Get("Cache-Control"))
	}
	refund(key).wantFailure(t, 404, "sale_not_found")
	act(admin, "", shop, "create_key", "shop").wantFailure(t, 409, "key_name_taken")
	list := h.do(call{method: "GET", path: "/api/admin/keys", token: admin.token}).want(t, 200)
	if got := fmt.Sprint(list.read(t, "data.keys.1.scopes")); got != "[sales:write payouts:read]" || list.text(t, "data.keys.1.status") != "active" || strings.Contains(list.body, "bsk_") {
		t.Errorf("the list is %s", list.body)
	}

	act(admin, "/"+id+"/rotate", `{"graceSeconds":2592001}`, "", "").wantFailure(t, 422, "validation_failed", "graceSeconds")
	act(admin, "/"+id+"/rotate", `{"grace":0}`, "", "").wantFailure(t, 400, "invalid_request", "grace")
	act(admin, "/key_x/rotate", `{}`, "", "").wantFailure(t, 404, "key_not_found")
	rotated := act(admin, "/"+id+"/rotate", `{"graceSeconds":60}`, "rotate_key", id).want(t, 200)
	if rotated.text(t, "data.id") != id || rotated.text(t, "data.rotatedUntil") == "" {
		t.Errorf("rotated is %s", rotated.body)
	}
	refund(key).wantFailure(t, 404, "sale_not_found")
	h.clock.advance(time.Minute)
	refund(key).wantFailure(t, 401, "invalid_service_key")
	key = rotated.text(t, "data.key")
	refund(key).wantFailure(t, 404, "sale_not_found")

	if got := act(admin, "/"+id+"/revoke", "", "revoke_key", id).want(t, 200).text(t, "data.status"); got != "revoked" {
		t.Errorf("revoked is %s", got)
	}
	refund(key).wantFailure(t, 401, "invalid_service_key")
	act(admin, "/"+id+"/rotate", `{}`, "rotate_key", id).wantFailure(t, 409, "key_not_active")
	entries, err := h.db.EntriesAbout(t.Context(), "platform", id)
	must(t, err)
	var types []ledger.Type
	for _, e := range entries {
		if types = append(types, e.Type); e.Actor != "admin:"+admin.id {
			t.Errorf("%s is by %s", e.Type, e.Actor)
		}
	}
	if fmt.Sprint(types) != "[service_key.created service_key.rotated service_key.revoked]" {
		t.Errorf("the journal has %v", types)
	}
}

// TestServiceKeyScopes calls each route for service keys with a key that has every scope but the route's own.
func TestServiceKeyScopes(t *testing.T) {
	h := openFixture(t)
	lacking := map[string]string{}
	for _, lacks := range auth.AllScopes().List() {
		others := strings.Fields(strings.Replace(" "+string(auth.AllScopes())+" ", " "+lacks+" ", " ", 1))
		key, _, err := h.auth.CreateServiceKey(t.Context(), auth.NewServiceKey{Name: "all but " + lacks, Scopes: others}, "operator:tests")
		must(t, err)
		lacking[lacks] = key
	}
	checked := 0
	for path, item := range h.spec.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Security == nil || len(*operation.Security) == 0 || (*operation.Security)[0]["serviceKey"] == nil {
				continue
			}
			_, scope, found := strings.Cut(operation.Description, "Scope: `")
			scope, _, _ = strings.Cut(scope, "`")
			if !found || lacking[scope] == "" {
				t.Errorf("the description of %s %s begins with no scope", method, path)
				continue
			}
			checked++
			f := h.do(call{method: method, path: strings.NewReplacer("{", "", "}", "").Replace(path), token: lacking[scope]}).wantFailure(t, 403, "scope_missing", "scope")
			if f.Details["scope"] != scope || !strings.Contains(f.Error, scope) {
				t.Errorf("%s %s is answered with %+v", method, path, f)
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d routes were checked", checked)
	}
}
