// Package demo tells the whole story of a space in one go and checks every claim it
// makes: people log in and talk, one cannot listen to another, a revoked one is out, a
// retired one is proved gone, every actor dies once and comes back, and a close leaves
// nothing behind.
//
// It sees a service as its users do, over the loopback face and the broker; only
// killing, watching and closing go through the handle. story.go is the table of
// contents.
package demo
