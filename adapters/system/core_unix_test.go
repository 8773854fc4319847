//go:build unix

package system_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"agentproxy/adapters/system"
)

func TestNoCoreFilesAreWritten(t *testing.T) {
	if err := system.NoCoreFiles(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Cur != 0 || limit.Max != 0 {
		t.Errorf("the limit is %+v, %v", limit, err)
	}
}
