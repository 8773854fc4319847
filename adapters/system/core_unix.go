//go:build unix

package system

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoCoreFiles keeps the process from writing core files, which would hold its secrets.
func NoCoreFiles() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

// ownedByAnother reports whether a file belongs to a user other than the process and root.
func ownedByAnother(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid != 0 && int(s.Uid) != os.Geteuid()
}
