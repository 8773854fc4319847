package gateway_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// deaf is an address that answers no connection: a listener whose queue is full.
func deaf(t *testing.T) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, _ := unix.Getsockname(fd)
	addr := fmt.Sprintf("127.0.0.1:%d", sa.(*unix.SockaddrInet4).Port)
	for range 3 {
		if c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond); err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	}
	return addr
}

// dialled reports whether a connection to an address on 127.0.0.1 is being attempted.
func dialled(t *testing.T, addr string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(addr).Port()
	return strings.Contains(string(table), fmt.Sprintf(" 0100007F:%04X 02 ", port)) // 02 is SYN_SENT
}

func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Connect = 300 * time.Millisecond })
	id := w.add(1, 0)
	if got := w.connectAs(w.dial(), basic(user(id, 0), password(id)), deaf(t)); got != 504 {
		t.Errorf("status %d, want 504", got)
	}
	if o := w.observed()[0]; o.Evidence != "timeout" || o.Code != "TARGET_TIMEOUT" || !o.Retryable {
		t.Errorf("observed %+v", o)
	}
}

func TestTerminateWhileDialling(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Connect = time.Hour })
	id := w.add(1, 0)
	target := deaf(t)
	c, status := w.dial(), make(chan int)
	go func() { status <- w.connectAs(c, basic(user(id, 0), password(id)), target) }()
	waitFor(t, "the attempt", func() bool { return dialled(t, target) })
	w.change(id, func(r *traffic.Route) { r.Status = session.Terminated })
	w.Changed(id)
	if got := <-status; got != 410 {
		t.Errorf("status %d, want 410", got)
	}
}
