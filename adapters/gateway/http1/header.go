package http1

import (
	"bytes"
	"strconv"
)

// MaxFields is how many field lines a head may have, and maxOptions how many
// options its Connection fields may name: each field is compared with each.
const (
	MaxFields  = 128
	maxOptions = 32
)

// kind is how a field is treated when a head is rewritten.
type kind uint8

const (
	plain              kind = iota // end to end, unless Connection names it
	hop                            // for one connection only; dropped
	hostField                      // replaced by the target's authority
	contentLength                  // replaced by the parsed framing
	transferEncoding               // replaced by the parsed framing
	connection                     // consumed
	proxyAuthorization             // consumed
	upgrade                        // passed on for WebSocket only
	expect                         // passed on if there is a body to wait with
	proxyStatus                    // dropped if it names this gateway
)

// kindOf classifies a field name. The hop-by-hop names are those of RFC 9110 section
// 7.6.1, of RFC 2616 section 13.5.1, and HTTP2-Settings. Trailer is among them
// because trailers end here (see CopyResponse).
func kindOf(name []byte) kind {
	switch len(name) {
	case 2:
		return pick(name, "te", hop)
	case 4:
		return pick(name, "host", hostField)
	case 6:
		return pick(name, "expect", expect)
	case 7:
		if fold(name, "upgrade") {
			return upgrade
		}
		return pick(name, "trailer", hop)
	case 10:
		if fold(name, "connection") {
			return connection
		}
		return pick(name, "keep-alive", hop)
	case 12:
		return pick(name, "proxy-status", proxyStatus)
	case 14:
		if fold(name, "content-length") {
			return contentLength
		}
		return pick(name, "http2-settings", hop)
	case 16:
		return pick(name, "proxy-connection", hop)
	case 17:
		return pick(name, "transfer-encoding", transferEncoding)
	case 18:
		return pick(name, "proxy-authenticate", hop)
	case 19:
		return pick(name, "proxy-authorization", proxyAuthorization)
	case 25:
		return pick(name, "proxy-authentication-info", hop)
	}
	return plain
}

func pick(name []byte, lower string, k kind) kind {
	if fold(name, lower) {
		return k
	}
	return plain
}

// field is one field line by offsets into the head, whose 32 KiB fit 16 bits.
type field struct {
	name, colon, value, end uint16 // name ends at colon, the trimmed value at end
	kind                    kind
}

// header is the common part of request and response heads. The bytes belong to
// the Reader that the head was read from.
type header struct {
	raw     []byte
	fields  []field
	options [][]byte // what Connection lists, except close, keep-alive and upgrade

	length    int64 // Content-Length, -1 if absent
	hosts     int
	auths     int // how many Proxy-Authorization there are
	auth      int // the index of the last one, if any
	upgrades  int
	chunked   bool
	close     bool // Connection: close, or Proxy-Connection: close
	upgrading bool // Connection: upgrade
	websocket bool // Upgrade: websocket, and nothing else
	expects   bool // Expect: 100-continue
	demands   bool // Expect: something else
}

func (h *header) reset(raw []byte) {
	*h = header{raw: raw, fields: h.fields[:0], options: h.options[:0], length: -1}
}

func (h *header) name(f field) []byte  { return h.raw[f.name:f.colon] }
func (h *header) value(f field) []byte { return h.raw[f.value:f.end] }

// parse reads the field lines from offset at to the end of the head.
func (h *header) parse(at int) error {
	for {
		next := at + bytes.IndexByte(h.raw[at:], '\n') + 1
		end := next - 1
		if end > at && h.raw[end-1] == '\r' {
			end--
		}
		if end == at {
			return nil
		}
		if len(h.fields) == MaxFields {
			return errFieldCount
		}
		f, err := parseField(h.raw, at, end)
		if err != nil {
			return err
		}
		if f.kind != plain {
			if err := h.note(f); err != nil {
				return err
			}
		}
		h.fields = append(h.fields, f)
		at = next
	}
}

// parseField reads the field line raw[at:end] (RFC 9112 section 5).
func parseField(raw []byte, at, end int) (field, error) {
	line := raw[at:end]
	if line[0] == ' ' || line[0] == '\t' {
		return field{}, errFold
	}
	colon := 0
	for colon < len(line) && class[line[colon]]&tokenByte != 0 {
		colon++
	}
	if colon == 0 || colon == len(line) || line[colon] != ':' {
		return field{}, errFieldName
	}
	value := colon + 1
	for value < len(line) && (line[value] == ' ' || line[value] == '\t') {
		value++
	}
	last := len(line)
	for last > value && (line[last-1] == ' ' || line[last-1] == '\t') {
		last--
	}
	if !all(line[value:last], valueByte) {
		return field{}, errFieldValue
	}
	return field{uint16(at), uint16(at + colon), uint16(at + value), uint16(at + last), kindOf(line[:colon])}, nil
}

// note records the meaning of a field that is not plain.
func (h *header) note(f field) error {
	v := h.value(f)
	switch f.kind {
	case hostField:
		h.hosts++
	case contentLength:
		n, ok := parseLength(v)
		if !ok || h.length >= 0 && h.length != n {
			return errContentLength
		}
		h.length = n
	case transferEncoding:
		if h.chunked || !fold(v, "chunked") {
			return errTransferEncoding
		}
		h.chunked = true
	case connection:
		return h.noteOptions(v)
	case proxyAuthorization:
		h.auths++
		h.auth = len(h.fields)
	case upgrade:
		h.upgrades++
		h.websocket = h.upgrades == 1 && fold(v, "websocket")
	case expect:
		met := fold(v, "100-continue")
		h.expects, h.demands = h.expects || met, h.demands || !met
	case hop:
		h.close = h.close || fold(h.name(f), "proxy-connection") && fold(v, "close")
	}
	return nil
}

func (h *header) noteOptions(v []byte) error {
	for more := true; more; {
		var option []byte
		option, v, more = bytes.Cut(v, comma)
		option = trim(option)
		switch {
		case len(option) == 0:
		case !isToken(option):
			return errConnection
		case fold(option, "close"):
			h.close = true
		case fold(option, "keep-alive"): // the default, and never passed on
		case fold(option, "upgrade"):
			h.upgrading = true
		case len(h.options) == maxOptions:
			return errOptionCount
		default:
			h.options = append(h.options, option)
		}
	}
	return nil
}

var comma = []byte{','}

// named reports whether Connection lists a plain field, which is then dropped.
// Fields of the other kinds are rewritten whatever Connection lists.
func (h *header) named(f field) bool {
	for _, o := range h.options {
		if foldBytes(o, h.name(f)) {
			return true
		}
	}
	return false
}

// appendField copies a field line without the spaces after its value.
func (h *header) appendField(dst []byte, f field) []byte {
	return append(append(dst, h.raw[f.name:f.end]...), "\r\n"...)
}

// appendLength writes the parsed Content-Length under the name its sender used.
func (h *header) appendLength(dst []byte, f field) []byte {
	dst = append(append(dst, h.name(f)...), ": "...)
	return append(strconv.AppendInt(dst, h.length, 10), "\r\n"...)
}
