package ledger

// Scope names what a change decides on. The store loads and locks it for many changes at once, which then decide in
// memory and are written together. A change may touch nothing else.
type Scope struct {
	// Owner is the user whose journal and current bank account are loaded, and whose idempotency key if Key is set. Owner may be
	// empty if Payout is set.
	Owner string
	// Payout is the id of a payout that the change loads and moves. The journal of its seller is loaded as well.
	Payout string
	// Key is the owner's idempotency key that the change uses.
	Key string
	// Session is a session that the change asks about. Nothing keeps it from ending meanwhile.
	Session string
	// ReadsPause says that the change asks whether payouts are paused. If Payout is set too, the pause can't change until the
	// transaction ends, and the entries about the payout's bank account are loaded.
	ReadsPause bool
}
