// Package runs answers the questions about runs: controllers' and operators'.
//
// Each is one or more calls with an actor of its own, which may write the rows of that
// one run for a minute, or read its journal; see packages operations and run. What is
// signed is signed behind them, once the rows stand that say so.
//
// The observer, where there is one, is an actor of its own that stands beside them: it
// hears the requests that are made, and is asked whether it heard one.
package runs
