package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"

	"bursar/internal/id"
	"bursar/internal/mail"
)

// Device is where a request comes from.
type Device struct {
	// Tokens are the device tokens that the browser sent, of whichever accounts.
	Tokens []string
	// Address is the client's IP address, without a port.
	Address string
	// Agent is what the browser or program calls itself. It may be anything.
	Agent string
}

// What is kept of a device, to show it to its user.
const (
	maxAgentBytes   = 200
	maxAddressBytes = 64
)

// printable is what of a text may be shown on one line, cut to most bytes.
func printable(s string, most int) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s[:min(len(s), most)], ""))
	return strings.TrimSpace(s)
}

// ipv6Site is the part of an IPv6 address that is counted: a site has every address of its /64.
const ipv6Site = 64

// site is the address that attempts from the device count against.
func (d Device) site() string {
	address, err := netip.ParseAddr(d.Address)
	if err != nil {
		return d.Address
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	site, err := address.Prefix(ipv6Site)
	if err != nil {
		return d.Address
	}
	return site.String()
}

// DeviceLife is how long an account knows a device after its last sign-in.
const DeviceLife = 180 * 24 * time.Hour

const (
	devicePurpose   = "bursar device v1:"
	deviceIDDigits  = 22 // of base 62, so about 128 bits
	deviceSeparator = "."
	// Limits of what a browser may make us open.
	maxDeviceTokens     = 16
	maxDeviceTokenBytes = 512
)

// deviceContext binds a device token to one account and its present password: with another password, or without
// one, every device is unknown.
func deviceContext(u User) string {
	sum := sha256.Sum256([]byte(u.PasswordHash))
	return devicePurpose + u.ID + ":" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// deviceToken makes the token by which the user's account will know a device: the one with that id, or a new one.
// Nothing is stored.
func (s *Service) deviceToken(u User, device string, now time.Time) (string, error) {
	if device == "" {
		device = id.Random(deviceIDDigits)
	}
	token, err := s.o.Encrypter.Encrypt(device+deviceSeparator+strconv.FormatInt(now.Unix(), 10), deviceContext(u))
	if err != nil {
		return "", fmt.Errorf("make a device token: %w", err)
	}
	return token, nil
}

// recognize finds the id of a device that the user's account knows, or "".
func (s *Service) recognize(u User, d Device, now time.Time) string {
	for _, token := range d.Tokens[:min(len(d.Tokens), maxDeviceTokens)] {
		if len(token) > maxDeviceTokenBytes {
			continue
		}
		text, err := s.o.Encrypter.Decrypt(token, deviceContext(u))
		if err != nil {
			continue
		}
		device, since, _ := strings.Cut(text, deviceSeparator)
		seconds, err := strconv.ParseInt(since, 10, 64)
		if err == nil && device != "" && now.Sub(time.Unix(seconds, 0)) < DeviceLife {
			return device
		}
	}
	return ""
}

// What browsers and systems call themselves, those first that others' names are a part of.
var (
	browsers = []sign{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	systems  = []sign{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}}
)

// sign is a part of an agent, and what it tells.
type sign struct{ part, name string }

// DeviceName names a browser and its system in our own words, or is empty where it knows neither. What an agent calls itself may
// be anything.
func DeviceName(agent string) string {
	named := func(signs []sign) string {
		for _, s := range signs {
			if strings.Contains(agent, s.part) {
				return s.name
			}
		}
		return ""
	}
	browser, system := named(browsers), named(systems)
	if browser != "" && system != "" {
		return browser + " on " + system
	}
	return browser + system
}

// origin is what a mail shows of a device. The agent could carry a link or a message, so that a mail of ours would be spam.
func (d Device) origin(at time.Time) mail.Origin {
	return mail.Origin{At: at, Address: printable(d.Address, maxAddressBytes), Agent: DeviceName(d.Agent)}
}
