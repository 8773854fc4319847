package socks5

import (
	"bytes"
	"errors"
	"io"
	"net/netip"

	"agentproxy/adapters/gateway/hostport"
)

// Errors of a handshake before its request. After each of them the connection must
// be closed without a further message.
var (
	ErrVersion  = errors.New("socks5: not a SOCKS5 handshake")
	ErrNoMethod = errors.New("socks5: the client does not offer the method that is needed")
	ErrAuth     = errors.New("socks5: not a user name and password of RFC 1929")
)

// RequestError is a request that cannot be served; Reply is the answer to send
// before the connection is closed.
type RequestError struct {
	Reply  Reply
	Reason string
}

// Error returns the reason.
func (e *RequestError) Error() string { return "socks5: " + e.Reason }

var (
	errCommand     = &RequestError{CommandNotSupported, "the SOCKS5 command is not CONNECT"}
	errAddressType = &RequestError{AddressTypeNotSupported, "the SOCKS5 address type is unknown"}
	errName        = &RequestError{GeneralFailure, "the SOCKS5 target is not a name or an address"}
	errPort        = &RequestError{GeneralFailure, "the SOCKS5 target has port 0"}
)

// Server is the server's side of a handshake: Greet, with a password Auth and Status, Request, Reply,
// in this order. The zero value is ready to use and can be reused; it is scratch
// memory only. Each method reads at most 513 bytes.
type Server struct {
	buf [513]byte
}

// Greet reads the greeting (RFC 1928 section 3) and selects a method.
// If the client does not offer it the answer is 0xFF, and the error ErrNoMethod.
func (s *Server) Greet(r io.Reader, w io.Writer, method Method) error {
	b := s.buf[:2]
	if err := readFull(r, b); err != nil {
		return err
	}
	if b[0] != Version {
		return ErrVersion
	}
	methods := s.buf[2 : 2+int(b[1])]
	if err := readFull(r, methods); err != nil {
		return err
	}
	selected := byte(methodUnacceptable)
	if bytes.IndexByte(methods, byte(method)) >= 0 {
		selected = byte(method)
	}
	s.buf[1] = selected
	if _, err := w.Write(s.buf[:2]); err != nil {
		return err
	}
	if selected == methodUnacceptable {
		return ErrNoMethod
	}
	return nil
}

// Auth reads user name and password, 1 to 255 bytes each (RFC 1929 section 2). Both
// slices are valid until the next call of a method of s.
func (s *Server) Auth(r io.Reader) (user, password []byte, err error) {
	b := s.buf[:]
	if err := readFull(r, b[:2]); err != nil {
		return nil, nil, err
	}
	if b[0] != authVersion || b[1] == 0 {
		return nil, nil, ErrAuth
	}
	n := 2 + int(b[1])
	if err := readFull(r, b[2:n+1]); err != nil {
		return nil, nil, err
	}
	end := n + 1 + int(b[n])
	if end == n+1 {
		return nil, nil, ErrAuth
	}
	if err := readFull(r, b[n+1:end]); err != nil {
		return nil, nil, err
	}
	return b[2:n], b[n+1 : end], nil
}

// Status answers user name and password. If ok is false the connection must be
// closed afterwards (RFC 1929 section 2).
func (s *Server) Status(w io.Writer, ok bool) error {
	s.buf[0], s.buf[1] = authVersion, 1
	if ok {
		s.buf[1] = 0
	}
	_, err := w.Write(s.buf[:2])
	return err
}

// Request reads the request (RFC 1928 section 4). It returns a *RequestError if the
// request cannot be served. A name that spells an IP address is returned unchanged.
func (s *Server) Request(r io.Reader) (hostport.Target, error) {
	b := s.buf[:]
	if err := readFull(r, b[:5]); err != nil { // the shortest request has more
		return hostport.Target{}, err
	}
	if b[0] != Version {
		return hostport.Target{}, ErrVersion
	}
	var end int // of the address, which begins at b[4]
	switch b[3] {
	case addressIPv4:
		end = 4 + 4
	case addressIPv6:
		end = 4 + 16
	case addressName:
		end = 5 + int(b[4])
	default:
		return hostport.Target{}, errAddressType
	}
	if err := readFull(r, b[5:end+2]); err != nil {
		return hostport.Target{}, err
	}
	if b[1] != commandConnect {
		return hostport.Target{}, errCommand
	}
	return parseTarget(b[3], b[4:end], b[end:end+2])
}

// parseTarget decodes the address and the port of a request.
func parseTarget(kind byte, addr, port []byte) (hostport.Target, error) {
	t := hostport.Target{Port: uint16(port[0])<<8 | uint16(port[1])}
	if t.Port == 0 {
		return t, errPort
	}
	if kind != addressName {
		ip, _ := netip.AddrFromSlice(addr) // 4 or 16 bytes
		t.Host = ip.String()
		return t, nil
	}
	t.Host = string(addr[1:])
	if t.Host == "" {
		return t, errName
	}
	if !isName(addr[1:]) {
		if ip, err := netip.ParseAddr(t.Host); err != nil || ip.Zone() != "" {
			return t, errName
		}
	}
	return t, nil
}

// isName reports whether every byte of b may be part of a host name.
func isName(b []byte) bool {
	for _, c := range b {
		if !hostport.NameByte(c) {
			return false
		}
	}
	return true
}

// Reply answers the request (RFC 1928 section 6). bound is the address from which
// the target is reached; the zero value is written as 0.0.0.0:0, which clients
// ignore and which discloses nothing about this host.
func (s *Server) Reply(w io.Writer, reply Reply, bound netip.AddrPort) error {
	b := append(s.buf[:0], Version, byte(reply), 0)
	switch addr := bound.Addr().Unmap(); {
	case addr.Is6():
		ip := addr.As16()
		b = append(append(b, addressIPv6), ip[:]...)
	case addr.Is4():
		ip := addr.As4()
		b = append(append(b, addressIPv4), ip[:]...)
	default:
		b = append(b, addressIPv4, 0, 0, 0, 0)
	}
	b = append(b, byte(bound.Port()>>8), byte(bound.Port()))
	_, err := w.Write(b)
	return err
}
