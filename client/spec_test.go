package client_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"

	"bursar/client"
)

func description(t *testing.T) *openapi3.T {
	t.Helper()
	text, err := os.ReadFile("../internal/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestTypes_MatchAPIDescription compares each type of the client with the API's description: the same members, of the same kinds.
func TestTypes_MatchAPIDescription(t *testing.T) {
	doc := description(t)
	if doc.Info.Version != client.APIVersion {
		t.Errorf("the client is for version %s, the API has %s", client.APIVersion, doc.Info.Version)
	}
	// What an operation is sent, and the data of its answer. A list stands for the member that has it.
	operations := map[string]struct{ body, data any }{
		"recordSale":                {client.NewSale{}, client.Sale{}},
		"recordSales":               {nil, struct{ Results []client.SaleResult }{}},
		"refundSale":                {client.NewRefund{}, client.Refund{}},
		"sellers":                   {nil, nil}, // has a cursor; see below
		"createSeller":              {client.NewSeller{}, client.Seller{}},
		"seller":                    {nil, client.Seller{}},
		"setSeller":                 {nil, nil},
		"adjustBalance":             {client.NewAdjustment{}, client.MadeAdjustment{}},
		"sellerBalance":             {nil, client.Balance{}},
		"explainSeller":             {nil, client.Explanation{}},
		"sellerSales":               {nil, client.SalesPage{}},
		"sellerPayouts":             {nil, client.PayoutsPage{}},
		"requestSellerPayout":       {client.NewPayout{}, client.RequestedPayout{}},
		"createSessionLink":         {nil, client.SessionLink{}},
		"registerSellerBankAccount": {client.NewBankAccount{}, client.BankAccount{}},
		"events":                    {nil, client.EventsPage{}},
		"addEndpoint":               {client.NewEndpoint{}, client.Endpoint{}},
		"listEndpoints":             {nil, struct{ Endpoints []client.Endpoint }{}},
		"getEndpoint":               {nil, client.Endpoint{}},
		"changeEndpoint":            {client.EndpointChange{}, client.Endpoint{}},
		"removeEndpoint":            {nil, nil},
		"rotateEndpointSecret":      {nil, client.Endpoint{}},
		"testEndpoint":              {nil, client.TestResult{}},
		"deliveries":                {nil, nil},
		"redeliver":                 {client.Redelivery{}, struct{ Queued int }{}},
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			name := operation.OperationID
			types, known := operations[name]
			if !known {
				if strings.HasPrefix(path, "/api/marketplace/") || strings.HasPrefix(path, "/api/webhooks/") || path == "/api/events" {
					t.Errorf("the client has no method for %s (%s %s)", name, method, path)
				}
				continue
			}
			delete(operations, name)
			if types.body != nil {
				compare(t, name+" body", reflect.TypeOf(types.body), operation.RequestBody.Value.Content.Get("application/json").Schema)
			}
			for _, status := range []int{200, 201, 202} {
				if answer := operation.Responses.Status(status); answer != nil && types.data != nil {
					members := membersOf(answer.Value.Content.Get("application/json").Schema)
					compare(t, name, reflect.TypeOf(types.data), members["data"])
				}
			}
		}
	}
	for name := range operations {
		t.Errorf("the API has no operation %s", name)
	}
	schemas := doc.Components.Schemas
	compare(t, "a seller of the list", reflect.TypeFor[client.Seller](), schemas["MarketplaceSeller"])
	compare(t, "a delivery", reflect.TypeFor[client.Delivery](), schemas["WebhookDelivery"])
	compare(t, "the payout of an event", reflect.TypeFor[client.Payout](), schemas["Payout"], "externalId")
	compare(t, "the balance of an event", reflect.TypeFor[client.Change](), membersOf(schemas["Event"])["data"])
	compare(t, "the adjustment of an event", reflect.TypeFor[client.Adjustment](), schemas["Adjustment"], "sellerId", "externalId")

	declared, err := os.ReadFile("events.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, eventType := range schemas["EventType"].Value.Enum {
		if !strings.Contains(string(declared), `EventType = "`+eventType.(string)+`"`) {
			t.Errorf("the client has no constant for the event type %s", eventType)
		}
	}
}

// absent lists members that a type of the client has at some answers only.
var absent = map[string][]string{
	// The secret is shown once; the type of the client is one.
	"Endpoint": {"secret"},
	// For admins alone.
	"ListedPayout": {"sellerId"},
}

// compare fails the test where a type has other members than a schema, but for those in also.
func compare(t *testing.T, at string, have reflect.Type, want *openapi3.SchemaRef, also ...string) {
	t.Helper()
	if have.Kind() == reflect.Pointer {
		have = have.Elem()
	}
	if want == nil {
		t.Errorf("%s: the description has no schema", at)
		return
	}
	kinds := kindsOf(want)
	is := func(kind string) bool { return slices.Contains(kinds, kind) }
	switch {
	case have == reflect.TypeFor[json.RawMessage]():
	case have == reflect.TypeFor[client.Amount]():
		if !is("number") {
			t.Errorf("%s is an amount, and %v in the description", at, kinds)
		}
	case have == reflect.TypeFor[time.Time](), have.Kind() == reflect.String:
		if !is("string") {
			t.Errorf("%s is text, and %v in the description", at, kinds)
		}
	case have.Kind() == reflect.Bool:
		if !is("boolean") {
			t.Errorf("%s is a bool, and %v in the description", at, kinds)
		}
	case have.Kind() == reflect.Int, have.Kind() == reflect.Int64:
		if !is("integer") {
			t.Errorf("%s is a whole number, and %v in the description", at, kinds)
		}
	case have.Kind() == reflect.Slice:
		if !is("array") {
			t.Errorf("%s is a list, and %v in the description", at, kinds)
			return
		}
		if have.Elem() != reflect.TypeFor[client.NewSale]() {
			compare(t, at+"[]", have.Elem(), want.Value.Items)
		}
	case have.Kind() == reflect.Map:
		if !is("object") {
			t.Errorf("%s is a map, and %v in the description", at, kinds)
		}
	case have.Kind() == reflect.Struct:
		compareMembers(t, at, have, membersOf(want), also)
	default:
		t.Fatalf("%s: no rule for %s", at, have)
	}
}

func compareMembers(t *testing.T, at string, have reflect.Type, want map[string]*openapi3.SchemaRef, also []string) {
	t.Helper()
	seen := map[string]bool{}
	for field := range have.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name[:1]) + field.Name[1:]
		}
		seen[name] = true
		if want[name] == nil {
			if !slices.Contains(also, name) && !slices.Contains(absent[have.Name()], name) {
				t.Errorf("%s: the description has no %s", at, name)
			}
			continue
		}
		compare(t, at+"."+name, field.Type, want[name])
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !seen[name] && !slices.Contains(absent[have.Name()], name) {
			t.Errorf("%s: the client lacks %s", at, name)
		}
	}
}

// membersOf lists the members of an object, those of its parts too.
func membersOf(s *openapi3.SchemaRef) map[string]*openapi3.SchemaRef {
	members := map[string]*openapi3.SchemaRef{}
	maps.Copy(members, s.Value.Properties)
	for _, part := range s.Value.AllOf {
		maps.Copy(members, membersOf(part))
	}
	return members
}

func kindsOf(s *openapi3.SchemaRef) []string {
	var kinds []string
	if s.Value.Type != nil {
		kinds = s.Value.Type.Slice()
	}
	for _, part := range s.Value.AllOf {
		kinds = append(kinds, kindsOf(part)...)
	}
	if s.Value.Const != nil || s.Value.Enum != nil && kinds == nil {
		kinds = append(kinds, "string", "boolean")
	}
	return kinds
}
