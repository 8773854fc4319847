//go:build unix

package conns

import "golang.org/x/sys/unix"

// Descriptors returns how many file descriptors the process may have open; 0 if that is
// unknown. The Go runtime raises the soft limit to the hard one at the start.
func Descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), 1<<20))
}
