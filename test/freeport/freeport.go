// Package freeport finds addresses for programs that a test starts, and may stop
// and start again.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
)

// last is the port that was tried last. Test programs that run beside each other
// begin far apart, so that each finds its own.
var last atomic.Int64

func init() { last.Store(10_000 + rand.Int64N(15_000)) }

// Address returns a loopback address that nothing listens on. Its port is below those
// that systems assign to connections and to listeners on port 0 (49152 and up in RFC
// 6335, 32768 and up on Linux): one of those could be assigned before the program
// listens, or while it is down. No address is returned twice.
func Address(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "linux" { // elsewhere net.Listen takes the lock itself
		// A program that is started meanwhile would have the socket too, until it runs.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", last.Add(1)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatal("no free port")
	return ""
}
