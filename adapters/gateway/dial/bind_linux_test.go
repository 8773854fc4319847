package dial_test

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"agentproxy/adapters/gateway/dial"
)

func TestNoConnectionTakesItsPortFromOtherTargets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var d dial.Dialer
	for _, exit := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.9")} {
		c, refused := d.Dial(t.Context(), l.Addr().(*net.TCPAddr).AddrPort(), exit)
		if refused != nil {
			t.Fatal(refused)
		}
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		late := 0
		_ = raw.Control(func(fd uintptr) {
			late, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT)
		})
		if late != 1 {
			t.Errorf("exit %v: bind(2) chose the port", exit)
		}
		_ = c.Close()
	}
}
