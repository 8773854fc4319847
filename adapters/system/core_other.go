//go:build !unix

package system

import "io/fs"

// NoCoreFiles does nothing: there are none.
func NoCoreFiles() error { return nil }

// ownedByAnother reports false: files have no owner.
func ownedByAnother(fs.FileInfo) bool { return false }
