package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// action is what may be tried only so often. Each action has its own buckets, and [ratesOf] has its rates.
type action string

const (
	// guessPassword is every check of a password: at sign-in, and before it is changed.
	guessPassword action = "password"
	registration  action = "registration"
	// useReset is setting a password with a mailed token that is good, which costs a hash.
	useReset action = "reset"
	// askForMail is asking for a mail to reset a password.
	askForMail action = "mail"
	// guessCode is every check of a second factor's code.
	guessCode action = "code"
	// passkeySignIn is every check of a passkey that signs a user in without a name.
	passkeySignIn action = "passkey"
)

// rate is how often something may be tried: burst times at once, and one more time each every.
type rate struct {
	burst int
	every time.Duration
}

// rates are those of one action. A zero rate sets no limit.
type rates struct {
	device  rate // an account from a device that it knows
	here    rate // an account from one address, without a known device
	others  rate // an account from all unknown devices together
	address rate // one address without a known device, over all accounts
	// challenge is one sign-in that waits for its second proof, from wherever.
	challenge rate
}

// ratesOf holds the rates of each action. Unknown devices together get at most 100 wrong passwords an hour
// (NIST SP 800-63B §3.2.2), and a single address so few of them that it can't use them up.
var ratesOf = map[action]rates{
	guessPassword: {
		device:  rate{20, time.Minute},
		here:    rate{20, 90 * time.Second},
		others:  rate{50, 72 * time.Second},
		address: rate{100, 30 * time.Second},
	},
	// Of a million codes three are right for each app, so that 20 tries an hour find one in years, or with five apps in months.
	guessCode: {
		device:    rate{10, 3 * time.Minute},
		here:      rate{10, 3 * time.Minute},
		others:    rate{20, 3 * time.Minute},
		address:   rate{100, 30 * time.Second},
		challenge: rate{5, ChallengeLife},
	},
	// A signature can't be guessed, so this bounds work alone. It is counted by address, so that nobody keeps another's passkey out.
	passkeySignIn: {address: rate{100, 10 * time.Second}},
	registration:  {address: rate{500, 2 * time.Second}},
	useReset:      {address: rate{30, time.Minute}},
	askForMail:    {address: rate{30, 20 * time.Second}},
}

// try is one attempt at an action.
type try struct {
	action action
	// account is the user's id, or the [EmailKey] that nobody registered.
	account string
	// device is the id of a device that the account knows, or empty.
	device  string
	address string
	// challenge is the sign-in that waits for its second proof, if it is about one.
	challenge string
}

// source is who waits in one line for a place to hash.
func (t try) source() source {
	if t.device != "" {
		return source{known: true, name: t.account + " " + t.device}
	}
	return source{name: t.address}
}

// bucket counts the attempts of a rate. It is stored as one instant (GCRA), so a restart forgets nothing and
// all instances count together.
type bucket struct {
	name string
	rate
}

// known reports whether the attempt counts as one of a known device.
func (t try) known() bool { return t.device != "" && ratesOf[t.action].device.burst > 0 }

// buckets lists what the attempt counts against. A known device counts against its own bucket alone, so nobody
// else can lock it out. Any other attempt counts against the account and the address. The order is the order
// of locks.
func (t try) buckets() []bucket {
	l := ratesOf[t.action]
	var all []bucket
	add := func(r rate, kind string, about ...string) {
		if r.burst > 0 {
			all = append(all, bucket{bucketName(t.action, kind, about...), r})
		}
	}
	if t.challenge != "" {
		add(l.challenge, "challenge", t.challenge)
	}
	if t.known() {
		add(l.device, "device", t.account, t.device)
		return all
	}
	add(l.here, "here", t.account, t.address)
	add(l.others, "account", t.account)
	add(l.address, "address", t.address)
	return all
}

// bucketName hashes what a bucket is about, because an e-mail address that a visitor typed need not be a user's.
func bucketName(a action, kind string, about ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(about, "\x00")))
	return string(a) + ":" + kind + ":" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// room is how far ahead of now a bucket's virtual time may be.
func (r rate) room() time.Duration { return time.Duration(r.burst) * r.every }

// wait is how long a bucket whose virtual time is given has no room for another attempt; zero or less is room.
func (r rate) wait(virtual, now time.Time) time.Duration {
	return virtual.Add(r.every - r.room()).Sub(now)
}

// attempt is a try that was counted. It is counted before the secret is checked, so parallel attempts can't
// pass a full bucket, and removed again when the secret was right.
type attempt struct {
	buckets []bucket
	// known says that the only bucket is the device's own.
	known bool
}

// take counts one attempt against each bucket, or against none if one of them is full. It returns how
// long to wait until all have room again; zero means that the attempt was counted.
func take(ctx context.Context, tx Tx, now time.Time, buckets []bucket) (time.Duration, error) {
	var wait time.Duration
	var counted []bucket
	for _, b := range buckets {
		virtual, ok, err := tx.TakeThrottle(ctx, b.name, now, b.every, b.room())
		if err != nil {
			return 0, err
		}
		if ok {
			counted = append(counted, b)
			continue
		}
		wait = max(wait, b.wait(virtual, now))
	}
	if wait == 0 {
		return 0, nil
	}
	return wait, refund(ctx, tx, counted)
}

func refund(ctx context.Context, tx Tx, buckets []bucket) error {
	for _, b := range buckets {
		if err := tx.RefundThrottle(ctx, b.name, b.every); err != nil {
			return err
		}
	}
	return nil
}

// begin asks the throttle, waits for a place to hash, and counts the attempt, in this order: a full bucket costs one read and
// no place, and attempts that wait count against nobody. It fails with [ErrThrottled] or [ErrBusy]. The caller
// calls leave when the attempt is over, so an address never has more attempts under way than places.
func (s *Service) begin(ctx context.Context, t try) (a attempt, leave func(), err error) {
	if err := s.refuseIfFull(ctx, t); err != nil {
		return attempt{}, nil, err
	}
	leave, err = s.places.enter(ctx, t.source())
	if err != nil {
		s.o.Tried(string(t.action), outcomeBusy)
		return attempt{}, nil, err
	}
	a, err = s.count(ctx, t)
	if err != nil {
		leave()
		return attempt{}, nil, err
	}
	return a, leave, nil
}

// refuseIfFull refuses what count would refuse now, without a transaction.
func (s *Service) refuseIfFull(ctx context.Context, t try) error {
	if !s.o.Throttle {
		return nil
	}
	buckets := t.buckets()
	names := make([]string, len(buckets))
	for i, b := range buckets {
		names[i] = b.name
	}
	virtual, err := s.o.Store.ThrottledAt(ctx, names)
	if err != nil {
		return err
	}
	now := s.o.Now()
	var wait time.Duration
	for _, b := range buckets {
		if left := b.wait(virtual[b.name], now); left <= b.every { // a longer one is of a clock that was ahead, and count knows
			wait = max(wait, left)
		}
	}
	return s.refuse(t, wait)
}

// count counts the attempt, or refuses it.
func (s *Service) count(ctx context.Context, t try) (attempt, error) {
	if !s.o.Throttle {
		return attempt{}, nil
	}
	a := attempt{buckets: t.buckets(), known: t.known()}
	var wait time.Duration
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		wait, err = take(ctx, tx, s.o.Now(), a.buckets)
		return err
	})
	if err != nil {
		return attempt{}, err
	}
	return a, s.refuse(t, wait)
}

// refuse is the answer to an attempt that has to wait.
func (s *Service) refuse(t try, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	s.o.Tried(string(t.action), outcomeThrottled)
	return throttled(wait)
}

// Outcomes of attempts, as [Options.Tried] gets them.
const (
	outcomeRight     = "right" // of passwords alone, as is wrong
	outcomeWrong     = "wrong"
	outcomeThrottled = "throttled"
	outcomeBusy      = "busy"
)

// TriedOutcomes lists the actions and outcomes that [Options.Tried] can get, for metrics.
func TriedOutcomes() (actions, outcomes []string) {
	return []string{string(guessPassword), string(registration), string(useReset), string(guessCode), string(passkeySignIn)}, []string{outcomeRight, outcomeWrong, outcomeThrottled, outcomeBusy}
}

// throttled asks to wait, in seconds under two minutes and else in minutes, rounded up.
func throttled(wait time.Duration) error {
	count, unit := (wait+time.Second-1)/time.Second, "seconds"
	switch {
	case count == 1:
		unit = "second"
	case count >= 120:
		count, unit = (wait+time.Minute-1)/time.Minute, "minutes"
	}
	return ErrThrottled.After(wait).WithMessage("Too many attempts. Try again in %d %s.", count, unit)
}

// forgive gives the attempt back, because its secret was right. A known device's earlier failures are forgotten
// with it; those of unknown devices stay counted, because they may be an attacker's.
func (a attempt) forgive(ctx context.Context, tx Tx) error {
	if !a.known {
		return refund(ctx, tx, a.buckets)
	}
	for _, b := range a.buckets {
		if err := tx.ForgetThrottle(ctx, b.name); err != nil {
			return err
		}
	}
	return nil
}
