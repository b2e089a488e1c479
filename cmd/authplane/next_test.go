package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every command that a refusal names as the next step exists, with its flags.
func TestEveryNextCommandExists(t *testing.T) {
	catalogue, err := os.ReadFile("../../messages/catalogue.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`authplane [^",]*`).FindAllString(string(catalogue), -1)
	if len(named) < 10 {
		t.Fatalf("the catalogue names only %d commands", len(named))
	}
	root := (&app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, getenv: os.Getenv}).root()
	root.InitDefaultHelpCmd()
	for _, command := range named {
		words := strings.Fields(command)[1:]
		found, _, err := root.Find(words[:1])
		if err != nil || found == root {
			t.Errorf("%q: there is no such verb", command)
			continue
		}
		for _, word := range words[1:] {
			if flag, isFlag := strings.CutPrefix(word, "--"); isFlag && found.Flag(flag) == nil && found.InheritedFlags().Lookup(flag) == nil {
				t.Errorf("%q: there is no such flag", command)
			}
		}
	}
}
