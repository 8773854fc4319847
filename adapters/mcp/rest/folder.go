package rest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrFolder is returned for a folder in which others can put files.
var ErrFolder = errors.New("not a folder of this user alone")

// OwnFolder makes a folder with mode 0700 unless it is there. It returns ErrFolder if it, or a link in its place, is
// another user's, or if others may write into it: they could replace a file that a shell evaluates.
func OwnFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	link, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !isOwn(link), !isOwn(info), !info.IsDir(), info.Mode().Perm()&0o022 != 0 && ownersAreKnown:
		return fmt.Errorf("%s: %w", dir, ErrFolder)
	}
	return nil
}

// isOwn reports whether a file is this user's, or true where the system does not show that.
func isOwn(info fs.FileInfo) bool {
	owner, known := ownerOf(info)
	return !known || owner == os.Geteuid()
}
