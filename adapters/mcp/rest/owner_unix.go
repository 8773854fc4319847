//go:build unix

package rest

import (
	"io/fs"
	"syscall"
)

const ownersAreKnown = true

func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
