// Package trust holds the keys of a space: how they are made, once, and how the
// daemon comes by the part of them that it may hold.
//
// A trust chain is an operator and five accounts: SYS, and for the space AUTH
// (the quarantine in which connects are decided), DATA (the principals), CTRL
// (the authority's own streams; only this service's processes hold users in it)
// and SVC (services and controllers, which reach the control rail in CTRL through
// an import that names the caller).
//
// Create writes it below one directory:
//
//	<dir>/
//	  nats-server.conf      what a nats-server starts with: operator, accounts, JetStream
//	  sentinel.creds        0644: the powerless user that carries a bearer to the callout
//	  jetstream/            where the server stores its streams; made by the server
//	  secrets/      0700    all that the daemon reads, files 0600, it never writes here
//	    chain.json            public: the space, its installation id and every JWT of the chain
//	    auth-signing.seed     signing keys of AUTH, DATA, CTRL and SVC
//	    data-signing.seed
//	    ctrl-signing.seed
//	    svc-signing.seed
//	    sys-observer.seed     scoped signing keys of SYS: sweep, and
//	    sys-evictor.seed      kick; neither can sign anything else
//	    callout-1.seed …      the users AUTH exempts from the callout
//	    presence.seed
//	    xkey.seed             opens the connect requests sealed to us
//	    bearer-keys.json      the keyring that signs bearers
//	    owner.secret          what derives an owner from a provider's subject
//	  offline/      0700    to be carried away and kept offline; the daemon never reads it
//	    operator.seed, operator-signing.seed
//	    sys.seed, auth.seed, data.seed, ctrl.seed, svc.seed
//	    break-glass-data.creds, break-glass-sys.creds
//
// The parts are prepared aside and moved into place: offline/ first, which only
// one of several racing makers can do, and secrets/ last. So a chain is whole
// exactly when secrets/ is there.
//
// Material is what the daemon holds of it after Load. Minting goes through it,
// because one rule cannot be left to the server: nobody but the listed callout
// users ever gets a user in AUTH, and no principal gets one anywhere but in DATA.
//
// This room knows nkeys, JWTs and files. It opens no connection and knows no
// actor.
package trust
