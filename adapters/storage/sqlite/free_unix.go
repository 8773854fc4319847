//go:build unix && !solaris && !illumos && !aix && !netbsd

package sqlite

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes the file system of the file has left for this process.
func (d *Database) Free() (bytes uint64, known bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.path, &s); err != nil {
		return 0, false, fmt.Errorf("free space: %w", err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true, nil
}

// Scarce reports whether less than a twentieth of the file system of the file is left for this process.
func (d *Database) Scarce() (bool, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.path, &s); err != nil {
		return false, fmt.Errorf("free space: %w", err)
	}
	return uint64(s.Bavail)*20 < uint64(s.Blocks), nil
}
