package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// bucket bounds how often something may be tried: burst times at once, and one more time every so
// often. It is kept as one instant (GCRA), in the database, so that a restart forgives nothing and
// all instances count together. An attempt is counted before it is made and taken back when it was
// right: attempts at once can't slip past the count.
type bucket struct {
	name  string
	burst int
	every time.Duration
}

// All devices that are unknown to an account share ten tries; an address may try fifty times
// over all accounts. A device that signed in to the account before has tries of its own, bound by
// nothing that others do, so that an attack elsewhere locks nobody out.
func accountBucket(email string) bucket {
	return bucket{bucketName("account", EmailKey(email)), 10, 90 * time.Second}
}

func addressBucket(d Device) bucket {
	return bucket{bucketName("address", d.key()), 50, 20 * time.Second}
}

func knownDeviceBucket(email string, d Device) bucket {
	return bucket{bucketName("device", EmailKey(email), d.key()), 20, time.Minute}
}

func registrationBucket(d Device) bucket {
	return bucket{bucketName("register", d.key()), 500, 2 * time.Second}
}

// bucketName hides whom a bucket is about: an e-mail address tried need not be one of ours.
func bucketName(kind string, about ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(about, "\x00")))
	return kind + ":" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// room is how far ahead of now a bucket's virtual time may be.
func (b bucket) room() time.Duration { return time.Duration(b.burst) * b.every }

// take counts one attempt against each bucket, or against none if one of them is full. It returns how
// long to wait until all have room again; zero means that the attempt was counted.
func take(ctx context.Context, tx Tx, now time.Time, buckets ...bucket) (time.Duration, error) {
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
		wait = max(wait, virtual.Add(b.every-b.room()).Sub(now))
	}
	if wait == 0 {
		return 0, nil
	}
	return wait, releaseMemory(ctx, tx, counted)
}

func releaseMemory(ctx context.Context, tx Tx, buckets []bucket) error {
	for _, b := range buckets {
		if err := tx.RefundThrottle(ctx, b.name, b.every); err != nil {
			return err
		}
	}
	return nil
}

// attempt is one try at signing in.
type attempt struct {
	// known says that the device signed in to the account before.
	known   bool
	buckets []bucket
	// wait is zero if the attempt was counted, and else how long until one would be.
	wait time.Duration
}

// countAttempt counts a try at signing in before the password is looked at. An unknown e-mail address
// is counted like any other.
func (s *Service) countAttempt(ctx context.Context, userID string, c Credentials) (attempt, error) {
	if !s.o.Throttle {
		return attempt{}, nil
	}
	var a attempt
	err := s.o.Store.InTx(ctx, func(tx Tx) (err error) {
		a = attempt{buckets: []bucket{accountBucket(c.Email), addressBucket(c.Device)}}
		a.known, err = tx.KnownDevice(ctx, userID, c.Device.key())
		if err != nil {
			return err
		}
		if a.known {
			a.buckets = []bucket{knownDeviceBucket(c.Email, c.Device)}
		}
		a.wait, err = take(ctx, tx, s.o.Now(), a.buckets...)
		return err
	})
	return a, err
}

// refused reports whether the attempt ends before the password is looked at. A known device's never
// does: there, a full bucket only turns a wrong password's answer into "wait".
func (a attempt) refused() bool { return a.wait > 0 && !a.known }

// wrong is the answer to a wrong password.
func (a attempt) wrong() error {
	if a.wait > 0 {
		return throttled(a.wait)
	}
	return ErrCredentials
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

// forgive takes the attempt back, its password having been right. A known device's earlier failures
// are forgotten with it; those of unknown devices stay counted, for they may be an attacker's.
func (a attempt) forgive(ctx context.Context, tx Tx) error {
	if !a.known {
		return releaseMemory(ctx, tx, a.buckets)
	}
	for _, b := range a.buckets {
		if err := tx.ForgetThrottle(ctx, b.name); err != nil {
			return err
		}
	}
	return nil
}
