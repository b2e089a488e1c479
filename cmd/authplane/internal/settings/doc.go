// Package settings reads authplane.yaml into one space.Config for each space.
//
// It is strict: an unknown key, a value of the wrong type and whatever
// space.Config.Validate refuses are all listed at once, each with its line. Nothing
// is guessed and no key has a second spelling. Secrets are not settings: the file
// names the directory they lie in.
package settings
