//go:build !linux

package dial

import (
	"context"
	"syscall"
)

// lateBind does nothing: outside Linux bind(2) chooses the local port.
func lateBind(context.Context, string, string, syscall.RawConn) error { return nil }
