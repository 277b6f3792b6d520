package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Check is a promise that a run holds the service to. The promises about the ledger itself are the audit's.
type Check struct {
	Name    string
	Promise string
}

var (
	paidOnce              = Check{"paid-once", "The gateway pays for a payout at most once."}
	paidExactly           = Check{"paid-exactly", "What the gateway pays for a payout is its amount less its fee."}
	completedIsPaid       = Check{"completed-is-paid", "A payout is completed only when the gateway has paid it."}
	refundedStaysEnded    = Check{"refunded-stays-ended", "When a payout is refunded to the balance, the gateway has no transfer of it that could still pay."}
	onlyOrdersPaid        = Check{"only-orders-are-paid", "The gateway makes a transfer only for a payout that the ledger calls sent."}
	allImported           = Check{"all-imported", "Once the gateway was asked, every transfer that it made for us is a payout in the ledger."}
	unmatchedListed       = Check{"unmatched-transfers-are-listed", "A transfer under a reference of ours that no payout can be made of is listed once, until an admin resolves it, and moves no money."}
	endsAsAtGateway       = Check{"ends-as-at-the-gateway", "In the end a payout is completed if the gateway has paid it and kept it paid, and has failed, was returned or cancelled if not."}
	allEnd                = Check{"all-end", "When all is quiet, every payout has ended, or is in manual review because its key ran out or a backup was restored."}
	endsAreFinal          = Check{"ends-are-final", "A payout that has ended stays so; only a completed one may be returned."}
	movesAreCAS           = Check{"moves-begin-where-it-was", "A change of a payout's state begins at the state that it had."}
	rowsMatchJournal      = Check{"rows-match-the-journal", "After every transaction its entries are in the journal, and balances, payouts and bank accounts are what their entries fold to."}
	entriesAreTrue        = Check{"entries-are-true", "Each entry moves what was sold, refunded, asked for or paid, balances are the sum of that, and what left through the gateway is what the gateway's record has."}
	neverGoesNegative     = Check{"requests-never-go-negative", "A request takes no more than is available."}
	refusalsAreTrue       = Check{"refusals-are-true", "A request is refused for its amount only if the balance is lower."}
	feesAsAgreed          = Check{"fees-as-agreed", "A payout's fee is the one that was agreed."}
	oneAnswerPerKey       = Check{"one-answer-per-key", "All requests under one idempotency key get one answer and make one payout."}
	answersAreTrue        = Check{"answers-are-true", "What was answered is in the ledger."}
	answersAreKnown       = Check{"answers-are-known", "Every answer is a success or a failure that a caller may see."}
	othersSeeNothing      = Check{"other-sellers-see-nothing", "No user sees or cancels another seller's payout."}
	readsAgree            = Check{"reads-agree", "What a seller is shown is what the ledger has."}
	oncePerID             = Check{"once-per-id", "A sale, a refund or an adjustment that is reported again changes nothing."}
	releasedWhenDue       = Check{"released-when-due", "A sale is released when its holding period is over, and not before."}
	ordersToLetter        = Check{"orders-to-the-letter", "An order is sent again with the same bytes under the same key."}
	oneKeyPerPayout       = Check{"one-key-per-payout", "A payout is only ever ordered under its own id as the key."}
	ordersSound           = Check{"orders-are-sound", "An order is one that the gateway takes: its rail, its amount and all else are within the gateway's rules."}
	keysAreAlive          = Check{"keys-are-alive", "An order is not sent again after the gateway has forgotten its key."}
	sentAlone             = Check{"sent-alone", "While an order is being sent nobody else sends it, unless its lease has run out or a notification has come."}
	claimedFirst          = Check{"claimed-before-sent", "An order is sent only by whom the ledger has just let, for as long as a lease lasts."}
	sendingsTimed         = Check{"sendings-are-timed", "When an order was sent is in the ledger before it is, and stays there until nothing of it can have left."}
	nightsReconciled      = Check{"nights-are-reconciled", "Each day's statement is reconciled by itself when the day is over, and none is left out."}
	checkpointsMade       = Check{"checkpoints-are-made", "A checkpoint of all journals is made by itself, again and again."}
	reviewedForCause      = Check{"reviewed-for-a-cause", "A payout goes to manual review only by an admin's decision, because its key expired, or because it may pay the same money again."}
	doubtsLast            = Check{"doubts-last", "A payout that may be of money that was paid already stays marked so while its seller's balance is negative."}
	askedBefore           = Check{"asked-before-refund", "A payout that was sent and rejected is refunded only after the gateway was asked again, and one that may have been sent just before a start only when that would have arrived."}
	endsWatched           = Check{"ends-are-watched", "A payout in manual review is polled again, and one that was sent and has ended is as long as banks may change its end."}
	notificationsFollowed = Check{"notifications-are-followed", "A payout that the gateway sends a notification about is polled without delay."}
	queuedCancellable     = Check{"queued-can-be-cancelled", "A payout that the gateway has queued can be cancelled."}
	endsTellWhy           = Check{"ends-tell-why", "A payout that has failed, was returned or is in manual review tells its seller why, and one that is paid has nothing to tell."}
	timesKept             = Check{"times-are-kept", "When a payout was taken on, paid and over stays as it was."}
	leasesHold            = Check{"leases-hold", "What one worker has leased, no other worker gets before the lease expires or a notification arrives."}
	nothingSpins          = Check{"nothing-spins", "Nothing is done over and over without end: a payout is taken up a few thousand times at most, and what a minute may hold is bounded."}
	statementAgrees       = Check{"statement-agrees", "The gateway's statement and the ledger account for each other to the last minor unit, and faults explain each difference."}
	misstatementsFound    = Check{"misstatements-are-found", "Each false line of the gateway's statement is found as a difference of its kind, until the line is corrected or an admin resolves it."}
	askedFirst            = Check{"asked-first", "After a start nothing is sent before the gateway has listed what it knows."}
	ownGateway            = Check{"own-gateway", "A payout is requested for the gateway that new payouts go to. It is sent to that gateway alone, and no other is asked about it."}
	waitsForGateway       = Check{"waits-for-its-gateway", "A payout whose gateway is not configured waits and tells why, until that gateway is configured again."}
	forgeriesRefused      = Check{"forgeries-are-refused", "A webhook with a wrong signature is refused."}
	onlyRightAccount      = Check{"own-account", "A payout goes to the bank account that was the seller's verified one when it was asked for."}
	importedAsItWas       = Check{"imported-as-it-was", "A payout that was lost and found again is of the same seller, account, amount and fee, and went the same way."}
	windowIsKept          = Check{"the-window-is-kept", "No payout is sent before the time in which it can be cancelled is over."}
	verifiedIsTrue        = Check{"verified-is-confirmed", "A bank account counts as verified or as rejected only if the gateway said so, or an admin decided so, and a verification goes on until it has ended."}
	failuresHaveCause     = Check{"failures-have-a-cause", "A payout fails only if the gateway refused it or can't pay it any more, its account was rejected, it would pay the same money again, or a person gave it back."}
	waitingIsUnsent       = Check{"waiting-is-unsent", "A payout goes back to waiting only if the gateway has no transfer of it, or has turned it away all the same."}
	waitsAsAsked          = Check{"waits-as-asked", "When the gateway asks to be left alone for a while, nothing is sent again before that is over."}
	listsReadWhole        = Check{"lists-are-read-whole", "A list of the gateway's is read page by page to its end, none twice and none left out."}
	writtenAsMeant        = Check{"rows-are-as-written", "What a transaction wrote is in the ledger as it was written, and one that was refused or undone has left no trace."}
	discrepanciesKept     = Check{"discrepancies-are-kept", "A discrepancy moves no money, and is recorded until an admin resolves it. One that tells of money that left for a payout that ended unpaid freezes its seller's payouts."}
	referencesKept        = Check{"references-are-kept", "A payout keeps the gateway's and the bank's reference, and one that is paid has those that the gateway tells."}
	oldestFirst           = Check{"longest-due-first", "Of what is due, what has been so longest is taken first."}
	holdsKept             = Check{"holds-are-kept", "After a verified bank account was replaced or a forgotten password was set, no payout is requested until the cool-down is over or an admin has lifted it."}
	stopsKept             = Check{"stops-are-kept", "While an admin has frozen a seller's payouts or paused all, none is requested and none is sent or sent again; what waited is due when they are resumed."}
	proofsKept            = Check{"proofs-are-kept", "Above the limit, no payout is requested in a session without a fresh proof for this amount and bank account, and each proof makes one payout."}
	minimumKept           = Check{"minimum-is-kept", "No payout is of less than the minimum."}
	numbersSecret         = Check{"numbers-stay-secret", "No full account number is in a log, in an error, in an order, or unencrypted in the ledger."}
	decisionsKept         = Check{"decisions-are-on-record", "What an admin decided is on record with the reason, and nothing is that was not done."}
	tamperingFound        = Check{"tampering-moves-no-money", "While stored money is tampered with, none of it moves and the audit reports it; once it is repaired, everything continues."}
	statementsProve       = Check{"statements-prove-themselves", "A statement tells a seller's journal entries, and can be checked with the public key alone."}
	refundsAreDue         = Check{"refunds-are-due", "A refund is taken if as much is left of its sale, whatever its seller has, and else refused."}
	fewRegistrations      = Check{"registrations-are-few", "A seller registers ten bank accounts at once at most, and ten more in a day; fewer are not too many."}
	verificationsFollowed = Check{"verifications-are-followed", "The gateway is asked about a verification that is pending at waits that grow to an hour, for a week, and one that fails is tried twelve times; one whose gateway is not configured begins again at the current gateway; then the account is in review, and a seller whose account is not verified sees why."}
	arrivesAsTold         = Check{"arrives-as-estimated", "A payout goes by the rail that its net amount and the banks' hours call for, and is said to arrive when that rail gets there."}
	timesRight            = Check{"times-are-right", "What the ledger says of when something happened is when it did, by the clock of the instance that wrote it."}
	feedTellsAll          = Check{"feed-tells-all", "The feed has each seller's registration and each event of each journal once, in the journal's order, numbered without a gap, and a reader misses none."}
	deliveriesTrue        = Check{"deliveries-are-true", "A webhook delivery is of an event of the feed that its endpoint wants, is signed with its secret, and goes to no endpoint that is disabled."}
	deliveriesArrive      = Check{"deliveries-arrive", "Each event that a webhook endpoint wants is delivered, or will be, or was given up after all attempts; what counts as delivered was taken."}
	attemptsSpaced        = Check{"attempts-are-spaced", "A webhook delivery that fails is tried again after the waits that are documented, ten times in all, and a receiver is left alone as long as it asks, up to an hour."}
	endpointsDisabled     = Check{"endpoints-are-disabled", "A webhook endpoint is disabled by 410, or when it has taken nothing for five days, and not before; admins are mailed; once it is enabled again it begins from nothing, and what waited is sent."}
	adjustmentsDue        = Check{"adjustments-are-due", "An adjustment is made whatever its seller has."}
	sellersTold           = Check{"sellers-are-told", "A seller is mailed when a payout has failed or was returned, when another bank account replaced theirs, when a forgotten password was set, and when their payouts were frozen or resumed; and about nothing that did not happen."}
	mailsSent             = Check{"mails-are-sent", "A queued mail is sent to its address, and again only if the answer or the worker was lost. One that is not taken is tried again after growing waits, until it is too old. A mail that has ended keeps no address."}
	actorsTrue            = Check{"actors-are-true", "Each entry names who caused it: the seller, an admin, a server of the marketplace, the gateway or the service."}
	deletionsWait         = Check{"deletions-wait", "A seller who has money or a payout under way can't delete the account, and once it is deleted no sale is recorded for it and no bank account is left to pay to."}
	takeoversEndAccess    = Check{"takeovers-end-access", "When the owner of an e-mail address gets the account that another person registered with it, nothing of theirs gets in any more, what was not sent to their bank account is not, and the money stays for the cool-down."}
	accountsKept          = Check{"accounts-are-kept", "A session ends when its user or a change of the password ends it, and when a used refresh token comes back. Each mailed link, code, proof and second step is good once and for a while, and guesses are few."}
	doorsKept             = Check{"doors-are-kept", "No route of the API lets in who may not call it: each service key opens what its scopes name, until it expires or is revoked, and what is for admins is closed to sellers."}
	conditionsHold        = Check{"conditions-hold", "A write whose condition does not hold changes nothing: a payout that is in another state, an account that is not as it was seen, a sale that is released."}
	nobodyOverpaid        = Check{"nobody-is-overpaid", "Nobody ends with less than nothing but for refunds, adjustments and payouts in manual review."}
	datastoreReadable     = Check{"datastore-is-readable", "The ledger can be opened, read and audited."}
	nothingPanics         = Check{"nothing-panics", "No part of the service panics."}
)

