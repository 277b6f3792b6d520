package dashboard

import (
	"time"

	"bursar/internal/payout"
)

// step is one thing that happened to a payout, or is expected to.
type step struct {
	At     time.Time
	Title  string
	Detail string
	Kind   string
	// Expected says that it is yet to come.
	Expected bool
}

// timelineOf tells a payout's story in the seller's words. What happened again and again, such as a
// gateway that was busy, is shown once.
func timelineOf(p payout.Payout, events []payout.StateChange, now time.Time) []step {
	steps := []step{{At: p.RequestedAt, Title: "Requested", Kind: neutral}}
	shown := map[string]bool{}
	for _, e := range events {
		title, kind := wordsFor(e)
		if title == "" || shown[title] {
			continue
		}
		shown[title] = true
		steps = append(steps, step{At: e.At, Title: title, Kind: kind})
	}
	last := &steps[len(steps)-1]
	switch {
	case p.Status() != payout.StatusProcessing:
		last.Detail = endingOf(p)
	case p.ArriveAt.After(now):
		steps = append(steps, step{At: p.ArriveAt, Title: "In your account", Kind: neutral, Expected: true})
	default:
		steps = append(steps, step{
			At: p.ArriveAt, Title: "Taking longer than expected", Kind: busy, Expected: true,
			Detail: "We keep checking until it has arrived or is back in your balance.",
		})
	}
	return steps
}

// wordsFor is the seller's sentence about a change of state; "" if the seller need not know.
func wordsFor(e payout.StateChange) (title, kind string) {
	switch e.To {
	case payout.Waiting:
		if e.From == "" {
			return "", ""
		}
		return "Payment gateway busy: will be sent again", busy
	case payout.Submitting:
		return "Sent to the payment gateway", neutral
	case payout.Unknown:
		return "Waiting for a clear answer from the payment gateway", busy
	case payout.ManualReview:
		return "In review by our team", busy
	case payout.Submitted:
		return "Accepted by the payment gateway", neutral
	case payout.Completed:
		return "Paid to your bank account", good
	case payout.Failed:
		return "Failed", bad
	case payout.Returned:
		return "Returned by the bank", bad
	case payout.Cancelled:
		return "Cancelled", neutral
	default:
		return "", ""
	}
}

// endingOf is what came of the money.
func endingOf(p payout.Payout) string {
	switch p.State {
	case payout.Failed, payout.Returned:
		return "The whole amount is back in your balance."
	case payout.Cancelled:
		return "The whole amount is back in your balance."
	default:
		return ""
	}
}

// isFrozen reports whether a payout that has not ended was changed outside the service, so that its money stays where it is.
func isFrozen(p payout.Payout) bool { return p.IsTampered() && p.Status() == payout.StatusProcessing }

// headlineOf says in a sentence where a payout stands.
func headlineOf(p payout.Payout, now time.Time) string {
	if isFrozen(p) {
		return "This payout is in review: our team is checking it before it goes on. Your money is safe, and there is nothing for you to do."
	}
	if p.IsLate(now) && p.State != payout.ManualReview && !p.IsStopped() {
		return "This payout is late by " + lateBy(now.Sub(p.ArriveAt)) + ". Your money is safe: we keep asking until it has arrived or is back in your balance. " +
			"If you need it soon, contact support with the payout's number."
	}
	switch p.State {
	case payout.Completed:
		return "The money was sent to your bank account."
	case payout.Failed:
		return "It did not reach your bank, and the amount is back in your balance."
	case payout.Returned:
		return "The bank sent it back, and the amount is back in your balance."
	case payout.Cancelled:
		return "It was cancelled, and the amount is back in your balance."
	case payout.Waiting:
		if p.IsStopped() {
			return p.Reason
		}
		if p.Tries == 0 && p.DueAt.After(now) {
			return "It is about to be sent. Until then you can change your mind."
		}
		return "It is about to be sent to the bank."
	case payout.Unknown:
		return "It was sent, and we are waiting for a clear answer. Your money is safe: it is either on its way or still yours."
	case payout.ManualReview:
		return "Our team is finding out whether the bank has it. There is nothing for you to do."
	default:
		return "It is on its way to your bank account."
	}
}

// adviceOn is why a payout failed and what to do, or "".
func adviceOn(p payout.Payout) string {
	if p.Status() != payout.StatusFailed {
		return ""
	}
	if p.Reason == "" {
		return "The bank gave no reason. Check your bank account's details, then request the payout again."
	}
	return p.Reason
}
