// Package identity turns proofs into names and back: it derives owners, signs and
// verifies bearers, verifies identity providers' tokens, and makes and checks
// machine secrets and capabilities.
//
// What may come in: text presented by strangers, which is verified here and
// nowhere else, and the secret documents of a space. What may not: the broker,
// the actors, files, and any decision about what a verified principal may do. A
// bearer that verifies here says who is asking, never that they are still granted
// anything.
//
// Files: owner.go, keyring.go and its rotation, bearer.go (what a bearer says),
// sign.go and verify.go, provider.go with its keys and fetching, machine.go,
// strict.go (the JSON reader that all of them share).
package identity
