// Package smalldisk mounts file systems that tests fill up.
package smalldisk

import "testing"

// Disk is a small file system.
type Disk struct {
	Dir string // where it is mounted
	t   testing.TB
}
