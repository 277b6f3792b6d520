// Package proof lets journals prove themselves.
//
// Each seller's entries form a chain of hashes (package ledger). A [Checkpoint] says, in one hash under the service's
// signature, where all journals stood: the hash is the root of a Merkle tree whose leaves are the journals. A
// [Statement] is a seller's entries of a period with the proof that a checkpoint holds them. Anybody who has the
// public key can check it offline.
//
// The formats are specified in docs/statements.md, so that others can check them with programs of their own.
package proof
