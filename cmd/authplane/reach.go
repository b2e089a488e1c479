package main

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
)

const (
	// configFile and stateDir are what init and dev call them inside their directory.
	configFile = "authplane.yaml"
	stateDir   = "state"
)

// reach opens a client of the service that runs from --dir.
func (a *app) reach() (*service.Client, error) {
	record, err := service.Find(a.stateDirs()...)
	if err != nil {
		return nil, err
	}
	return service.Open(record)
}

// stateDirs lists where the state of the service may lie: where the configuration
// in the directory says, in the usual place, or in the directory itself.
func (a *app) stateDirs() []string {
	dirs := []string{a.dir, filepath.Join(a.dir, stateDir)}
	over := settings.Overrides{CredentialsDir: a.getenv("CREDENTIALS_DIRECTORY")}
	if found, err := settings.Load(filepath.Join(a.dir, configFile), over); err == nil {
		dirs = append(dirs, found.Space.StateDir)
	}
	return dirs
}

// fetch gets one path from the service; into, unless it is nil, is filled from it.
func (a *app) fetch(ctx context.Context, path string, into any) (json.RawMessage, error) {
	client, err := a.reach()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer, err := client.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	return answer, decode(answer, into)
}
