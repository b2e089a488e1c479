// Package run decides about runs: who may start one, that it is started once, what it
// may do at the most, who drives it next, and that nothing is issued for it any more.
//
// What is decided stands in the records stream, in rows that are created and never
// written again:
//
//	admission.<endpoint>.<run>          who started it, and its ceiling
//	request.<endpoint>.<request>        what a request was used for
//	revoked.<endpoint>.<run>            that it was revoked
//	attempt.<endpoint>.<run>.<attempt>  the keys of one driver, before anything is signed
//
// So the same question has the same answer, however often it is asked and by whichever
// process it is answered; and of two that contradict each other one finds the other's.
package run
