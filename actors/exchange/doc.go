// Package exchange is the actor that serves this space's HTTP faces: it binds
// their addresses, and gives them back in order. What the faces answer is package
// face; here is when they live, and how what they ask reaches the plane's actors.
//
// A life that dies, however it dies, closes its listeners and connections, and the
// next one binds the addresses the first one had.
package exchange
