// Package face holds what this service shows over HTTP: the loopback face, which
// the operator's tools and the exchange of proofs use, and the public face, which
// clients elsewhere use. A face is an http.Handler with a lifecycle; it binds no
// address and knows no actor, no broker and no row.
//
// What may come in: small interfaces (Authority, Control, Provider, Signer) and
// values. What may not: anything that dials, the supervisor, protoactor.
//
// Reading order: face.go (what a face is, and the one path every request takes),
// loopback.go and public.go (the routes), bridge.go (how a proof becomes a
// bearer), answer.go (how we say yes and no). The rest is one topic a file.
package face
