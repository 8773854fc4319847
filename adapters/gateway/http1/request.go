package http1

import (
	"bytes"
	"encoding/base64"

	"agentproxy/adapters/gateway/hostport"
)

// Exchange is what a response depends on of the request it answers. Unlike the
// head it owns its data. For an upstream proxy the caller sets it:
// with Exchange{Connect: true} a 2xx response has no body.
type Exchange struct {
	HTTP10  bool // the client uses HTTP/1.0: no chunks, no interim responses
	Head    bool // the method is HEAD
	Connect bool // the method is CONNECT
	Close   bool // the client's connection ends with this exchange
	Upgrade bool // the target was asked to switch to WebSocket
}

// RequestHead is a parsed request head of a proxy's client. The zero value is
// ready, and reusing one spares its allocations. What its methods return as
// bytes, and Append, are valid until the Reader is read again.
type RequestHead struct {
	header
	Body   Body // how the request's body is framed
	Minor  int  // HTTP/1.Minor, 0 or 1
	method []byte
	host   []byte // with the brackets of an IPv6 address
	port   uint16
	path   []byte // path and query; empty or beginning with / or ?
	ex     Exchange
	cred   []byte // scratch of Credentials
}

// ReadRequest reads one request head (RFC 9112 sections 2 to 6) of at most MaxHead
// bytes and MaxFields fields: CONNECT with host:port, or any other method with an
// absolute http:// URI. An *Error is a refusal, after which the connection must be
// closed; io.EOF an end before the first byte, io.ErrUnexpectedEOF one within the
// head; other errors are those of the underlying reader.
func ReadRequest(src *Reader, h *RequestHead) error {
	raw, err := src.head(true, MaxHead)
	if err != nil {
		return err
	}
	return h.parse(raw)
}

func (h *RequestHead) parse(raw []byte) error {
	h.header.reset(raw)
	end := bytes.IndexByte(raw, '\n') + 1
	if err := h.parseLine(raw[:end-2]); err != nil {
		return err
	}
	if err := h.header.parse(end); err != nil {
		return err
	}
	return h.check()
}

// parseLine reads the request line (RFC 9112 section 3).
func (h *RequestHead) parseLine(line []byte) error {
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if first < 0 || first == last {
		return errRequestLine
	}
	method, target, version := line[:first], line[first+1:last], line[last+1:]
	if !isToken(method) {
		return errMethod
	}
	minor, err := parseVersion(version)
	if err != nil {
		return err
	}
	h.method, h.Minor = method, minor
	if !all(target, targetByte) {
		return errTarget
	}
	if h.Connect() {
		return h.parseAuthority(target)
	}
	return h.parseURI(target)
}

