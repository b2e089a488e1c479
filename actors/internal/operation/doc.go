// Package operation takes a takeover or a retirement from the step it has reached to
// its end: it revokes what was issued, has everybody evicted, the accepted work
// drained, and commits.
//
// Each step is durable before the next begins, and each may be repeated: whoever
// resumes repeats the one that was not recorded, and no other. What cannot be proved
// ends the run with an error and the record where it is.
package operation
