package browser

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"bursar/internal/demo"
	"bursar/test/harness"
)

// newStreet opens the service as a newcomer finds it, but for the time that things take. Its sandbox can
// be made to fail.
func newStreet(t *testing.T, settings ...string) (i *instance, sandbox string) {
	t.Helper()
	address, err := harness.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	i = newInstance(t, append([]string{
		"BURSAR_DATA_DIR=" + t.TempDir(), "BURSAR_METRICS_ADDR=off", "BURSAR_SANDBOX_ADDR=" + address,
		"BURSAR_SANDBOX_SETTLE_AFTER=1s", "BURSAR_LOG_LEVEL=warn",
	}, settings...)...)
	i.Start(t)
	return i, "http://" + address
}

// userID is who is signed in, as the API knows them.
func (b *browser) userID() string {
	b.t.Helper()
	return evaluate[string](b, `fetch("/api/auth/me").then(r => r.json()).then(me => me.data.user.id)`)
}

// earn has the marketplace record a sale that can be withdrawn at once.
func (i *instance) earn(t *testing.T, seller, sale string, amount float64) {
	t.Helper()
	out, err := i.Command("apikey", "create", "--name", "test").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	i.Call(t, "POST", "/api/marketplace/sales", lines[len(lines)-1], fmt.Sprintf(
		`{"saleId": %q, "sellerId": %q, "amount": %.2f, "occurredAt": "2026-11-01T10:00:00Z", "availableAt": "2026-11-04T10:00:00Z"}`,
		sale, seller, amount), new(struct{}))
}

// register makes an account through the pages.
func (b *browser) register(name, email string) {
	b.t.Helper()
	b.visit("/register")
	b.keep("register")
	b.choose("I sell")
	b.fill("Name", name)
	b.fill("E-mail", email)
	b.fill("Password", "correct horse")
	b.press("Create account")
	b.see("How you get paid")
}

// openBankAccount registers a bank account and waits until it is verified.
func (b *browser) openBankAccount(holder, number string) {
	b.t.Helper()
	b.visit("/dashboard/bank-account/new")
	b.fill("Account holder", holder)
	b.fill("Account number", number)
	b.fill("Confirm account number", number)
	b.fill("IFSC", "HDFC0000053")
	b.see("HDFC Bank") // the bank is named as the code is typed
	b.keep("bank-account-form")
	b.press("Save bank account")
	b.see("Your payouts go here.")
	b.look()
}

// request asks for a payout, and stops at its page.
func (b *browser) request(amount string) {
	b.t.Helper()
	b.visit("/dashboard/payouts/new")
	b.fill("Amount", amount)
	b.see("You receive")
	b.keep("request")
	b.press("Review")
	b.see("Confirm payout")
	b.keep("review")
	b.press("Confirm payout")
	b.see("Processing")
}

// confirmAgain goes back from a payout to its review and confirms that once more, which is the same payout.
func (b *browser) confirmAgain() {
	b.t.Helper()
	page := b.path()
	b.do(chromedp.NavigateBack())
	b.see("You have confirmed this already")
	b.look()
	b.keep("review-again")
	b.press("Confirm payout")
	b.see("Payout of")
	if got := b.path(); got != page {
		b.t.Errorf("confirming again leads to %s, not to %s", got, page)
	}
}

