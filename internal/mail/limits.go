package mail

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
)

// limit bounds mails: burst at once, and one more each time that a share of the period has passed. It is kept as one
// instant in the database, so that a restart forgives nothing and all instances count together.
type limit struct {
	name   string
	burst  int
	period time.Duration
}

func (l limit) cost() time.Duration { return l.period / time.Duration(l.burst) }

// limitsOf lists what bounds a mail, in the order in which the buckets are locked.
func limitsOf(m Mail, r rule) []limit {
	to := strings.ToLower(m.To)
	if m.Once {
		return nil
	}
	if r.asked {
		hour := limit{bucketName("asked", r.quota, "address", to) + ":hour", 5, time.Hour}
		day := limit{bucketName("asked", r.quota, "user", m.User) + ":day", 10, 24 * time.Hour}
		if m.First {
			return []limit{hour, day}
		}
		// Per source, so that an attacker who asks first keeps back no mail that the owner asks for in the same minute.
		return []limit{{bucketName("asked", string(m.Data.Kind()), to, sourceOf(m.Data)) + ":minute", 1, time.Minute}, hour, day}
	}
	address, user := bucketName(r.quota, "address", to), bucketName(r.quota, "user", m.User)
	limits := []limit{{address + ":hour", 20, time.Hour}, {address + ":day", 60, 24 * time.Hour}}
	if m.User != "" {
		limits = append(limits, limit{user + ":hour", 20, time.Hour}, limit{user + ":day", 60, 24 * time.Hour})
	}
	return limits
}

// sourceOf is the address that asked for a mail, or "".
func sourceOf(d Data) string {
	if asked, is := d.(interface{ source() string }); is {
		return asked.source()
	}
	return ""
}

// bucketName hides whose bucket it is.
func bucketName(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "mail:" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// take counts one mail against all limits, or against none if one of them is reached.
func take(ctx context.Context, tx Tx, now time.Time, limits []limit) (bool, error) {
	for i, l := range limits {
		_, counted, err := tx.TakeThrottle(ctx, l.name, now, l.cost(), time.Duration(l.burst)*l.cost())
		if err != nil {
			return false, err
		}
		if counted {
			continue
		}
		for _, before := range limits[:i] {
			if err := tx.RefundThrottle(ctx, before.name, before.cost()); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	return true, nil
}
