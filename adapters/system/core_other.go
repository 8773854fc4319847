//go:build !unix

package system

// NoCoreFiles does nothing: there are none.
func NoCoreFiles() error { return nil }
