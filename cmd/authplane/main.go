// Command authplane is the authority of a NATS account: it runs the service and
// speaks to one that runs. `authplane help` lists its verbs.
package main

import "os"

func main() {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	os.Exit(a.run(os.Args[1:]))
}
