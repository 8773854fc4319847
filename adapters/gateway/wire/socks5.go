package wire

import (
	"errors"
	"io"
	"net/netip"
)

// SocksVersion is the first byte of every SOCKS5 message but those of RFC 1929.
// No HTTP method begins with it.
const SocksVersion = 0x05

// The replies to a SOCKS5 request (RFC 1928 section 6).
const (
	SocksGranted            = 0x00
	SocksFailure            = 0x01 // general failure
	SocksForbidden          = 0x02 // refused by the rules of this server
	SocksNetUnreachable     = 0x03
	SocksHostUnreachable    = 0x04
	SocksRefused            = 0x05 // the target refused the connection
	SocksTTLExpired         = 0x06
	SocksCommandUnknown     = 0x07 // BIND and UDP ASSOCIATE included
	SocksAddressTypeUnknown = 0x08
)

const (
	methodPassword = 0x02
	methodNone     = 0xff
	authVersion    = 0x01
	commandConnect = 0x01
	addressIPv4    = 0x01
	addressName    = 0x03
	addressIPv6    = 0x04
)

// Faults of a SOCKS5 handshake before its request. After each the connection is
// closed without another word.
var (
	ErrSocksVersion = errors.New("wire: not a SOCKS5 handshake")
	ErrSocksMethod  = errors.New("wire: the client does not offer user name and password")
	ErrSocksAuth    = errors.New("wire: not a user name and password of RFC 1929")
)

// SocksError is a SOCKS5 request that is refused; Code is the reply it gets.
type SocksError struct {
	Code   byte
	Reason string
}

// Error returns the reason.
func (e *SocksError) Error() string { return "wire: " + e.Reason }

var (
	errSocksCommand     = &SocksError{SocksCommandUnknown, "the SOCKS5 command is not CONNECT"}
	errSocksAddressType = &SocksError{SocksAddressTypeUnknown, "the SOCKS5 address type is unknown"}
	errSocksName        = &SocksError{SocksFailure, "the SOCKS5 target is not a name or an address"}
	errSocksPort        = &SocksError{SocksFailure, "the SOCKS5 target has port 0"}
)

// Socks is the server's side of a SOCKS5 handshake: Greet, Auth, Status, Request,
// Reply. The zero value is ready and can be reused; it is only scratch memory.
// Each reads exactly the bytes of its message, at most 513 of them. A connection
// that ends within one is io.ErrUnexpectedEOF.
type Socks struct {
	buf [513]byte
}

// Greet reads the greeting (RFC 1928 section 3) and chooses user name and
// password. If that is not on offer it answers 0xFF and returns ErrSocksMethod.
func (s *Socks) Greet(r io.Reader, w io.Writer) error {
	b := s.buf[:2]
	if err := readFull(r, b); err != nil {
		return err
	}
	if b[0] != SocksVersion {
		return ErrSocksVersion
	}
	methods := s.buf[2 : 2+int(b[1])]
	if err := readFull(r, methods); err != nil {
		return err
	}
	chosen := byte(methodNone)
	for _, m := range methods {
		if m == methodPassword {
			chosen = m
		}
	}
	s.buf[1] = chosen
	if _, err := w.Write(s.buf[:2]); err != nil {
		return err
	}
	if chosen == methodNone {
		return ErrSocksMethod
	}
	return nil
}

// Auth reads user name and password, 1 to 255 bytes each (RFC 1929 section 2).
// They are valid until the next call of a method of s.
func (s *Socks) Auth(r io.Reader) (user, password []byte, err error) {
	b := s.buf[:]
	if err := readFull(r, b[:2]); err != nil {
		return nil, nil, err
	}
	if b[0] != authVersion || b[1] == 0 {
		return nil, nil, ErrSocksAuth
	}
	n := 2 + int(b[1])
	if err := readFull(r, b[2:n+1]); err != nil {
		return nil, nil, err
	}
	end := n + 1 + int(b[n])
	if end == n+1 {
		return nil, nil, ErrSocksAuth
	}
	if err := readFull(r, b[n+1:end]); err != nil {
		return nil, nil, err
	}
	return b[2:n], b[n+1 : end], nil
}

// Status answers user name and password; after a refusal the connection must be
// closed (RFC 1929 section 2).
func (s *Socks) Status(w io.Writer, ok bool) error {
	s.buf[0], s.buf[1] = authVersion, 1
	if ok {
		s.buf[1] = 0
	}
	_, err := w.Write(s.buf[:2])
	return err
}

// Request reads the request (RFC 1928 section 4). A *SocksError carries the reply
// to send before closing. A name that spells an IP address is returned as it is.
func (s *Socks) Request(r io.Reader) (Target, error) {
	b := s.buf[:]
	if err := readFull(r, b[:5]); err != nil { // the shortest request has more
		return Target{}, err
	}
	if b[0] != SocksVersion {
		return Target{}, ErrSocksVersion
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
		return Target{}, errSocksAddressType
	}
	if err := readFull(r, b[5:end+2]); err != nil {
		return Target{}, err
	}
	if b[1] != commandConnect {
		return Target{}, errSocksCommand
	}
	return socksTarget(b[3], b[4:end], b[end:end+2])
}

func socksTarget(kind byte, addr, port []byte) (Target, error) {
	t := Target{Port: uint16(port[0])<<8 | uint16(port[1])}
	if t.Port == 0 {
		return t, errSocksPort
	}
	if kind != addressName {
		ip, _ := netip.AddrFromSlice(addr) // 4 or 16 bytes
		t.Host = ip.String()
		return t, nil
	}
	t.Host = string(addr[1:])
	if t.Host == "" {
		return t, errSocksName
	}
	if !all(addr[1:], hostByte) {
		if ip, err := netip.ParseAddr(t.Host); err != nil || ip.Zone() != "" {
			return t, errSocksName
		}
	}
	return t, nil
}

// Reply answers the request (RFC 1928 section 6). bound is the address from which
// the target is reached; the zero value is written as 0.0.0.0:0, which clients
// ignore and which tells nothing about us.
func (s *Socks) Reply(w io.Writer, code byte, bound netip.AddrPort) error {
	b := append(s.buf[:0], SocksVersion, code, 0)
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

// readFull fills b; an end is never expected within a handshake.
func readFull(r io.Reader, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := io.ReadFull(r, b)
	return cutShort(err, true)
}