// A seller registers, adds a bank account, is paid, and cancels another payout.
func TestSeller_InABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, _ := newStreet(t, "BURSAR_CANCEL_WINDOW=15s")
			b := openBrowser(t, i.API, s)
			b.visit("/")
			b.keep("login")
			b.register("Asha Rao", "asha@example.com")
			b.keep("overview-new")
			b.openBankAccount("Asha Rao", "50100234567812")
			b.keep("bank-account")
			i.earn(t, b.userID(), "order-1", 123456.50)
			b.waitAt("/dashboard/payouts/new", "Withdraw full balance")
			b.visit("/dashboard")
			b.see("₹1,23,456.50")

			b.request("1,600")
			paid := b.path()
			b.confirmAgain()
			b.request("2500.50")
			b.press("Cancel payout")
			b.press("Cancel payout")
			b.see("Cancelled")
			b.keep("payout-cancelled")

			b.visit(paid)
			b.see("Completed") // by itself
			b.see("Bank reference")
			b.look()
			b.keep("payout-completed")
			for _, path := range []string{"/dashboard/payouts", "/dashboard/payouts/statements", "/dashboard/sales", "/dashboard/ledger", "/dashboard/sales/sale?id=order-1", "/dashboard/payouts/statements/print", "/dashboard/profile", "/dashboard"} {
				b.visit(path)
				b.keep("seller" + strings.NewReplacer("/", "-", "?id=", "-").Replace(strings.TrimPrefix(path, "/dashboard")))
			}
			b.see("₹1,21,856.50")
			b.visit("/dashboard/payouts/statements/print")
			b.onPaper("statement-on-paper")
			b.visit("/dashboard/payouts?status=failed")
			b.expectRefusal()
			b.visit("/dashboard/payouts/pyt_0000000000000000000000000")
			b.visit("/dashboard")
			b.press("Sign out")
			b.see("Sign in")
			if got := b.path(); got != "/login" {
				t.Errorf("signed out at %s", got)
			}
		})
	}
}

// A seller adds an authenticator app, signs in with a code of it, and replaces the bank account with a code.
func TestSecondFactor_InABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, _ := newStreet(t)
			b := openBrowser(t, i.API, s)
			b.register("Asha Rao", "asha@example.com")
			b.openBankAccount("Asha Rao", "50100234567812")
			b.visit("/dashboard/profile/factors")
			b.keep("factors-none")
			b.press("Add an authenticator app")
			b.see("Or type the secret")
			b.keep("factor-enrol")
			secret := evaluate[string](b, `document.querySelector("main code").textContent`)
			// A code is taken once, and one of the next half minute is taken already.
			code := func(ahead time.Duration) string {
				code, err := totp.GenerateCode(secret, time.Now().Add(ahead))
				if err != nil {
					t.Fatal(err)
				}
				return code
			}
			b.fill("The code that the app shows now", "000000")
			b.expectRefusal()
			b.press("Confirm")
			b.see("This code is wrong")
			b.fill("The code that the app shows now", code(0))
			b.press("Confirm")
			b.see("Your recovery codes")
			b.look()
			b.keep("factor-recovery-codes")
			recovery := evaluate[[]string](b, `[...document.querySelectorAll(".codes code")].map(c => c.textContent)`)

			b.press("Sign out")
			b.see("Sign in")
			b.fill("E-mail", "asha@example.com")
			b.fill("Password", "correct horse")
			b.press("Sign in")
			b.see("Second step")
			b.look()
			b.keep("login-factor")
			if strings.Contains(b.path(), "challenge") {
				t.Errorf("the address is %s", b.path())
			}
			b.fill("Code of your authenticator app", code(30*time.Second))
			b.press("Sign in")
			b.see("Overview")

			b.visit("/dashboard/bank-account/new")
			fill := func(code string) {
				b.fill("Account number", "50100234999999")
				b.fill("Confirm account number", "50100234999999")
				b.fill("IFSC", "HDFC0000053")
				b.fill("A code of your authenticator app", code)
			}
			fill("000000")
			b.expectRefusal()
			b.press("Save bank account")
			b.see("is wrong, was used already")
			b.keep("bank-account-code")
			fill(recovery[0])
			b.press("Save bank account")
			b.see("Your payouts go here.")
			b.visit("/dashboard/profile")
			b.see("Recovery code used")
			b.look()
			b.keep("profile-events")
			b.visit("/dashboard/profile/factors")
			b.see("9 recovery codes are left")
			b.fill("A code of your authenticator app, or a recovery code", recovery[1])
			b.press("Remove it")
			b.see("The second factor is removed.")
			b.press("Sign out")
			b.see("Sign in")
			b.fill("E-mail", "asha@example.com")
			b.fill("Password", "correct horse")
			b.press("Sign in")
			b.see("Overview")
		})
	}
}

