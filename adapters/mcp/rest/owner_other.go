//go:build !unix

package rest

import "io/fs"

const ownersAreKnown = false

func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }
