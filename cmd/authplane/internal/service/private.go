package service

import (
	"errors"
	"os"
	"path/filepath"
)

// WritePrivate writes a file that only its owner may read, whole or not at all.
func WritePrivate(path string, body []byte) error {
	private, err := CreatePrivate(path)
	if err != nil {
		return err
	}
	return private.Place(body)
}

// Private is a file that only its owner may read, before it is in its place.
type Private struct {
	path      string
	temporary *os.File
}

// CreatePrivate makes the file ready beside its place, so that little is left that
// can keep it from getting there. Call Place or Discard.
func CreatePrivate(path string) (*Private, error) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil, &os.PathError{Op: "write", Path: path, Err: errors.New("is a directory")}
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // CreateTemp makes it 0600
	if err != nil {
		return nil, err
	}
	return &Private{path: path, temporary: temporary}, nil
}

// Place writes the body and puts the file in its place, over what stood there.
func (p *Private) Place(body []byte) error {
	_, err := p.temporary.Write(body)
	name := p.temporary.Name()
	if err = errors.Join(err, p.temporary.Sync(), p.temporary.Close()); err == nil {
		err = os.Rename(name, p.path)
	}
	p.temporary = nil
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Discard leaves nothing of a file that was not placed.
func (p *Private) Discard() {
	if p.temporary == nil {
		return
	}
	_ = p.temporary.Close() // nothing was written to it
	_ = os.Remove(p.temporary.Name())
	p.temporary = nil
}
