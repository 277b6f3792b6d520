package razorpayx_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bursar/internal/gateway"
	"bursar/internal/gateway/razorpayx"
	"bursar/internal/money"
)

func headers(signature, eventID string) http.Header {
	h := http.Header{}
	h.Set("X-Razorpay-Signature", signature)
	if eventID != "" {
		h.Set("x-razorpay-event-id", eventID)
	}
	return h
}

func newWebhooks(t *testing.T, secrets ...string) *razorpayx.Webhooks {
	t.Helper()
	w, err := razorpayx.NewWebhooks(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWebhook_IsANotificationOnly(t *testing.T) {
	w := newWebhooks(t, "new", "old")
	for name, test := range map[string]struct {
		body string
		want gateway.Notification
	}{
		"a payout": {sample(t, "event_payout_processed"), gateway.Notification{Reference: reference}},
		"a payout, whose reference is in the notes alone": {
			strings.Replace(sample(t, "event_payout_processed"), `"reference_id": "`+reference+`",`, "", 1), gateway.Notification{Reference: reference},
		},
		"a validation": {sample(t, "event_validation_completed"), gateway.Notification{VerificationID: "fav_00000000000001"}},
		"a downtime, which lacks much": {
			`{"entity":"event","event":"payout.downtime.resolved","payload":{"payout.downtime":{"entity":{"id":"poutdown_00000000000001"}}}}`,
			gateway.Notification{},
		},
	} {
		for _, secret := range []string{"new", "old"} {
			got, err := w.Read(headers(razorpayx.Sign(secret, []byte(test.body)), "evt_1"), []byte(test.body))
			test.want.EventID = "evt_1"
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// The value was computed apart from this code: printf '{}' | openssl dgst -sha256 -hmac secret.
func TestSignature(t *testing.T) {
	const want = "77325902caca812dc259733aacd046b73817372c777b8d95b402647474516e13"
	if got := razorpayx.Sign("secret", []byte("{}")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWebhook_InvalidSignature_Refused(t *testing.T) {
	body := sample(t, "event_payout_processed")
	good := razorpayx.Sign("secret", []byte(body))
	w := newWebhooks(t, "secret")
	for name, test := range map[string]struct{ signature, body string }{
		"nothing":             {"", body},
		"another secret":      {razorpayx.Sign("guess", []byte(body)), body},
		"upper case":          {strings.ToUpper(good), body},
		"cut short":           {good[:32], body},
		"another body":        {good, body + " "},
		"an empty body":       {good, ""},
		"a signature too far": {good + good, body},
	} {
		if _, err := w.Read(headers(test.signature, "evt_1"), []byte(test.body)); !errors.Is(err, razorpayx.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWebhook_InvalidEvent_Refused(t *testing.T) {
	w := newWebhooks(t, "secret")
	for _, body := range []string{"", "null", "[]", "{}", `{"event":""}`, `{"event":7}`, `{"event":"payout.processed"`, "<html>"} {
		if _, err := w.Read(headers(razorpayx.Sign("secret", []byte(body)), "evt_1"), []byte(body)); !errors.Is(err, razorpayx.ErrUnreadable) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestWebhook_InvalidEventID_DerivedFromBody(t *testing.T) {
	w := newWebhooks(t, "secret")
	read := func(body, id string) string {
		notification, err := w.Read(headers(razorpayx.Sign("secret", []byte(body)), id), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return notification.EventID
	}
	want, other := read(`{"event":"a"}`, ""), read(`{"event":"b"}`, "")
	if want == "" || want == other {
		t.Errorf("%q, %q", want, other)
	}
	for _, id := range []string{"", strings.Repeat("e", 129), "evt\x00", "evt\xff", "evt é"} {
		if got := read(`{"event":"a"}`, id); got != want {
			t.Errorf("with the id %q it is %q, want %q", id, got, want)
		}
	}
}

func TestWebhooksNeedSecrets(t *testing.T) {
	for _, secrets := range [][]string{nil, {""}, {"new", ""}} {
		if _, err := razorpayx.NewWebhooks(secrets...); err == nil {
			t.Errorf("%q: no error", secrets)
		}
	}
}

func FuzzWebhook(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", `{"event":"payout.processed","payload":null}`, `{"event":"x","payload":{"payout":{"entity":[]}}}`,
		`{"event":"payout.processed","payload":{"payout":{"entity":{"id":"pout_1","reference_id":null,"notes":[]}}}}`,
		`{"event":"payout.processed","payload":{"payout":{"entity":{"notes":{"a":{"b":[1]}},"status_details":null}}}}`,
		`{"event":"fund_account.validation.completed","payload":{"fund_account.validation":{"entity":{"id":"fav_1","results":{"name_match_score":"85.5"}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	w, err := razorpayx.NewWebhooks("secret")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		notification, err := w.Read(headers(razorpayx.Sign("secret", body), ""), body)
		if (err == nil) != (notification.EventID != "") {
			t.Fatalf("%+v, %v", notification, err)
		}
		if err != nil && !errors.Is(err, razorpayx.ErrUnreadable) {
			t.Fatal(err)
		}
	})
}

// The settings of a former gateway are one text, in which people write a blank behind a comma.
func TestOpen_SecretsMayHaveBlanks(t *testing.T) {
	inr, err := money.ParseCurrency("INR")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := razorpayx.Open(gateway.Setup{Name: "razorpayx", Currency: inr, Now: time.Now, Timeout: time.Second, Settings: map[string]string{
		razorpayx.SettingBaseURL: "https://api.razorpay.com/v1", razorpayx.SettingKeyID: "k", razorpayx.SettingKeySecret: "s",
		razorpayx.SettingAccountNumber: "1", razorpayx.SettingWebhookSecrets: "new, old",
	}})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("{}")
	for _, secret := range []string{"new", "old"} {
		if _, err := opened.ReadWebhook(headers(razorpayx.Sign(secret, body), ""), body); errors.Is(err, razorpayx.ErrSignature) {
			t.Errorf("what was signed with the secret %q is refused: %v", secret, err)
		}
	}
}
