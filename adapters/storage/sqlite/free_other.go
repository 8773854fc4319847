//go:build !unix || solaris || illumos || aix || netbsd

package sqlite

// Free returns that the space is not known.
func (d *Database) Free() (bytes uint64, known bool, err error) { return 0, false, nil }

// Scarce returns false: the space is not known.
func (d *Database) Scarce() (bool, error) { return false, nil }
