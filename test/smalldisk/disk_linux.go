package smalldisk

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// New mounts a file system of a size in bytes until the test ends. The test is skipped where this process may
// not mount.
func New(t testing.TB, size int) *Disk {
	t.Helper()
	return On(t, t.TempDir(), size)
}

// On is New on a folder.
func On(t testing.TB, folder string, size int) *Disk {
	t.Helper()
	d := &Disk{Dir: folder, t: t}
	if err := syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Fill takes all the space that is left.
func (d *Disk) Fill() {
	d.t.Helper()
	file, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	page := make([]byte, 4096)
	for {
		if _, err := file.Write(page); err != nil {
			return
		}
	}
}

// Empty gives back what Fill took.
func (d *Disk) Empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }
