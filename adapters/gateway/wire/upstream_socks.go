package wire

import (
	"errors"
	"io"
	"net/netip"
	"strconv"
)

// What an upstream SOCKS5 proxy can have against a tunnel before it is asked for
// one.
var (
	ErrSocksAnswer     = errors.New("wire: the proxy's answer is not one of RFC 1928 or RFC 1929")
	ErrSocksRejected   = errors.New("wire: the proxy does not take the credential")
	ErrSocksCredential = errors.New("wire: user name and password must not be longer than 255 bytes each")
)

// SocksRefusal is the reply other than SocksGranted of an upstream SOCKS5 proxy.
type SocksRefusal byte

// Error returns what RFC 1928 section 6 says of the reply.
func (r SocksRefusal) Error() string {
	texts := [...]string{SocksFailure: "general failure", SocksForbidden: "not allowed by ruleset",
		SocksNetUnreachable: "network unreachable", SocksHostUnreachable: "host unreachable",
		SocksRefused: "connection refused", SocksTTLExpired: "TTL expired",
		SocksCommandUnknown: "command not supported", SocksAddressTypeUnknown: "address type not supported"}
	text := "unassigned"
	if int(r) < len(texts) {
		text = texts[r]
	}
	return "SOCKS5 reply " + strconv.Itoa(int(r)) + ": " + text
}

// SocksConnect asks an upstream proxy for a tunnel to t, by address if t is one and
// by name else (RFC 1928). A user name that is not empty is offered with its
// password as the only method (RFC 1929), so that no proxy lets us in as somebody
// else; without one the only method is none. Exactly the bytes of the answers are
// read: what follows is the target's. A refused request is a SocksRefusal; an end
// of the connection is io.ErrUnexpectedEOF.
func SocksConnect(rw io.ReadWriter, t Target, user, password string) error {
	if len(user) > 255 || len(password) > 255 {
		return ErrSocksCredential
	}
	method := byte(0)
	if user != "" {
		method = methodPassword
	}
	var buf [4 + 255 + 2]byte
	chosen, err := socksAsk(rw, []byte{SocksVersion, 1, method}, buf[:2])
	switch {
	case err != nil:
		return err
	case chosen[0] == SocksVersion && chosen[1] == methodNone:
		return ErrSocksRejected
	case chosen[0] != SocksVersion || chosen[1] != method:
		return ErrSocksAnswer
	}
	if method == methodPassword {
		msg := append([]byte{authVersion, byte(len(user))}, user...)
		msg = append(append(msg, byte(len(password))), password...)
		status, err := socksAsk(rw, msg, buf[:2])
		switch {
		case err != nil:
			return err
		case status[0] != authVersion:
			return ErrSocksAnswer
		case status[1] != 0:
			return ErrSocksRejected
		}
	}
	reply, err := socksAsk(rw, socksRequest(t), buf[:4])
	switch {
	case err != nil:
		return err
	case reply[0] != SocksVersion:
		return ErrSocksAnswer
	case reply[1] != SocksGranted:
		return SocksRefusal(reply[1]) // what follows does not matter any more
	}
	return socksBound(rw, reply[3], buf[4:])
}

func socksAsk(rw io.ReadWriter, msg, answer []byte) ([]byte, error) {
	if _, err := rw.Write(msg); err != nil {
		return nil, err
	}
	return answer, readFull(rw, answer)
}

func socksRequest(t Target) []byte {
	b := []byte{SocksVersion, commandConnect, 0}
	if addr, err := netip.ParseAddr(t.Host); err == nil {
		kind := byte(addressIPv4)
		if addr = addr.WithZone(""); addr.Is6() {
			kind = addressIPv6
		}
		b = append(append(b, kind), addr.AsSlice()...)
	} else {
		b = append(append(b, addressName, byte(len(t.Host))), t.Host...)
	}
	return append(b, byte(t.Port>>8), byte(t.Port))
}

// socksBound reads over the address that the target is reached from, and its port.
func socksBound(r io.Reader, kind byte, buf []byte) error {
	switch kind {
	case addressIPv4:
		return readFull(r, buf[:4+2])
	case addressIPv6:
		return readFull(r, buf[:16+2])
	case addressName:
		if err := readFull(r, buf[:1]); err != nil {
			return err
		}
		return readFull(r, buf[:int(buf[0])+2])
	}
	return ErrSocksAnswer
}