func parseVersion(v []byte) (minor int, err error) {
	if len(v) != 8 || string(v[:5]) != "HTTP/" || v[6] != '.' || !isDigit(v[5]) || !isDigit(v[7]) {
		return 0, errRequestLine
	}
	if v[5] != '1' || v[7] > '1' {
		return 0, errVersion
	}
	return int(v[7] - '0'), nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// parseAuthority reads the target of CONNECT, which always names a port (RFC
// 9110 section 9.3.6). Some clients send an IPv6 address without brackets.
func (h *RequestHead) parseAuthority(b []byte) (err error) {
	if bytes.IndexByte(b, '@') >= 0 {
		return errUserInfo
	}
	h.path = nil
	var ok bool
	if h.host, h.port, ok = splitBareIPv6(b); ok {
		return nil
	}
	if h.host, h.port, err = splitAuthority(b); err == nil && h.port == 0 {
		err = errPort
	}
	return err
}

// parseURI reads a target in absolute-form (RFC 9112 section 3.2.2).
func (h *RequestHead) parseURI(b []byte) (err error) {
	colon := bytes.Index(b, schemeEnd)
	if colon <= 0 || b[0] == '/' {
		return errNotAbsolute
	}
	if !fold(b[:colon], "http") {
		return errScheme
	}
	b = b[colon+len(schemeEnd):]
	end := bytes.IndexAny(b, "/?")
	if end < 0 {
		end = len(b)
	}
	if bytes.IndexByte(b[:end], '@') >= 0 {
		return errUserInfo
	}
	h.path = b[end:]
	if h.host, h.port, err = splitAuthority(b[:end]); err == nil && h.port == 0 {
		h.port = 80
	}
	return err
}

var schemeEnd = []byte("://")

// check validates the fields as a whole and derives the framing (RFC 9112 section 6).
func (h *RequestHead) check() error {
	switch {
	case h.hosts > 1:
		return errHostTwice
	case h.hosts == 0 && h.Minor == 1 && !h.Connect():
		return errHostMissing
	case h.auths > 1:
		return errAuthTwice
	case h.chunked && h.length >= 0:
		return errTwoFramings
	case h.chunked && h.Minor == 0:
		return errTransferEncoding
	case h.Connect() && (h.chunked || h.length > 0):
		return errConnectBody
	case h.demands && h.Minor == 1:
		return errExpect
	}
	h.Body = framing(h.chunked, h.length)
	h.ex = Exchange{
		HTTP10:  h.Minor == 0,
		Head:    string(h.method) == "HEAD",
		Connect: h.Connect(),
		Close:   h.close || h.Minor == 0,
		Upgrade: h.upgradable(),
	}
	return h.checkHost()
}

// checkHost refuses a Host field that is not an authority. Its value is not used: the
// URI wins (RFC 9112 section 3.2.2).
func (h *RequestHead) checkHost() error {
	if h.hosts == 0 {
		return nil
	}
	for _, f := range h.fields {
		if f.kind != hostField || f.value == f.end {
			continue
		}
		if _, _, err := splitAuthority(h.value(f)); err != nil {
			if _, _, bare := splitBareIPv6(h.value(f)); !bare || !h.Connect() {
				return errHost
			}
		}
	}
	return nil
}

// Connect reports whether the request asks for a tunnel.
func (h *RequestHead) Connect() bool { return string(h.method) == "CONNECT" }

// Method returns the method as sent; methods are case-sensitive.
func (h *RequestHead) Method() []byte { return h.method }

// Path returns path and query as sent, empty for CONNECT.
func (h *RequestHead) Path() []byte { return h.path }

// Target returns where the request goes, which the Host field does not change. It
// allocates the name.
func (h *RequestHead) Target() hostport.Target {
	host := h.host
	if host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	return hostport.Target{Host: string(host), Port: h.port}
}

// ExpectContinue reports whether the client may wait for 100 (Continue) before it
// sends its body (RFC 9110 section 10.1.1).
func (h *RequestHead) ExpectContinue() bool {
	return h.expects && h.Minor == 1 && h.Body.Kind != NoBody && h.Body != Body{Sized, 0}
}

// Exchange returns what the response depends on. An HTTP/1.0 connection always
// ends, because a proxy must not keep one (RFC 9112 section 9.3).
func (h *RequestHead) Exchange() Exchange { return h.ex }

// Metered returns how many bytes of the head count as the client's traffic: all but
// the Proxy-Authorization line.
func (h *RequestHead) Metered() int {
	n := len(h.raw)
	if h.auths > 0 {
		line := h.raw[h.fields[h.auth].name:]
		n -= bytes.IndexByte(line, '\n') + 1
	}
	return n
}

// maxCredentials bounds the encoded user and password, about 510 bytes decoded.
const maxCredentials = 684

// Credentials decodes Proxy-Authorization: Basic (RFC 7617 section 2). ok is false
// if the field is absent, longer than 684 characters of base64, or not that. The
// password may contain colons. Both are valid until the next call or read.
func (h *RequestHead) Credentials() (user, password []byte, ok bool) {
	if h.auths != 1 {
		return nil, nil, false
	}
	scheme, encoded, _ := bytes.Cut(h.value(h.fields[h.auth]), []byte{' '})
	encoded = trim(encoded)
	if !fold(scheme, "basic") || len(encoded) > maxCredentials {
		return nil, nil, false
	}
	decoded, err := base64.StdEncoding.AppendDecode(h.cred[:0], encoded)
	if err != nil {
		return nil, nil, false
	}
	h.cred = decoded
	return bytes.Cut(decoded, []byte{':'})
}
