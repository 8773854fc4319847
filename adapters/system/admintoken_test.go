package system_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentproxy/adapters/system"
)

func TestTheTokenOfTheAdminListener(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ap.db.admin")
	if token, err := system.LoadToken(file); !errors.Is(err, fs.ErrNotExist) || token != "" {
		t.Errorf("before: %q, %v", token, err)
	}
	var wg sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], err = system.LoadOrCreateToken(file); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if token != tokens[0] || len(token) != 43 {
			t.Errorf("processes that start together have %q and %q", tokens[0], token)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file has mode %v, %v", info.Mode(), err)
	}
	list, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666, 0o611} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if token, err := system.LoadOrCreateToken(file); err == nil || token != "" || strings.Contains(err.Error(), tokens[0]) {
			t.Errorf("%04o: %q, %v", mode, token, err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	link := file + ".link"
	for _, make := range []func() error{func() error { return os.Symlink(file, link) }, func() error { return os.Symlink(file+".none", link) },
		func() error { return os.Mkdir(link, 0o700) }} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if token, err := system.LoadOrCreateToken(link); err == nil {
			t.Errorf("what is no file gives %q", token)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(file + ".none"); err == nil {
		t.Error("a token was written through a link")
	}
	for _, text := range []string{"", "short", strings.Repeat("x", 1025)} {
		if err := os.WriteFile(link, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := system.LoadOrCreateToken(link); err == nil {
			t.Errorf("%d characters are taken", len(text))
		}
	}
	if os.Geteuid() != 0 {
		return // who may not give a file to another user
	}
	if err := os.Chown(file, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := system.LoadOrCreateToken(file); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("the file of another user: %v", err)
	}
	if token, err := system.LoadToken(file); err != nil || token != tokens[0] {
		t.Errorf("a command of root reads %q, %v", token, err)
	}
}

// Replicas on one PostgreSQL have the same token, and another one under another root secret.
func TestTheDerivedTokenOfTheAdminListener(t *testing.T) {
	t.Parallel()
	tokens := map[string]bool{}
	for _, text := range []string{"0123456789abcdefghijklmnopqrstuvwxyz0123456789", "0123456789abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz0123456789abcdef"} {
		root, err := system.ParseRoot(text)
		if err != nil {
			t.Fatal(err)
		}
		secrets, err := system.NewSecrets(root)
		if err != nil {
			t.Fatal(err)
		}
		token := secrets.AdminToken()
		tokens[token] = true
		if len(token) != 43 || strings.Contains(token, text[:8]) {
			t.Errorf("the token is %q", token)
		}
	}
	if len(tokens) != 2 {
		t.Errorf("two roots have %d tokens", len(tokens))
	}
}
