// Package life keeps one service alive for as long as its process should live, and
// ends it in order: it turns signals, the failure of the service and the wishes of
// the service manager into one close with one deadline.
//
// It is the only place of the project that knows of signals. It starts nothing and
// never exits the process.
package life
