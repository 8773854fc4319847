//go:build !linux

package smalldisk

import "testing"

// New skips the test.
func New(t testing.TB, _ int) *Disk {
	t.Skip("small file systems are mounted on Linux alone")
	return nil
}

// On skips the test.
func On(t testing.TB, _ string, size int) *Disk { return New(t, size) }

// Fill does nothing.
func (d *Disk) Fill() {}

// Empty does nothing.
func (d *Disk) Empty() {}
