package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cotal-ai/authplane/actors/space"
	"github.com/cotal-ai/authplane/cmd/authplane/internal/service"
	"github.com/cotal-ai/authplane/messages"
)

// markFile marks a directory that dev made. It is there before the keys are.
const markFile = "development"

const markText = "authplane dev made this directory. Its identity provider believes everybody:\n" +
	"use nothing of it for anything but development.\n"

// claimDir makes a directory for development, or finds one that dev made. One that
// holds a space of init's is refused, and nothing in it is touched: on its keys, a
// provider that believes everybody would let everybody in.
func claimDir(dir string) error {
	if madeByDev(dir) {
		return nil
	}
	if part, err := partOfSpace(dir); err != nil || part != "" {
		return errors.Join(err, foreign(dir, part))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return service.WritePrivate(filepath.Join(dir, markFile), []byte(markText))
}

func foreign(dir, part string) error {
	if part == "" {
		return nil
	}
	err := messages.DevForeign.Because("%s was not made by dev: %s stands in it", dir, part)
	config := filepath.Join(dir, configFile)
	if _, missing := os.Lstat(config); missing != nil {
		return err
	}
	return advised{err, "authplane serve --config " + shellWord(config)}
}

func madeByDev(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, markFile))
	return err == nil && info.Mode().IsRegular()
}

// partOfSpace names what of a space stands in a directory; empty for nothing.
func partOfSpace(dir string) (string, error) {
	of := space.InstallationIn(dir)
	for _, path := range []string{filepath.Join(dir, configFile), of.SecretsDir, of.OfflineDir, of.SentinelCreds, of.ServerConfig,
		filepath.Join(dir, space.InstanceFile)} {
		switch _, err := os.Lstat(path); {
		case err == nil:
			return filepath.Base(path), nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", nil
}
