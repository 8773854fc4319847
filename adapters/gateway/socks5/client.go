package socks5

import (
	"errors"
	"io"
	"net/netip"

	"agentproxy/adapters/gateway/hostport"
)

// Errors of Connect, besides a Reply and the errors of the connection.
var (
	ErrMalformed  = errors.New("socks5: the proxy's answer is not one of RFC 1928 or RFC 1929")
	ErrRejected   = errors.New("socks5: the proxy rejects the credential")
	ErrCredential = errors.New("socks5: user name and password must not be longer than 255 bytes each")
)

// Connect requests a tunnel to t from an upstream proxy, by address if t is one and
// by name otherwise (RFC 1928). If user is not empty, user name and password are
// the only method offered (RFC 1929), so that no proxy accepts the connection
// under another identity; if it is empty, no authentication is the only method.
// It returns a Reply if the proxy refuses the request.
func Connect(rw io.ReadWriter, t hostport.Target, user, password string) error {
	if len(user) > 255 || len(password) > 255 {
		return ErrCredential
	}
	method := NoPassword
	if user != "" {
		method = Password
	}
	var buf [4 + 255 + 2]byte
	selected, err := exchange(rw, []byte{Version, 1, byte(method)}, buf[:2])
	switch {
	case err != nil:
		return err
	case selected[0] == Version && selected[1] == methodUnacceptable:
		return ErrRejected
	case selected[0] != Version || selected[1] != byte(method):
		return ErrMalformed
	}
	if method == Password {
		msg := append([]byte{authVersion, byte(len(user))}, user...)
		msg = append(append(msg, byte(len(password))), password...)
		status, err := exchange(rw, msg, buf[:2])
		switch {
		case err != nil:
			return err
		case status[0] != authVersion:
			return ErrMalformed
		case status[1] != 0:
			return ErrRejected
		}
	}
	reply, err := exchange(rw, request(t), buf[:4])
	switch {
	case err != nil:
		return err
	case reply[0] != Version:
		return ErrMalformed
	case Reply(reply[1]) != Succeeded:
		return Reply(reply[1]) // the rest of the message is not read
	}
	return readBound(rw, reply[3], buf[4:])
}

// exchange sends msg and reads an answer of len(answer) bytes.
func exchange(rw io.ReadWriter, msg, answer []byte) ([]byte, error) {
	if _, err := rw.Write(msg); err != nil {
		return nil, err
	}
	return answer, readFull(rw, answer)
}

// request encodes a request to connect to t.
func request(t hostport.Target) []byte {
	b := []byte{Version, commandConnect, 0}
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

// readBound skips the address from which the target is reached, and its port.
func readBound(r io.Reader, kind byte, buf []byte) error {
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
	return ErrMalformed
}
