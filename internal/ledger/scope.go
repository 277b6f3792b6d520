package ledger

// Scope names what a change decides on. The store loads and locks it for many changes at once, which then decide in
// memory and are written together. A change may touch nothing else.
type Scope struct {
	// Owner is whose journal the change appends to. It may be empty where Payout tells it.
	Owner string
	// Payout is the id of a payout that the change loads and moves.
	Payout string
	// Key is the owner's idempotency key that the change uses.
	Key string
	// Pause says that the change asks whether payouts are paused. If it names a payout, it is about to send it: a pause waits until
	// the change has ended, and the change may ask for the entries about the payout's bank account.
	Pause bool
}
