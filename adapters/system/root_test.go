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

func TestParseRoot(t *testing.T) {
	for _, c := range []struct{ claim, text, want string }{
		{"32 characters are enough", "abcdefghijklmnopqrstuvwxyz012345", ""},
		{"31 are not", "abcdefghijklmnopqrstuvwxyz01234", "31 characters"},
		{"white space does not count", "  abcdefghijklmnopqrstuvwxyz01234 \n", "31 characters"},
		{"nothing is no secret", "", "0 characters"},
		{"a placeholder is no secret", strings.Repeat("changeme", 8), "7 different"},
		{"nor is a book", strings.Repeat("abcdefghij", 1000), "10000 characters"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			root, err := system.ParseRoot(c.text)
			if c.want == "" {
				if err != nil || string(root) != c.text {
					t.Errorf("got %v, %v", []byte(root), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if c.text != "" && strings.Contains(err.Error(), strings.TrimSpace(c.text)) {
				t.Error("the error repeats the secret")
			}
		})
	}
}

func TestLoadOrCreateSecret(t *testing.T) {
	t.Run("it is made once, for its owner alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "agentproxy.secret")
		first, err := system.LoadOrCreateSecret(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := system.LoadOrCreateSecret(path)
		if err != nil || string(again) != string(first) || len(first) < 43 {
			t.Errorf("read again it has %d characters instead of %d, %v", len(again), len(first), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v, %v", info, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
			t.Errorf("beside it lies %v", left)
		}
		text, _ := os.ReadFile(path)
		if root, err := system.ParseRoot(string(text)); err != nil || string(root) != string(first) {
			t.Errorf("moved to the variable it would be another secret: %v", err)
		}
	})
	t.Run("of twenty that start together all get the same", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "secret")
		var wg sync.WaitGroup
		got := make([]string, 20)
		for i := range got {
			wg.Go(func() {
				root, err := system.LoadOrCreateSecret(path)
				if err != nil {
					t.Error(err)
				}
				got[i] = string(root)
			})
		}
		wg.Wait()
		for _, root := range got {
			if root != got[0] || root == "" {
				t.Fatal("two of them got different secrets")
			}
		}
	})
	t.Run("two services have different secrets", func(t *testing.T) {
		a, errA := system.LoadOrCreateSecret(filepath.Join(t.TempDir(), "secret"))
		b, errB := system.LoadOrCreateSecret(filepath.Join(t.TempDir(), "secret"))
		if string(a) == string(b) || errors.Join(errA, errB) != nil {
			t.Errorf("they are the same, or %v, %v", errA, errB)
		}
	})
	t.Run("a directory that is not there is named", func(t *testing.T) {
		_, err := system.LoadOrCreateSecret(filepath.Join(t.TempDir(), "missing", "secret"))
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "AGENTPROXY_SECRET") {
			t.Errorf("error %v", err)
		}
	})
}

func TestASecretFileThatIsRefused(t *testing.T) {
	const good = "abcdefghijklmnopqrstuvwxyz0123456789\n"
	for _, c := range []struct {
		claim, text string
		mode        fs.FileMode
		want        string // empty: taken
	}{
		{"its owner's alone", good, 0o600, ""},
		{"read only", good, 0o400, ""},
		{"the group may read", good, 0o640, ""},
		{"the group may not write", good, 0o660, "chmod 600"},
		{"others may not read", good, 0o604, "chmod 600"},
		{"nor write", good, 0o602, "chmod 600"},
		{"one that is too short", "abcdefgh\n", 0o600, "8 characters"},
		{"one that is empty", "", 0o600, "0 characters"},
		{"one that is something else", strings.Repeat("a database file ", 10_000), 0o600, "characters"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			root, err := system.LoadOrCreateSecret(path)
			if c.want == "" {
				if err != nil || string(root) != strings.TrimSpace(c.text) {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || root != nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %d characters, %v; want %q and the path", len(root), err, c.want)
			}
			if after, _ := os.ReadFile(path); string(after) != c.text {
				t.Error("the refused file was changed")
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		if _, err := system.LoadOrCreateSecret(t.TempDir()); err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("error %v", err)
		}
	})
}
