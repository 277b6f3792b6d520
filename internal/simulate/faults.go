package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// trouble is a fault by its number.
type trouble int

const (
	slow trouble = iota
	lostAnswer
	cut
	throttle
	serverError
	html
	refuse
	lockedOut
	odd
	lie
	outage
	lag
	hookTwice
	hookLate
	hookLost
	hookForged
	bankReturns
	bankFails
	broke
	verify
	crash
	rival
	stall
	restore
	clock
	undone
	replace
	numFaults
)

// catalogue names each fault and says what it does. Most is how likely it is to strike, of a thousand
// chances, when the weather is at its worst.
var catalogue = [numFaults]struct {
	name, does string
	most       int
}{
	slow:        {"slow", "the gateway answers late, or a request reaches it after its sender has given up", 200},
	lostAnswer:  {"lost-answer", "the gateway does what it was asked, and its answer never comes", 300},
	cut:         {"cut", "a connection is refused, or cut before the request arrives", 300},
	throttle:    {"throttle", "the gateway answers 429, with or without Retry-After, now and then to an order that it has taken", 300},
	serverError: {"error", "the gateway answers 409, 500 to 504, or a 400 that says no more, before or after it did what it was asked", 300},
	html:        {"html", "a page of HTML or half an answer comes in place of JSON", 200},
	refuse:      {"refuse", "the gateway refuses an order with a readable 400, and does not make it, or has made it all the same", 300},
	lockedOut:   {"locked-out", "the gateway does not let us in: 401, 403, a wrong address, or a 400 about our account", 300},
	odd:         {"odd", "an answer names a status that nobody knows, leaves out the bank's reference, the account and the currency, or lists more than was asked for", 300},
	lie:         {"lie", "the gateway says of a transfer what can't be true: another amount, currency, account or reference, or paid after it failed; or it tells of something else than was asked for", 100},
	outage:      {"outage", "the gateway answers nothing for minutes or hours, now and then for longer than it honours a key", 1000},
	lag:         {"lag", "the gateway's lists and records are up to a minute behind", 700},
	hookTwice:   {"hook-twice", "webhooks come again, up to days later", 400},
	hookLate:    {"hook-late", "webhooks come late, and so out of order", 600},
	hookLost:    {"hook-lost", "webhooks never come", 600},
	hookForged:  {"hook-forged", "an attacker posts webhooks without the secret, or false ones with it", 300},
	bankReturns: {"return", "the bank returns a completed payout, up to the third working day", 150},
	bankFails:   {"fail", "the bank does not pay, or takes days to decide", 250},
	broke:       {"broke", "our account at the gateway is empty, so that payouts queue", 1000},
	verify:      {"verify", "a verification finds no such account or another name, fails itself, or stays pending for hours, days or for ever", 600},
	crash:       {"crash", "an instance is killed between any two writes or around any call of the gateway", 12},
	rival:       {"rival", "a second instance competes for the work", 1000},
	stall:       {"stall", "a worker hangs between two steps, for longer than its lease", 15},
	restore:     {"restore", "a backup is put in the place of the ledger; now and then the gateway has a transfer under our reference that no payout can be made of", 1000},
	clock:       {"clock", "an instance's clock jumps by minutes", 1000},
	replace:     {"replace", "in a few of eight seeds, the gateway for new payouts is replaced by another one and back; now and then one of the two is not configured", 0},
	undone:      {"undone", "a transaction is undone at its end, or because one of its statements failed, and is run again or fails", 15},
}

// Faults is a set of faults.
type Faults [numFaults]bool

// ParseFaults reads "all", "none", or names joined by commas; one with a minus before it is taken out, as
// in "all,-restore".
func ParseFaults(s string) (Faults, error) {
	var set Faults
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		bare, out := strings.CutPrefix(name, "-")
		at := slices.Index(FaultNames(), bare)
		switch {
		case name == "all":
			for f := range set {
				set[f] = true
			}
		case name == "none":
			set = Faults{}
		case at >= 0:
			set[at] = !out
		default:
			return Faults{}, fmt.Errorf(`there is no fault %q; write "all", "none", or some of: %s`, name, strings.Join(FaultNames(), ", "))
		}
	}
	return set, nil
}

// String writes the set as ParseFaults reads it.
func (s Faults) String() string {
	var names []string
	for f, has := range s {
		if has {
			names = append(names, catalogue[f].name)
		}
	}
	switch len(names) {
	case 0:
		return "none"
	case int(numFaults):
		return "all"
	default:
		return strings.Join(names, ",")
	}
}

// FaultNames lists the names of all faults.
func FaultNames() []string {
	names := make([]string, numFaults)
	for f, kind := range catalogue {
		names[f] = kind.name
	}
	return names
}

// DescribeFault says what the named fault does.
func DescribeFault(name string) string {
	if at := slices.Index(FaultNames(), name); at >= 0 {
		return catalogue[at].does
	}
	return ""
}
