//go:build !linux

package gateway

import (
	"context"
	"syscall"
)

// lateBind exists on Linux only; elsewhere bind chooses the local port.
func lateBind(context.Context, string, string, syscall.RawConn) error { return nil }
