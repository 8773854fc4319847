package upstreamproxy

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// socks serves one SOCKS5 CONNECT with a user name and a password (RFC 1928 and RFC 1929).
func (p *Proxy) socks(c net.Conn, br *bufio.Reader) {
	say := func(b ...byte) { _, _ = c.Write(b) }
	head := make([]byte, 2)
	if _, err := io.ReadFull(br, head); err != nil {
		return
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(br, methods); err != nil {
		return
	}
	if !slices.Contains(methods, 2) {
		say(5, 0xff)
		return
	}
	fault, late := p.fault()
	switch fault {
	case Drop:
		return
	case Garbage:
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		return
	case Slow:
		p.wait(late)
		fault = None
	}
	say(5, 2)
	if _, err := br.ReadByte(); err != nil {
		return
	}
	user, err := text(br)
	if err != nil {
		return
	}
	password, err := text(br)
	if err != nil {
		return
	}
	if fault == None {
		_, _, fault, _ = p.admit(user, password)
	}
	if fault == Unauthorized || fault == Exhausted || fault == Unfunded {
		say(1, 1)
		return
	}
	say(1, 0)
	target, code := address(br)
	if code != 0 {
		say(5, code, 0, 1, 0, 0, 0, 0, 0, 0)
		return
	}
	var a *account
	var exit netip.Addr
	if fault == None {
		a, exit, fault, _ = p.enter("socks5", user, password, target)
	}
	if fault != None {
		say(5, reply(fault), 0, 1, 0, 0, 0, 0, 0, 0)
		return
	}
	to, err := p.dial(target, exit)
	if err != nil {
		say(5, 5, 0, 1, 0, 0, 0, 0, 0, 0)
		return
	}
	defer p.drop(to)
	say(5, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	p.relay(c, br, to, a)
}

// reply returns the nearest code for a fault.
func reply(f Fault) byte {
	switch f {
	case Forbidden, Unauthorized, Exhausted, Unfunded, PaymentRequired:
		return 2
	case NoStock:
		return 4
	}
	return 1
}

// text reads a text behind the byte of its length.
func text(br *bufio.Reader) (string, error) {
	n, err := br.ReadByte()
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(br, b)
	return string(b), err
}

// address reads a request and returns its target, or the code that refuses it.
func address(br *bufio.Reader) (string, byte) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(br, head); err != nil || head[0] != 5 {
		return "", 1
	}
	if head[1] != 1 {
		return "", 7
	}
	var host string
	switch head[3] {
	case 1, 4:
		b := make([]byte, map[byte]int{1: 4, 4: 16}[head[3]])
		if _, err := io.ReadFull(br, b); err != nil {
			return "", 1
		}
		ip, _ := netip.AddrFromSlice(b)
		host = ip.String()
	case 3:
		var err error
		if host, err = text(br); err != nil {
			return "", 1
		}
	default:
		return "", 8
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(br, port); err != nil {
		return "", 1
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), 0
}
