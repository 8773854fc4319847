package http1

import (
	"bytes"
	"strconv"
)

// MaxInterim is how many 1xx responses may precede a final one, and MaxInterimBytes
// how many bytes they may have together.
const (
	MaxInterim      = 16
	MaxInterimBytes = 16 << 10
)

// ResponseHead is a parsed response head of a target. The zero value is ready,
// and reusing one spares its allocations. Append is valid until the Reader is
// read again.
type ResponseHead struct {
	header
	Status       int
	Body         Body // how the body is framed, and whether chunks are taken off
	KeepUpstream bool // after the body the target's connection can serve again, if nothing is buffered
	KeepClient   bool // after the body the client's connection can serve again
	Withheld     int  // bytes of interim responses that ReadFinal did not pass on

	minor  int
	reason []byte
	http10 bool // of the client
	sizes  bool // Content-Length is passed on, be it only as information
}

// ReadResponse reads one response head (RFC 9112 sections 4 to 6), final or
// interim, of at most MaxHead bytes and MaxFields fields. An *Error has status 502;
// other errors are as of ReadRequest. Lines may end in a bare LF.
func ReadResponse(src *Reader, h *ResponseHead, ex Exchange) error {
	raw, err := src.head(false, MaxHead)
	if err == nil {
		err = h.parse(raw, ex)
	}
	return inResponse(err)
}

// ReadFinal reads response heads until a final one is in h. Each interim one is
// passed to interim, unless the client uses HTTP/1.0 and would take it for the
// final one (RFC 9110 section 15.2); interim may be nil. More than MaxInterim or
// MaxInterimBytes are an *Error; an error of interim is returned as it is.
func ReadFinal(src *Reader, h *ResponseHead, ex Exchange, interim func(*ResponseHead) error) error {
	h.Withheld = 0
	size := 0
	for range MaxInterim + 1 {
		if err := ReadResponse(src, h, ex); err != nil {
			return err
		}
		if !h.Interim() {
			return nil
		}
		if size += len(h.raw); size > MaxInterimBytes {
			return errInterimSize
		}
		if ex.HTTP10 || interim == nil {
			h.Withheld += len(h.raw)
			continue
		}
		if err := interim(h); err != nil {
			return err
		}
	}
	return errInterims
}

// Interim reports whether another head follows. 101 is final: a tunnel follows.
func (h *ResponseHead) Interim() bool { return h.Status < 200 && h.Status != 101 }

func (h *ResponseHead) parse(raw []byte, ex Exchange) error {
	h.header.reset(raw)
	end := bytes.IndexByte(raw, '\n') + 1
	line := bytes.TrimSuffix(raw[:end-1], []byte{'\r'})
	if err := h.parseLine(line); err != nil {
		return err
	}
	if err := h.header.parse(end); err != nil {
		return err
	}
	if h.Status == 101 && !(ex.Upgrade && h.websocket) {
		return errUpgrade
	}
	if h.chunked && h.minor == 0 {
		return errTransferEncoding
	}
	h.frame(ex)
	return nil
}

// parseLine reads the status line (RFC 9112 section 4). Statuses up to 999 pass:
// some sites invent them.
func (h *ResponseHead) parseLine(line []byte) error {
	if len(line) < 12 || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return errStatusLine
	}
	minor, err := parseVersion(line[:8])
	if err != nil {
		return errStatusLine
	}
	code := line[9:12]
	if !isDigit(code[0]) || !isDigit(code[1]) || !isDigit(code[2]) || code[0] == '0' {
		return errStatusLine
	}
	h.minor, h.reason = minor, nil
	h.Status = int(code[0]-'0')*100 + int(code[1]-'0')*10 + int(code[2]-'0')
	if len(line) > 13 {
		h.reason = line[13:]
	}
	if !all(h.reason, valueByte) {
		return errStatusLine
	}
	return nil
}

// frame decides where the body ends (RFC 9112 section 6.3) and which connections
// survive it. Chunked wins over Content-Length, but a target that sends both is
// not trusted with a second request.
func (h *ResponseHead) frame(ex Exchange) {
	h.http10 = ex.HTTP10
	bodiless := h.Status < 200 || h.Status == 204 || h.Status == 304 || ex.Head ||
		ex.Connect && h.Status < 300
	switch {
	case bodiless:
		h.Body = Body{Kind: NoBody}
	case h.chunked && ex.HTTP10:
		h.Body = Body{Kind: Unchunked}
	case h.chunked:
		h.Body = Body{Kind: Chunked}
	case h.length >= 0:
		h.Body = Body{Sized, h.length}
	default:
		h.Body = Body{Kind: UntilClose}
	}
	tunnel := h.Status == 101 || ex.Connect && h.Status >= 200 && h.Status < 300
	ends := h.Body.Kind == UntilClose || tunnel
	h.sizes = h.length >= 0 && !h.chunked && (h.Body.Kind == Sized || ex.Head || h.Status == 304) &&
		h.Status >= 200 && h.Status != 204 && !tunnel
	h.KeepUpstream = h.minor == 1 && !h.close && !ends && !(h.chunked && h.length >= 0)
	h.KeepClient = !ex.Close && !ex.HTTP10 && !ends
}

// Append appends the head as it goes to the client: HTTP/1.1, one framing,
// nothing hop-by-hop. It has Connection: close if closing is set or if the
// client's connection cannot go on, so that the client is informed before the end; an
// interim head never does. A Proxy-Status that names this gateway is dropped, so that
// a target cannot imitate its answers.
func (h *ResponseHead) Append(dst []byte, closing bool) []byte {
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(h.Status), 10)
	dst = append(append(append(dst, ' '), h.reason...), "\r\n"...)
	sized := false
	for _, f := range h.fields {
		switch f.kind {
		case plain, hostField, expect:
			if len(h.options) == 0 || !h.named(f) {
				dst = h.appendField(dst, f)
			}
		case proxyStatus:
			if !h.forged(f) && !h.named(f) {
				dst = h.appendField(dst, f)
			}
		case contentLength:
			if h.sizes && !sized {
				dst, sized = h.appendLength(dst, f), true
			}
		case transferEncoding:
			if h.Body.Kind == Chunked {
				dst = append(append(dst, h.name(f)...), ": chunked\r\n"...)
			}
		case upgrade:
			if h.Status == 101 {
				dst = append(h.appendField(dst, f), "Connection: Upgrade\r\n"...)
			}
		}
	}
	if (closing || !h.KeepClient) && h.Status >= 200 {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// forged reports whether a Proxy-Status of the target names this gateway. Backslashes are
// ignored: a lenient parser unescapes what no RFC 9651 string may escape.
func (h *ResponseHead) forged(f field) bool {
	value := bytes.ReplaceAll(h.value(f), []byte{'\\'}, nil)
	return bytes.Contains(bytes.ToLower(value), []byte(proxyName))
}
