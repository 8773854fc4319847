package http1

import "strconv"

// upgradable reports whether the request asks for WebSocket (RFC 6455 section 4.1),
// the only upgrade that is forwarded. Any other is dropped, as a target may always
// ignore it (RFC 9110 section 7.8).
func (h *RequestHead) upgradable() bool {
	return h.upgrading && h.websocket && h.Minor == 1 && h.Body.Kind == NoBody && string(h.method) == "GET"
}

// Append appends the head as it goes to the target: origin-form, HTTP/1.1, Host
// from the URI, one framing, nothing that is hop-by-hop or named by Connection,
// and nothing added that reveals a proxy. Order and spelling of the client's
// fields stay, because targets look at both. It is not for CONNECT.
func (h *RequestHead) Append(dst []byte) []byte {
	dst = append(append(dst, h.method...), ' ')
	dst = append(h.appendPath(dst), " HTTP/1.1\r\n"...)
	if h.hosts == 0 {
		dst = h.appendAuthority(append(dst, "Host: "...))
	}
	framed, upgraded := false, false
	for _, f := range h.fields {
		switch f.kind {
		case plain, proxyStatus:
			if len(h.options) == 0 || !h.named(f) {
				dst = h.appendField(dst, f)
			}
		case hostField:
			dst = h.appendAuthority(append(append(dst, h.name(f)...), ": "...))
		case contentLength:
			if !framed {
				dst, framed = h.appendLength(dst, f), true
			}
		case transferEncoding:
			dst = append(append(dst, h.name(f)...), ": chunked\r\n"...)
		case connection:
			if h.ex.Upgrade && !upgraded {
				dst, upgraded = append(append(dst, h.name(f)...), ": Upgrade\r\n"...), true
			}
		case upgrade:
			if h.ex.Upgrade {
				dst = h.appendField(dst, f)
			}
		case expect:
			if h.ExpectContinue() {
				dst = h.appendField(dst, f)
			}
		}
	}
	return append(dst, "\r\n"...)
}

// appendPath writes the origin-form (RFC 9112 section 3.2.1). OPTIONS for a whole
// server has the asterisk-form (section 3.2.4).
func (h *RequestHead) appendPath(dst []byte) []byte {
	switch {
	case len(h.path) == 0 && string(h.method) == "OPTIONS":
		return append(dst, '*')
	case len(h.path) == 0 || h.path[0] == '?':
		dst = append(dst, '/')
	}
	return append(dst, h.path...)
}

// appendAuthority writes the Host value, without the default port (RFC 9110
// section 4.2.3).
func (h *RequestHead) appendAuthority(dst []byte) []byte {
	dst = append(dst, h.host...)
	if h.port != 80 {
		dst = strconv.AppendUint(append(dst, ':'), uint64(h.port), 10)
	}
	return append(dst, "\r\n"...)
}