// Errors are shown beside their fields, and a link can't make a page show text of its own.
func TestFormErrors_InABrowser(t *testing.T) {
	i, _ := newStreet(t)
	b := openBrowser(t, i.API, phone)
	b.visit("/register")
	b.fill("Name", "A")
	b.fill("E-mail", "asha@example")
	b.fill("Password", "short")
	b.expectRefusal()
	b.press("Create account")
	b.see("must be 2 to 50 characters")
	b.keep("register-mistakes")
	b.visit("/login")
	b.fill("E-mail", "nobody@example.com")
	b.fill("Password", "wrong horse")
	b.expectRefusal()
	b.press("Sign in")
	b.see("The e-mail address or the password is wrong.")
	b.visit("/login?error=Call+1-800-STRANGER")
	if strings.Contains(b.text(), "STRANGER") {
		t.Error("a link makes the page say what it likes")
	}
}

// A user denies the sandbox's identity provider, and then signs in through it.
func TestProviderSignIn_InABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, _ := newStreet(t)
			b := openBrowser(t, i.API, s)
			b.visit("/login")
			b.press("Continue with Sandbox A")
			b.keep("consent")
			b.press("Cancel")
			b.see("You did not finish")
			b.keep("login-denied")
			b.visit("/register")
			b.press("Continue with Sandbox B")
			b.fill("Name", "Kabir Gupta")
			b.fill("E-mail", "kabir@example.com")
			b.press("Continue")
			b.see("How you get paid")
			b.visit("/dashboard/profile")
			b.see("kabir@example.com")
		})
	}
}

// An order is lost on its way, again and again, until an admin refunds it to the balance.
func TestAdmin_InABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, sandbox := newStreet(t, "BURSAR_CANCEL_WINDOW=0s")
			seller := openBrowser(t, i.API, s)
			seller.register("Asha Rao", "asha@example.com")
			seller.openBankAccount("Asha Rao", "50100234567812")
			i.earn(t, seller.userID(), "order-1", 5000)
			seller.waitAt("/dashboard/payouts/new", "Withdraw full balance")
			inject(t, sandbox, `{"method": "POST", "path": "/v1/payouts", "when": "before", "cut": true, "times": 50}`)
			seller.request("700")
			lost := strings.TrimPrefix(seller.path(), "/dashboard/payouts/")

			admin := openBrowser(t, i.API, s)
			i.makeAdmin(t, "priya@example.com", "monsoon market")
			admin.signIn("priya@example.com", "monsoon market")
			admin.keep("admin")
			admin.waitAt("/dashboard/admin/inbox", "Asha Rao")
			admin.keep("admin-inbox")

			admin.visit("/dashboard/admin/payouts/" + lost)
			admin.press("Send to review…")
			admin.expectRefusal()
			admin.press("Send to review")
			admin.see("must say why")
			admin.fill("Note", "Their support sees no such transfer, case 4711.")
			admin.keep("admin-review")
			admin.press("Send to review")
			admin.press("Ask the gateway now")
			admin.keep("admin-payout-in-review")
			admin.waitAt("/dashboard/admin/payouts/"+lost, "Refund to balance…")
			admin.press("Refund to balance…")
			admin.choose("The gateway has no such transfer")
			admin.fill("Note", "There is none in their dashboard either.")
			admin.keep("admin-refund")
			admin.press("Refund ₹700.00")
			admin.see("Failed")
			admin.keep("admin-payout-refunded")

			seller.visit("/dashboard/payouts/" + lost)
			seller.see("its amount is back in your balance")
			seller.keep("payout-failed")
			seller.visit("/dashboard")
			seller.see("₹5,000.00")

			for _, path := range []string{"", "/inbox", "/payouts", "/sellers", "/sellers/" + seller.userID(), "/health", "/decisions", "/mails", "/keys", "/keys/new", "/webhooks", "/webhooks/new", "/ledger"} {
				admin.visit("/dashboard/admin" + path)
			}
			admin.press("Audit the ledger")
			admin.see("All checks passed")
			admin.look()
			admin.keep("admin-ledger")
		})
	}
}

