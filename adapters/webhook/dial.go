package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"agentproxy/domain/egress"
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTransport returns a transport for HTTP/1.1 that dials through dial only.
// A proxy of the environment would connect to addresses that were not checked,
// HTTP/2 would allow a receiver to send megabytes unrequested, and
// decompression would grow the counted bytes.
func newTransport(s *Sender, dial dialFunc) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: s.cfg.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    s.cfg.Timeout, // of a dial that outlives its request
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxResponse,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
	}
}

// dial makes one connection: it resolves the host, checks every address, and
// connects to a checked one. The context has no deadline, because the transport
// may keep the connection for another request.
func (s *Sender) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return s.dialAdmitted(ctx, address, nil)
}

// dialAdmitted is dial for addresses that admit lets pass; nil is all.
func (s *Sender) dialAdmitted(ctx context.Context, address string, admit func(netip.Addr) error) (net.Conn, error) {
	until := time.Now().Add(s.cfg.Timeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	targets, err := s.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	for i, target := range targets {
		var c net.Conn
		if admit != nil {
			if err = admit(target.Addr()); err != nil {
				continue
			}
		}
		// One silent address leaves time for those after it.
		share := time.Until(until) / time.Duration(len(targets)-i)
		if c, err = s.dialWithin(ctx, target, share); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func (s *Sender) dialWithin(ctx context.Context, target netip.AddrPort, d time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return s.cfg.Dial(ctx, target)
}

// resolve returns the addresses of a host and port that may be dialled.
func (s *Sender) resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, port, err := splitPort(address)
	if err != nil {
		return nil, err
	}
	addr, err := egress.ParseHost(host)
	if err != nil {
		return nil, refused(err)
	}
	answers := []netip.Addr{addr}
	if !addr.IsValid() {
		if answers, err = s.cfg.Resolve(ctx, host); err != nil {
			return nil, lookupFailed(err)
		}
		if len(answers) == 0 {
			return nil, errNameUnknown
		}
	}
	if err := s.cfg.Policy.CheckAll(answers, port); err != nil {
		return nil, refused(err)
	}
	targets := make([]netip.AddrPort, 0, maxAddresses)
	for _, a := range answers[:min(len(answers), maxAddresses)] {
		targets = append(targets, netip.AddrPortFrom(a.Unmap(), port))
	}
	return targets, nil
}

func splitPort(address string) (string, uint16, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errURL
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, errURL
	}
	return host, uint16(port), nil
}

func dialTCP(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	// DialTCP would bind to a port, which it takes from all other connections.
	return new(net.Dialer).DialContext(ctx, "tcp", target.String())
}
