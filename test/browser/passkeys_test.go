package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// giveAuthenticator gives the tab a device that keeps passkeys, and a user who always agrees.
func (b *browser) giveAuthenticator() (id webauthn.AuthenticatorID) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		if _, err := cdp.Call(ctx, tab, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		made, err := cdp.Call(ctx, tab, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}})
		id = made.AuthenticatorID
		return err
	}))
	return id
}

// forge has the device sign wrongly, or rightly again.
func (b *browser) forge(id webauthn.AuthenticatorID, wrongly bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{AuthenticatorID: id, IsBogusSignature: &wrongly})
		return err
	}))
}

// click presses a button that does not lead to another page.
func (b *browser) click(text string) {
	b.t.Helper()
	if !evaluate[bool](b, `(() => {
		const button = [...document.querySelectorAll("button")].find(e => e.getClientRects().length > 0 && e.innerText.trim() === `+quoted(text)+`);
		if (button) button.click();
		return !!button;
	})()`) {
		b.t.Fatalf("%s: there is no button %q on the page:\n%s", b.screen.name, text, b.text())
	}
}

// A seller adds a passkey, signs in with it alone and as the second step, replaces the bank account with it, and
// removes it.
func TestPasskey_InABrowser(t *testing.T) {
	for _, s := range []screen{phone, desktop} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			i, _ := newStreet(t)
			b := openBrowser(t, strings.Replace(i.API, "127.0.0.1", "localhost", 1), s) // browsers have passkeys for names alone
			device := b.giveAuthenticator()
			b.register("Asha Rao", "asha@example.com")
			b.openBankAccount("Asha Rao", "50100234567812")
			b.visit("/dashboard/profile/factors")
			b.keep("passkeys-none")
			b.fill("Name", "My laptop")
			b.press("Add a passkey")
			b.keep("passkey-create")
			b.press("Create the passkey")
			b.see("Your recovery codes")
			b.see("My laptop")
			b.keep("passkey-recovery-codes")
			recovery := evaluate[[]string](b, `[...document.querySelectorAll(".codes code")].map(c => c.textContent)`)

			b.press("Sign out")
			b.see("Sign in")
			b.keep("login-passkey")
			b.forge(device, true)
			b.expectRefusal()
			b.press("Sign in with a passkey")
			b.see("This passkey is not one of this account")
			b.keep("login-passkey-refused")
			b.forge(device, false)
			b.press("Sign in with a passkey")
			b.see("Overview")

			b.press("Sign out")
			b.fill("E-mail", "asha@example.com")
			b.fill("Password", "correct horse")
			b.press("Sign in")
			b.see("Use your passkey.")
			b.keep("login-factor-passkey")
			b.press("Use your passkey")
			b.see("Overview")
			b.press("Sign out")
			b.fill("E-mail", "asha@example.com")
			b.fill("Password", "correct horse")
			b.press("Sign in")
			b.fill("Recovery code", recovery[0])
			b.press("Sign in")
			b.see("Overview")

			b.visit("/dashboard/bank-account/new")
			fill := func(number, again string) {
				b.fill("Account number", number)
				b.fill("Confirm account number", again)
				b.fill("IFSC", "HDFC0000053")
			}
			fill("50100234999999", "50100234999998")
			b.expectRefusal() // the script learns that there is nothing to sign
			b.expectRefusal() // and the form says why
			b.press("Confirm with a passkey")
			b.see("must be the same as the account number")
			b.keep("bank-account-passkey")
			fill("50100234999999", "50100234999999")
			b.press("Confirm with a passkey")
			b.see("Your payouts go here.")

			b.visit("/dashboard/profile")
			b.see("Second factor added")
			b.fill("Current password", "correct horse")
			b.fill("New password", "another horse")
			b.keep("profile-passkey")
			b.press("Confirm with a passkey")
			b.see("Your password is set.")

			b.visit("/dashboard/profile/factors")
			b.keep("passkeys")
			b.press("Confirm with a passkey")
			b.see("The second factor is removed.")
		})
	}
}

// Browsers have no passkeys where the address is an IP address.
func TestPasskey_NumericAddress_SuggestsLocalhost(t *testing.T) {
	t.Parallel()
	i, _ := newStreet(t)
	b := openBrowser(t, i.API, phone)
	b.visit("/login")
	if shown := evaluate[int](b, `(() => {
		const button = document.querySelector("[data-passkey]").cloneNode(true);
		button.hidden = true; // as it is where no script runs
		document.querySelector("main").append(button);
		return button.getClientRects().length;
	})()`); shown != 0 {
		t.Error("a button that only a script can use is shown without one")
	}
	b.click("Sign in with a passkey")
	b.see("open http://localhost:")
	b.look()
}