// Checks lists the promises that a run checks beside those of the audit.
func Checks() []Check {
	return []Check{
		paidOnce, paidExactly, completedIsPaid, refundedStaysEnded, onlyOrdersPaid, allImported, unmatchedListed, endsAsAtGateway, allEnd,
		endsAreFinal, movesAreCAS, rowsMatchJournal, entriesAreTrue, neverGoesNegative, refusalsAreTrue, feesAsAgreed, oneAnswerPerKey,
		answersAreTrue, answersAreKnown, othersSeeNothing, readsAgree, oncePerID, releasedWhenDue, ordersToLetter,
		oneKeyPerPayout, ordersSound, keysAreAlive, sentAlone, claimedFirst, sendingsTimed, askedBefore, endsWatched, notificationsFollowed, queuedCancellable, endsTellWhy, timesKept, reviewedForCause, doubtsLast, leasesHold, nothingSpins, statementAgrees, misstatementsFound, askedFirst, ownGateway, waitsForGateway, forgeriesRefused, onlyRightAccount,
		importedAsItWas, windowIsKept, verifiedIsTrue, failuresHaveCause, waitingIsUnsent, waitsAsAsked, listsReadWhole,
		writtenAsMeant, discrepanciesKept, referencesKept, oldestFirst, minimumKept, holdsKept, stopsKept, proofsKept, numbersSecret, decisionsKept,
		tamperingFound, statementsProve, checkpointsMade, nightsReconciled, fewRegistrations, verificationsFollowed, arrivesAsTold, timesRight, refundsAreDue, adjustmentsDue, feedTellsAll, deliveriesTrue, deliveriesArrive, attemptsSpaced, endpointsDisabled, sellersTold, mailsSent, actorsTrue, deletionsWait, takeoversEndAccess, accountsKept, doorsKept, conditionsHold, nobodyOverpaid, datastoreReadable, nothingPanics,
	}
}

