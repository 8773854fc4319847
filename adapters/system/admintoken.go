package system

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Bounds of a token in a file.
const (
	shortestToken = 32
	longestToken  = 1024
)

// LoadOrCreateToken reads the token of the admin listener from a file, and creates the file with 256 random bits if it
// does not exist. Processes that start at the same time get the same token. It refuses a link, and a file that
// belongs to another user or that others can read or change: who has the token is the operator.
func LoadOrCreateToken(path string) (string, error) {
	token, err := loadToken(path, true)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := createRoot(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the token of the admin listener %s (or set AGENTPROXY_ADMIN_PASSWORD): %w", path, err)
	}
	return loadToken(path, true)
}

// LoadToken is like LoadOrCreateToken and creates nothing: its error is fs.ErrNotExist if there is no file. A command
// of root may read the file of the user that the service runs as.
func LoadToken(path string) (string, error) { return loadToken(path, os.Geteuid() != 0) }

func loadToken(path string, own bool) (string, error) {
	const what = "the token of the admin listener"
	named, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	if !named.Mode().IsRegular() {
		return "", fmt.Errorf("%s %s is not a regular file; remove it, and the next start makes one", what, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s: %w", what, err)
	case !os.SameFile(named, info):
		return "", fmt.Errorf("%s %s was replaced while it was opened", what, path)
	case own && ownedByAnother(info):
		return "", fmt.Errorf("%s %s belongs to another user; remove it, and the next start makes one", what, path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s %s has mode %04o, so others may have read it; remove it, and the next start makes one",
			what, path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, longestToken+2))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken || len(token) > longestToken {
		return "", fmt.Errorf("%s %s has %d characters, it needs %d to %d; remove it, and the next start makes one", what,
			path, len(token), shortestToken, longestToken)
	}
	return token, nil
}
