package system

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Root is the root secret of the service: every other secret is derived from it.
// It is the text of the file, so that this can be copied to AGENTPROXY_SECRET as
// it is. It hides itself when printed.
type Root []byte

const hidden = "[hidden]"

// LogValue hides the secret from logs.
func (Root) LogValue() slog.Value { return slog.StringValue(hidden) }

// String hides the secret from text.
func (Root) String() string { return hidden }

// GoString hides the secret from %#v.
func (Root) GoString() string { return hidden }

// Bounds of a root secret.
const (
	minRoot     = 32   // characters
	maxRoot     = 4096 // characters
	minDistinct = 8    // a random text of 32 hex digits has fewer once in 10 million times
	randomRoot  = 32   // bytes, when the service makes it
	maxPrevious = 8    // older secrets: each is tried for a credential that is wrong
)

// ParseRoot returns the root secret of a text without the white space around it. It
// returns an error if the text is shorter than 32 characters or longer than 4,096,
// or has fewer than 8 different characters, as a placeholder has.
func ParseRoot(text string) (Root, error) {
	text = strings.TrimSpace(text)
	if len(text) < minRoot || len(text) > maxRoot {
		return nil, fmt.Errorf("the root secret has %d characters; it needs %d to %d random ones, for example of: openssl "+
			"rand -base64 32",
			len(text), minRoot, maxRoot)
	}
	seen := map[byte]bool{}
	for i := range len(text) {
		seen[text[i]] = true
	}
	if len(seen) < minDistinct {
		return nil, fmt.Errorf("the root secret has only %d different characters; make a random one, for example with: "+
			"openssl rand -base64 32",
			len(seen))
	}
	return Root(text), nil
}

// Roots are the root secret and those that it replaced. What older ones made
// still works; everything new is made with the current one.
type Roots struct {
	Current  Root
	Previous []Root
}

// LoadSecret reads the root secret from a file. It returns an error that is
// fs.ErrNotExist if there is no file, and otherwise the errors of
// LoadOrCreateSecret.
func LoadSecret(path string) (Root, error) { return loadRoot(path) }

// LoadSecrets reads root secrets from a file, one in a line; none if there is no
// file. It returns an error as LoadOrCreateSecret does.
func LoadSecrets(path string) ([]Root, error) {
	text, err := readSecret(path, maxPrevious*(maxRoot+1))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Root
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		root, err := ParseRoot(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, root)
	}
	return list, nil
}

// LoadOrCreateSecret reads the root secret from a file, and creates the file with
// 256 random bits if it does not exist. Processes that start at the same time get
// the same secret. It returns an error if others may read the file or the group may
// write it, or if ParseRoot does.
func LoadOrCreateSecret(path string) (Root, error) {
	root, err := loadRoot(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := createRoot(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the root secret %s (or set AGENTPROXY_SECRET): %w", path, err)
	}
	return loadRoot(path)
}

func loadRoot(path string) (Root, error) {
	text, err := readSecret(path, maxRoot+2)
	if err != nil {
		return nil, err
	}
	root, err := ParseRoot(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return root, nil
}

// readSecret reads at most a number of bytes of a file that others can neither
// read nor change.
func readSecret(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the root secret: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the root secret: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("the root secret %s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o027 != 0 {
		return "", fmt.Errorf("the root secret %s has mode %04o, so others can read or change it; run: chmod 600 %s", path,
			perm, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", fmt.Errorf("read the root secret: %w", err)
	}
	return string(text), nil
}

// createRoot writes the secret to a temporary file and links that to its name: the
// link fails if another process was first, and no process reads half a file.
func createRoot(path string) error {
	random := make([]byte, randomRoot)
	rand.Read(random)
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // O_EXCL, mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(base64.RawURLEncoding.EncodeToString(random) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the new name survive a power failure: a service that lost its root
// secret has lost every key that it issued.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
