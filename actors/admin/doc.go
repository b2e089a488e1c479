// Package admin is the actor that serves the control rail, as the NATS micro service
// `auth`: how what a service of another account asks reaches the plane's actors. What
// is answered is package rail.
//
// It serves only while this process holds the plane, and is opened anew when that is
// fenced. It remembers nothing: an operation that was asked for goes on whatever
// becomes of a life, and whoever asks again joins it.
package admin
