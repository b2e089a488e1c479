// Package connect decides connects: it opens the sealed requests of servers,
// judges a verified bearer against what the authority holds, and answers with a
// signed user or a signed refusal.
//
// A request passes through it in this order, each step a type of its own:
//
//	Queue    stamps a request with its deadline, and hands out what is still in time
//	Opener   opens and verifies it; a fault here means silence
//	         (the bearer in it is verified by the identity room, the records are
//	         read by the reader)
//	Judge    bearer + records + now → Admission, or an entry of the catalogue
//	Profiles what an admitted connection may publish and subscribe
//	Answerer mints, signs and seals the answer
//	Denials  keeps why a connect was not admitted
//
// Which refusals are answered, and which are met with silence, is KindOf.
//
// What may come in: bytes from servers, verified bearers, values of messages. What
// may not: connections, actors, files, and any clock but the one passed in. All of
// it is safe for concurrent use, keeps its keys ready, and allocates no more for a
// request than the request's own bounded size warrants.
package connect
