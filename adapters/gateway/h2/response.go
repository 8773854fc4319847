package h2

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
)

// The parts of a response as its bytes arrive.
type part uint8

const (
	inHead  part = iota
	inBody       // of a length, or until the end
	inSize       // the line before a chunk
	inChunk      // its data
	inCRLF       // behind its data
	inEnd        // the empty line behind the last chunk
	isOver
)

// response takes the bytes of a response of HTTP/1.1, which the gateway has written itself or made of what it checked,
// and sends them by HTTP/2.
type response struct {
	w                http.ResponseWriter
	control          *http.ResponseController
	tunnel, bodiless bool

	at   part
	line []byte // the beginning of a head or of a line
	left int64  // of the body or the chunk; negative: until the end
	crlf int    // bytes of it
}

// errResponse is the error of a response that the gateway should not have written.
var errResponse = errors.New("h2: this is no response of HTTP/1.1")

// complete reports whether nothing is missing.
func (r *response) complete() bool { return r.at == isOver || r.at == inBody && r.left <= 0 }

// write takes the next bytes. It returns how many were sent.
func (r *response) write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.some(p[n:])
		n += m
	}
	if err == nil && r.at != inHead {
		err = r.control.Flush()
	}
	return n, err
}

// some takes at least one byte.
func (r *response) some(p []byte) (int, error) {
	switch r.at {
	case inHead:
		return r.head(p)
	case inBody, inChunk:
		if r.left >= 0 && int64(len(p)) > r.left {
			p = p[:r.left]
		}
		if len(p) == 0 {
			return 0, errResponse
		}
		n, err := r.w.Write(p)
		if r.left >= 0 {
			if r.left -= int64(n); r.left == 0 && r.at == inChunk {
				r.at, r.crlf = inCRLF, 2
			}
		}
		return n, err
	case inCRLF, inEnd:
		if r.crlf--; r.crlf == 0 {
			if r.at++; r.at == inEnd {
				r.at = inSize
			}
		}
		return 1, nil
	case inSize:
		return r.size(p)
	}
	return 0, errResponse
}

// until moves bytes up to an end into line, and reports whether it was there.
func (r *response) until(p []byte, end string) (n int, found bool) {
	for n < len(p) {
		r.line = append(r.line, p[n])
		if n++; p[n-1] == '\n' && bytes.HasSuffix(r.line, []byte(end)) {
			return n, true
		}
	}
	return n, false
}

func (r *response) size(p []byte) (int, error) {
	n, found := r.until(p, "\r\n")
	if !found {
		return n, nil
	}
	size, err := strconv.ParseUint(string(bytes.TrimSuffix(r.line, []byte("\r\n"))), 16, 62)
	r.line = r.line[:0]
	if err != nil {
		return n, errResponse
	}
	r.left, r.at = int64(size), inChunk
	if size == 0 {
		r.at, r.crlf = inEnd, 2
	}
	return n, nil
}

// head takes a head. An interim one is sent, and another follows.
func (r *response) head(p []byte) (int, error) {
	n, found := r.until(p, "\r\n\r\n")
	if !found {
		return n, nil
	}
	lines := bytes.Split(bytes.TrimSuffix(r.line, []byte("\r\n\r\n")), []byte("\r\n"))
	if len(lines[0]) < len("HTTP/1.1 200") {
		return n, errResponse
	}
	status, err := strconv.Atoi(string(lines[0][9:12]))
	if err != nil || status == http.StatusSwitchingProtocols {
		return n, errResponse
	}
	header := r.w.Header()
	clear(header)
	r.left = -1
	chunked := false
	for _, line := range lines[1:] {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return n, errResponse
		}
		key, text := http.CanonicalHeaderKey(string(name)), string(bytes.TrimSpace(value))
		switch key {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade":
			continue
		case "Transfer-Encoding":
			chunked = true
			continue
		case "Content-Length":
			if r.left, err = strconv.ParseInt(text, 10, 64); err != nil {
				return n, errResponse
			}
		}
		header[key] = append(header[key], text)
	}
	r.line = nil
	if status < 200 {
		r.w.WriteHeader(status)
		clear(header)
		return n, nil
	}
	for _, key := range []string{"Date", "Content-Type"} { // which the engine would add
		if _, ok := header[key]; !ok {
			header[key] = nil
		}
	}
	switch {
	case r.tunnel && status < 300:
		r.at, r.left = inBody, -1
	case r.bodiless || status == http.StatusNoContent || status == http.StatusNotModified:
		r.at = isOver
	case chunked:
		r.at = inSize
	default:
		r.at = inBody
	}
	r.w.WriteHeader(status)
	return n, nil
}
