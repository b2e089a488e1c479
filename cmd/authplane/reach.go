package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/settings"
	"github.com/cotal-ai/authplane/messages"
)

const (
	// configFile and stateDir are what init and dev call them inside their directory.
	configFile = "authplane.yaml"
	stateDir   = "state"
)

// reach opens a client of the service that runs from --dir.
func (a *app) reach() (*service.Client, error) {
	dirs, broken := a.stateDirs()
	record, err := service.Find(dirs...)
	switch {
	case err == nil:
		return service.Open(record)
	case errors.Is(err, messages.ServiceAway) && broken != nil:
		return nil, broken // it may run where the file would say
	case errors.Is(err, messages.ServiceStarting) && broken == nil:
		return nil, a.awaited(err)
	}
	return nil, err
}

// stateDirs lists where the state of the service may lie: in the directory itself,
// in the usual place, or where the configuration in the directory says. broken is
// why that configuration does not say where, if there is one.
func (a *app) stateDirs() (dirs []string, broken error) {
	dirs = []string{a.dir, filepath.Join(a.dir, stateDir)}
	over := settings.Overrides{CredentialsDir: a.getenv("CREDENTIALS_DIRECTORY")}
	path := filepath.Join(a.dir, configFile)
	found, err := settings.Load(path, over)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dirs, nil
	case err != nil:
		return dirs, err
	case len(found.Spaces) > 1:
		return dirs, severalSpaces(path, found.Spaces)
	}
	return append(dirs, found.Spaces[0].StateDir), nil
}

// awaited adds which broker a start may wait for, where the configuration says so.
func (a *app) awaited(err error) error {
	found, unread := settings.Load(filepath.Join(a.dir, configFile), settings.Overrides{CredentialsDir: a.getenv("CREDENTIALS_DIRECTORY")})
	if unread != nil || len(found.Spaces) != 1 {
		return err
	}
	return fmt.Errorf("%w; its broker is %s", err, found.Spaces[0].NATSURL)
}

// severalSpaces says how to reach each space of a file.
func severalSpaces(path string, spaces []space.Config) error {
	var text strings.Builder
	for _, s := range spaces {
		_, _ = fmt.Fprintf(&text, "\n  %s: --dir %s", s.Space, shellWord(s.StateDir))
	}
	return usage("%s is of several spaces; name one by its state directory%s", path, text.String())
}

// startWith is the command that starts a service from --dir.
func (a *app) startWith() string {
	config := filepath.Join(a.dir, configFile)
	_, missing := os.Lstat(config)
	switch {
	case madeByDev(a.dir):
		return "authplane dev"
	case missing == nil:
		return "authplane serve --config " + shellWord(config)
	case stateOfServe(a.dir):
		return "authplane serve --config <file> --state-dir " + shellWord(a.dir)
	}
	return "authplane dev"
}

// stateOfServe reports whether a directory is the state of a service that somebody
// started with a configuration of another place.
func stateOfServe(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, space.InstanceFile))
	return err == nil && info.Mode().IsRegular()
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
