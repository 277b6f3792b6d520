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
func limitsOf(user, to string, r rule) []limit {
	class := "notice"
	perHour, perDay := 20, 60
	if r.asked {
		class, perHour, perDay = "asked", 5, 15
	}
	address := bucketName(class, "address", strings.ToLower(to))
	limits := []limit{{address + ":hour", perHour, time.Hour}, {address + ":day", perDay, 24 * time.Hour}}
	if user != "" {
		account := bucketName(class, "user", user)
		limits = append(limits, limit{account + ":hour", perHour, time.Hour}, limit{account + ":day", perDay, 24 * time.Hour})
	}
	return limits
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
