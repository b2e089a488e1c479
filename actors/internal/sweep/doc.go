// Package sweep asks the servers who they are and which connections they have,
// and has them drop connections. Everything it says of them rests on answers that
// were checked field by field; whoever did not answer, or not whole, leaves a
// doubt, and where there is a doubt nobody is said to be gone.
//
// What may come in: questions to the system account's services, and what their
// answers prove. What may not: connecting (that is the broker room's), when to
// sweep and whom to evict, and the ledger.
package sweep
