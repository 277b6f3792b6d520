// Package proof lets books prove themselves.
//
// Each seller's transfers form a chain of hashes (package ledger). A [Checkpoint] says, in one hash
// under the service's signature, where the chains of all books stood: the hash is the root of a Merkle tree
// whose leaves are the books. A [Statement] is a seller's transfers of a period with the way from them to
// a checkpoint, and whoever has the public key can check it without asking anybody.
//
// The formats are specified in docs/statements.md, so that others can check them with programs of their own.
package proof
