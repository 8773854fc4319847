package h2

import (
	"io"
	"net/http"
	"slices"
	"strconv"
)

// request is a request of HTTP/2 as the bytes of HTTP/1.1. Names have the spelling that Go's clients of HTTP/1.1 give
// them, and the order of the alphabet, since the engine keeps none.
type request struct {
	pending []byte // not yet read: the head, or a chunk
	body    io.Reader
	chunked bool
	last    bool // nothing follows what is pending
	err     error
}

func (q *request) init(r *http.Request) {
	q.body = r.Body
	q.pending = appendHead(make([]byte, 0, 512), r)
	if r.Method != http.MethodConnect {
		q.chunked = r.ContentLength < 0
		q.last = r.ContentLength == 0
	}
}

// appendHead appends the head of HTTP/1.1. What a value or a path may contain is checked by who reads it, except for
// the ends of lines, which the engine refuses.
func appendHead(b []byte, r *http.Request) []byte {
	b = append(append(b, r.Method...), ' ')
	if r.Method != http.MethodConnect {
		scheme := "http://"
		if r.TLS != nil { // the engine sets it for the scheme alone
			scheme = "https://"
		}
		b = append(append(b, scheme...), r.Host...)
	}
	if r.RequestURI != "*" {
		b = append(b, r.RequestURI...)
	}
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), r.Host...), "\r\n"...)
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "Content-Length" {
			continue
		}
		for _, value := range r.Header[name] {
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	switch _, sized := r.Header["Content-Length"]; {
	case r.Method == http.MethodConnect:
	case r.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case r.ContentLength > 0 || sized:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), r.ContentLength, 10), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// chunkFrame is what a chunk has besides its data: four digits and two ends of lines.
const chunkFrame = 8

// leastChunk is the space below which a chunk goes through a buffer.
const leastChunk = 512

func (q *request) read(p []byte) (int, error) {
	switch {
	case len(q.pending) > 0:
		n := copy(p, q.pending)
		if q.pending = q.pending[n:]; len(q.pending) == 0 {
			q.pending = nil
		}
		return n, nil
	case q.err != nil:
		return 0, q.err
	case q.last:
		return 0, io.EOF
	case !q.chunked:
		return q.body.Read(p)
	case len(p) < leastChunk:
		var chunk [leastChunk]byte
		n := q.chunk(chunk[:])
		q.pending = append(q.pending, chunk[:n]...)
		return q.read(p)
	}
	if n := q.chunk(p); n > 0 {
		return n, nil
	}
	return q.read(p)
}

// chunk reads a piece of the body into p as a chunk, or the last chunk. It returns 0 after an error, which it keeps.
func (q *request) chunk(p []byte) int {
	most := min(len(p)-chunkFrame, 0xffff)
	n, err := q.body.Read(p[6 : 6+most])
	if n > 0 {
		const digits = "0123456789abcdef"
		for i := range 4 {
			p[i] = digits[n>>(12-4*i)&15]
		}
		p[4], p[5], p[6+n], p[7+n] = '\r', '\n', '\r', '\n'
		n += chunkFrame
	}
	switch {
	case err == io.EOF:
		q.last = true
		q.pending = append(q.pending, "0\r\n\r\n"...)
	case err != nil:
		q.err = err
	}
	return n
}
