// Package socks5 reads and writes both sides of a SOCKS5 handshake (RFC 1928)
// with user name and password (RFC 1929) or without. Only CONNECT is supported.
//
// Every function reads exactly the bytes of the messages it expects, so what
// follows on the connection belongs to the tunnel. A connection that ends within
// a message is io.ErrUnexpectedEOF. The package works on io.Reader and io.Writer:
// it never dials, starts no goroutine and sets no deadlines.
package socks5

import (
	"io"
	"strconv"
)

// Version is the first byte of every SOCKS5 message but those of RFC 1929. No
// HTTP method begins with it.
const Version = 0x05

// Reply is the answer to a SOCKS5 request (RFC 1928 section 6). Any other than
// Succeeded is also the error that a client gets.
type Reply byte

// The replies of RFC 1928 section 6.
const (
	Succeeded               Reply = 0x00
	GeneralFailure          Reply = 0x01
	NotAllowed              Reply = 0x02
	NetworkUnreachable      Reply = 0x03
	HostUnreachable         Reply = 0x04
	ConnectionRefused       Reply = 0x05
	TTLExpired              Reply = 0x06
	CommandNotSupported     Reply = 0x07 // BIND and UDP ASSOCIATE included
	AddressTypeNotSupported Reply = 0x08
)

// Error returns the description that RFC 1928 section 6 gives of the reply.
func (r Reply) Error() string {
	texts := [...]string{Succeeded: "succeeded", GeneralFailure: "general failure", NotAllowed: "not allowed by ruleset",
		NetworkUnreachable: "network unreachable", HostUnreachable: "host unreachable",
		ConnectionRefused: "connection refused", TTLExpired: "TTL expired",
		CommandNotSupported: "command not supported", AddressTypeNotSupported: "address type not supported"}
	text := "unassigned"
	if int(r) < len(texts) {
		text = texts[r]
	}
	return "SOCKS5 reply " + strconv.Itoa(int(r)) + ": " + text
}

// A Method is how a client proves who it is (RFC 1928 section 3).
type Method byte

// The methods that are supported.
const (
	NoPassword Method = 0x00
	Password   Method = 0x02 // RFC 1929
)

const (
	methodUnacceptable = 0xff
	authVersion        = 0x01
	commandConnect     = 0x01
	addressIPv4        = 0x01
	addressName        = 0x03
	addressIPv6        = 0x04
)

// readFull fills b. An end of the connection within b is io.ErrUnexpectedEOF.
func readFull(r io.Reader, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
