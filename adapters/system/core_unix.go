//go:build unix

package system

import "golang.org/x/sys/unix"

// NoCoreFiles keeps the process from writing core files, which would hold its secrets.
func NoCoreFiles() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