// waitAt visits a page until something stands there, and then looks at it.
func (b *browser) waitAt(path, text string) {
	b.t.Helper()
	harness.Until(b.t, fmt.Sprintf("%q stands at %s", text, path), func() bool {
		b.do(chromedp.Navigate(b.at + path))
		return strings.Contains(b.text(), text)
	})
	b.look()
}

// A reader opens each page of the API's documentation on the narrowest screen and on a wide one, chooses a language,
// filters the contents and sends a request.
func TestDocumentation_InABrowser(t *testing.T) {
	i, _ := newStreet(t)
	narrow := screen{name: "narrow", width: 320, height: 640, phone: true, dark: true}
	for _, s := range []screen{narrow, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := openBrowser(t, i.API, s)
			b.visit("/docs")
			b.keep("docs")
			for _, page := range evaluate[[]string](b, `[...document.querySelectorAll(".sections a")].map(a => a.getAttribute("href"))`) {
				b.visit(page)
				b.keep("docs-" + strings.TrimPrefix(page, "/docs/"))
			}
			b.visit("/docs/errors")
			b.keep("docs-errors")

			b.visit("/docs/operations")
			evaluate[bool](b, `document.getElementById("in-go").click(), true`)
			if got := evaluate[string](b, `[...document.querySelectorAll("#health .sample")].filter(s => s.offsetParent).map(s => s.className).join()`); got != "sample go" {
				t.Errorf("with Go chosen %q is shown", got)
			}
			b.visit("/docs/operations")
			if !evaluate[bool](b, `document.getElementById("in-go").checked`) {
				t.Error("the language is forgotten")
			}
			shown := evaluate[string](b, `(() => {
				const filter = document.getElementById("filter");
				filter.value = "cancel";
				filter.dispatchEvent(new Event("input"));
				return [...document.querySelectorAll("#contents li:not([hidden])")].map(i => i.textContent).join();
			})()`)
			if !strings.Contains(shown, "Cancel a payout") || strings.Contains(shown, "Register a user") {
				t.Errorf("the filter leaves %q", shown)
			}
			evaluate[bool](b, `document.querySelector("#health details.try").open = true, document.querySelector("#health form button").click(), true`)
			b.see("X-Request-Id:")
			b.look()
		})
	}
}

// TestPictures takes the README's pictures of the demo, where a directory for them is named.
func TestPictures(t *testing.T) {
	if os.Getenv("BURSAR_TEST_SCREENSHOTS") == "" {
		t.Skip("pictures are taken by make screenshots")
	}
	i := newInstance(t, "BURSAR_METRICS_ADDR=off")
	i.Program = []string{"demo"}
	i.Begin(t)
	harness.Until(t, "the demo is open", func() bool { return strings.Contains(i.Output(t, "stdout"), "The market is open") })
	for _, s := range []screen{phone, desktop} {
		asha := openBrowser(t, i.API, s)
		asha.signIn("asha@example.com", demo.Password)
		asha.keep("overview")
		if s.phone {
			asha.visit("/dashboard/payouts?status=completed")
			asha.press("₹")
			asha.keep("payout")
		}
	}
	admin := openBrowser(t, i.API, desktop)
	admin.signIn("admin@example.com", demo.Password)
	admin.keep("admin-home")
}

// signIn signs in with e-mail and password.
func (b *browser) signIn(email, password string) {
	b.t.Helper()
	b.visit("/login")
	b.fill("E-mail", email)
	b.fill("Password", password)
	b.press("Sign in")
}

// inject makes the sandbox fail.
func inject(t *testing.T, sandbox, fault string) {
	t.Helper()
	if status, answer, err := harness.Send("POST", sandbox+"/control/faults", "", fault, nil); err != nil || status != http.StatusOK && status != http.StatusCreated {
		t.Fatalf("the sandbox takes no fault: %d %s %v", status, answer, err)
	}
}

// makeAdmin makes an admin as an operator does.
func (i *instance) makeAdmin(t *testing.T, email, password string) {
	t.Helper()
	cmd := i.Command("user", "create", "--name", "Priya Menon", "--email", email, "--role", "admin", "--password-stdin")
	cmd.Stdin = strings.NewReader(password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}