// Violation is a promise that was broken.
type Violation struct {
	Check
	// Detail is what was found.
	Detail string
	// At is when, and Day the day of the run.
	At  time.Time
	Day int
	// Events are what happened last, to the payout or seller in question and around it.
	Events []string
	// Seed and Sellers are those of the marketplace in which it happened; a run of them alone shows it again.
	Seed    uint64
	Sellers int
}

// broken notes the first violation, and everything stops. It may be called by anybody but a closure of a
// transaction.
func (m *market) broken(c Check, subject, detail string) {
	if m.violation != nil || m.ctx.Err() != nil { // what is broken off breaks promises
		return
	}
	m.violation = &Violation{
		Check: c, Detail: detail, At: m.clock(), Day: 1 + int(m.now/(24*time.Hour)), Events: m.log.tell(subject), Seed: m.o.Seed, Sellers: m.o.Sellers,
	}
}

// assert checks a promise, and counts the check.
func (m *market) assert(c Check, so bool, subject, format string, args ...any) bool {
	m.tally.checks++
	if !so {
		m.broken(c, subject, fmt.Sprintf(format, args...))
	}
	return so
}

// log is the last events of a run.
type log struct {
	events [1 << 13]happened
	n      int
}

// happened is an event as it is reported when a check fails.
type happened struct {
	at      time.Time
	who     string
	what    string
	about   string
	subject string // a seller or payout beside the one that it is about
}

// note puts down what happened.
func (m *market) note(about, subject, what string) {
	who := "world"
	if m.current != nil {
		who = m.current.name
	}
	m.log.events[m.log.n%len(m.log.events)] = happened{m.clock(), who, what, about, subject}
	m.log.n++
}

// Limits of the report: events of the subject, and all events.
const (
	maxAboutSubject = 60
	maxAboutAll     = 25
)

// tell writes the last events about a subject, and then the last of all.
func (l *log) tell(subject string) []string {
	var about, all []string
	for i := l.n - 1; i >= max(0, l.n-len(l.events)); i-- {
		e := l.events[i%len(l.events)]
		line := strings.TrimSpace(fmt.Sprintf("%s  %-28s %s %s", e.at.Format("2006-01-02 15:04:05.000"), e.who, e.what, e.about))
		if subject != "" && (e.about == subject || e.subject == subject) && len(about) < maxAboutSubject {
			about = append(about, line)
		}
		if len(all) < maxAboutAll {
			all = append(all, line)
		}
	}
	slices.Reverse(about)
	slices.Reverse(all)
	if len(about) > 0 {
		all = slices.Concat([]string{"about " + subject + ":"}, about, []string{"the last of all:"}, all)
	}
	return all
}
