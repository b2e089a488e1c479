package presence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cotal-ai/authplane/actors/internal/sweep"
	"github.com/cotal-ai/authplane/messages"
)

// Bounds of what one process may say of itself.
const (
	maxConnections = 128
	maxWord        = 16 << 10
)

// version is the form of the words; others are not understood.
const version = 1

// word is what a process says of itself. Who says it is the subject's to tell,
// which the server lets nobody else publish to.
type word struct {
	Version int `json:"v"`
	// Life tells one life of a presence from the next, and Count its words, from 1:
	// so a process knows which of its own words came back.
	Life  string `json:"life"`
	Count uint64 `json:"n"`
	// Connections are what the others drop when it falls silent.
	Connections []messages.ConnectionRef `json:"connections"`
	// Leaving says that there will be no more words.
	Leaving bool `json:"leaving"`
}

// parse reads a word; whatever is not exactly of its form is refused.
func parse(data []byte) (word, error) {
	if len(data) > maxWord {
		return word{}, errors.New("it is too long")
	}
	var w word
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return word{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return word{}, errors.New("something follows it")
	}
	switch {
	case w.Version != version:
		return word{}, fmt.Errorf("it is of form %d", w.Version)
	case w.Life == "" || w.Count == 0:
		return word{}, errors.New("it does not say which word it is")
	case len(w.Connections) > maxConnections:
		return word{}, errors.New("it lists too many connections")
	}
	for _, c := range w.Connections {
		if !sweep.IsServerID(c.ServerID) || c.ClientID == 0 {
			return word{}, errors.New("it lists what is no connection")
		}
	}
	return w, nil
}

func (w word) encode() ([]byte, error) { return json.Marshal(w) }
