package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/refusal"
)

// halfClosed is how long an upstream proxy may be silent after the relay has sent its last byte.
// The relay may have closed its end, which looks like a half-closed one from here.
const halfClosed = 2 * time.Minute

// secured opens TLS on a connection to an upstream proxy, whose certificate must be valid for its
// host. The relay moves bytes between TCP sockets without a look at them, so the result is one end
// of a pair on this host, whose other end is copied to and from the proxy until both are closed.
func (d *Dialer) secured(ctx context.Context, tcp *net.TCPConn, host string) (*net.TCPConn, *refusal.Refusal) {
	conn := tls.Client(tcp, &tls.Config{ServerName: host, RootCAs: d.Roots, MinVersion: tls.VersionTLS12})
	err := conn.HandshakeContext(ctx)
	if err == nil {
		var near, far *net.TCPConn
		if near, far, err = pair(); err == nil {
			// What waits here has been read from the proxy and is not charged if the client leaves.
			_ = far.SetWriteBuffer(receiveBuffer / 4)
			b := &bridge{far: far, proxy: conn}
			go b.up()
			go b.down()
			return near, nil
		}
	}
	_ = tcp.Close()
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		return nil, refusal.UpstreamTimeout
	case untrusted:
		return nil, refusal.UpstreamUntrusted
	case errors.Is(err, errPair):
		return nil, refusal.OutOfSockets
	}
	return nil, refusal.UpstreamNoTLS
}

// errPair is why there is no pair of sockets.
var errPair = errors.New("no pair of sockets")

// pair returns two connected sockets of this host.
func pair() (near, far *net.TCPConn, err error) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, nil, errors.Join(errPair, err)
	}
	defer l.Close()
	if near, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr)); err != nil {
		return nil, nil, errors.Join(errPair, err)
	}
	_ = l.SetDeadline(time.Now().Add(time.Second))
	for {
		if far, err = l.AcceptTCP(); err != nil {
			_ = near.Close()
			return nil, nil, errors.Join(errPair, err)
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		_ = far.Close() // another process of this host connected to the port
	}
}

// bridge copies between one end of a pair and an upstream proxy.
type bridge struct {
	far   *net.TCPConn
	proxy *tls.Conn
	last  atomic.Bool // nothing more comes from the pair
	done  atomic.Int32
}

// up copies what is meant for the proxy.
func (b *bridge) up() {
	defer b.close()
	if _, err := io.Copy(b.proxy, b.far); err != nil || b.proxy.CloseWrite() != nil {
		b.reset()
		return
	}
	b.last.Store(true)
	_ = b.proxy.SetReadDeadline(time.Now().Add(halfClosed))
}

// down copies what comes from the proxy. Some proxies end TLS without saying so.
func (b *bridge) down() {
	defer b.close()
	_, err := io.Copy(b.far, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || b.far.CloseWrite() != nil {
		b.reset()
	}
}

// Read reads from the proxy.
func (b *bridge) Read(p []byte) (int, error) {
	if b.last.Load() {
		_ = b.proxy.SetReadDeadline(time.Now().Add(halfClosed))
	}
	return b.proxy.Read(p)
}

// reset ends both connections at once, so that the relay gets an error from both.
func (b *bridge) reset() {
	_ = b.far.SetLinger(0)
	_ = b.far.Close()
	_ = b.proxy.NetConn().Close()
}

// close closes both connections when both directions have ended.
func (b *bridge) close() {
	if b.done.Add(1) == 2 {
		_ = b.far.Close()
		_ = b.proxy.NetConn().Close()
	}
}
