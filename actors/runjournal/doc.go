// Package runjournal is the journal of a run: what the driver of a job writes down
// before it goes on, so that another driver can go on from there when it dies.
//
// A run has one subject in one stream of the account DATA, and one writer at a time.
// Each record is appended at the sequence that its writer saw last, so the stream is
// the judge: a driver that was followed by another one cannot append any more, however
// late it wakes up.
//
// A driver takes the journal: it replays what is there, and appends an activation, in
// which it says up to where it replayed. Only then it goes on. What the former driver
// appends in between makes that activation fail, and the replay begins anew; what it
// appends afterwards fails.
//
// The stream is the space's, and no principal can be granted its subjects. A service
// that answers requests can be made to answer there, however: what it says is no record,
// and the run is then not resumed.
//
// A journal that is not whole is never resumed: one with a hole, without its beginning,
// or shorter than somebody knows it to be.
//
// The package knows nothing else of this module but the words of its errors, and may be
// used by any program.
package runjournal
