//go:build unix

package rest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	made := filepath.Join(root, "a", "sessions")
	if err := OwnFolder(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it has mode %v: %v", info.Mode(), err)
	}
	link := filepath.Join(root, "link")
	if err := errors.Join(os.Symlink(made, link), OwnFolder(link)); err != nil {
		t.Errorf("a link of this user is refused: %v", err)
	}
	open := filepath.Join(root, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := OwnFolder(open); !errors.Is(err, ErrFolder) {
		t.Errorf("one that others may write into: %v", err)
	}
	if os.Geteuid() != 0 {
		return // another user's folder takes root to make
	}
	foreign := filepath.Join(root, "foreign")
	to := filepath.Join(root, "to")
	if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 65534, 65534),
		os.Symlink(made, to), os.Lchown(to, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{foreign, to} {
		if err := OwnFolder(dir); !errors.Is(err, ErrFolder) {
			t.Errorf("another user's %s: %v", dir, err)
		}
	}
}

func TestCredentialsGoIntoAnOwnFolderAlone(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "has no folder", open: "others may write"} {
		c := &Client{cfg: Config{Dir: dir}}
		_, err := c.write("sess_x.env", "secret")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(open); err != nil || len(left) > 0 {
		t.Errorf("%v was written: %v", left, err)
	}
}
