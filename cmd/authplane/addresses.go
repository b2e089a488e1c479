package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
)

// addressFile keeps where broker and provider of a development directory listen.
const addressFile = "dev.json"

// addresses is where they listened last; empty before the first time. They stay the
// same from run to run: a client's context names the broker's, and every owner
// follows from the provider's.
type addresses struct {
	Broker   string `json:"broker"`
	Provider string `json:"provider"`
}

func readAddresses(dir string) (addresses, error) {
	path := filepath.Join(dir, addressFile)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return addresses{Broker: "127.0.0.1:0"}, nil
	}
	if err != nil {
		return addresses{}, err
	}
	var a addresses
	if err := json.Unmarshal(body, &a); err != nil {
		return addresses{}, fmt.Errorf("read %s: %w", path, err)
	}
	return a, nil
}

func (a addresses) write(dir string) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := service.WritePrivate(filepath.Join(dir, addressFile), append(body, '\n')); err != nil {
		return fmt.Errorf("remember where broker and provider listen: %w", err)
	}
	return nil
}
