package http1_test

import (
	"strings"
	"testing"
)

const get = "GET http://a/ HTTP/1.1\r\nHost: a\r\n"

const post = "POST http://a/ HTTP/1.1\r\nHost: a\r\n"

// refused is what two readers could understand differently, with the status that
// its sender gets.
var refused = []struct {
	name, head string
	status     int
}{
	{"both framings", post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"both framings, other order", post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n", 400},
	{"length of nothing and chunked", post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"conflicting lengths", post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n", 400},
	{"conflicting lengths, one empty", post + "Content-Length: 4\r\nContent-Length:\r\n\r\n", 400},
	{"a list of lengths", post + "Content-Length: 4, 4\r\n\r\n", 400},
	{"a signed length", post + "Content-Length: +4\r\n\r\n", 400},
	{"a negative length", post + "Content-Length: -1\r\n\r\n", 400},
	{"a hexadecimal length", post + "Content-Length: 0x4\r\n\r\n", 400},
	{"a length with a space", post + "Content-Length: 4 4\r\n\r\n", 400},
	{"a length with an underscore", post + "Content-Length: 1_0\r\n\r\n", 400},
	{"a length that overflows", post + "Content-Length: 18446744073709551620\r\n\r\n", 400},
	{"a length in other digits", post + "Content-Length: ٤\r\n\r\n", 400},
	{"identity", post + "Transfer-Encoding: identity\r\n\r\n", 400},
	{"gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
	{"chunked, identity", post + "Transfer-Encoding: chunked, identity\r\n\r\n", 400},
	{"chunked twice in a list", post + "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
	{"chunked twice in two fields", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"chunked and something else in two fields", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n", 400},
	{"xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n", 400},
	{"quoted chunked", post + "Transfer-Encoding: \"chunked\"\r\n\r\n", 400},
	{"chunked with a parameter", post + "Transfer-Encoding: chunked;a=b\r\n\r\n", 400},
	{"chunked with a vertical tab", post + "Transfer-Encoding: \x0bchunked\r\n\r\n", 400},
	{"chunked with a Kelvin sign", post + "Transfer-Encoding: chun\u212aed\r\n\r\n", 400},
	{"an empty transfer coding", post + "Transfer-Encoding:\r\n\r\n", 400},
	{"chunked in HTTP/1.0", "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"space before the colon", post + "Content-Length : 4\r\n\r\n", 400},
	{"space before the colon of chunked", post + "Transfer-Encoding : chunked\r\n\r\n", 400},
	{"tab before the colon", post + "Transfer-Encoding\t: chunked\r\n\r\n", 400},
	{"a folded field", get + "X: y\r\n Content-Length: 4\r\n\r\n", 400},
	{"a folded field by tab", get + "X: y\r\n\tTransfer-Encoding: chunked\r\n\r\n", 400},
	{"a first field that is folded", "GET http://a/ HTTP/1.1\r\n Host: a\r\n\r\n", 400},
	{"a bare LF after a field", get + "X: y\nContent-Length: 4\r\n\r\n", 400},
	{"a bare LF after the request line", "GET http://a/ HTTP/1.1\nHost: a\r\n\r\n", 400},
	{"bare LFs only", "GET http://a/ HTTP/1.1\nHost: a\n\n", 400},
	{"a bare LF as the empty line", get + "\n", 400},
	{"a bare CR in a value", get + "X: y\rContent-Length: 4\r\n\r\n", 400},
	{"two CRs", get + "X: y\r\r\n\r\n", 400},
	{"a NUL in a value", get + "X: y\x00\r\n\r\n", 400},
	{"a NUL in a name", get + "X\x00: y\r\n\r\n", 400},
	{"a DEL in a value", get + "X: \x7f\r\n\r\n", 400},
	{"a name with a space", get + "X Y: z\r\n\r\n", 400},
	{"a name with other letters", get + "Contént-Length: 4\r\n\r\n", 400},
	{"no name", get + ": y\r\n\r\n", 400},
	{"no colon", get + "Content-Length\r\n\r\n", 400},
	{"two Host fields", get + "Host: a\r\n\r\n", 400},
	{"two Host fields that differ", get + "hOST: b\r\n\r\n", 400},
	{"no Host field", "GET http://a/ HTTP/1.1\r\n\r\n", 400},
	{"a Host with user information", "GET http://a/ HTTP/1.1\r\nHost: b@a\r\n\r\n", 400},
	{"a Host list", "GET http://a/ HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
	{"a Host with a path", "GET http://a/ HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
	{"an empty line first", "\r\n" + get + "\r\n", 400},
	{"two spaces in the request line", "GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a tab in the request line", "GET\thttp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a space in the target", "GET http://a/ b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a space after the version", "GET http://a/ HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
	{"no version", "GET http://a/\r\nHost: a\r\n\r\n", 400},
	{"a method that is none", "G(T http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"lower-case http", "GET http://a/ http/1.1\r\nHost: a\r\n\r\n", 400},
	{"HTTP/2.0", "PRI http://a/ HTTP/2.0\r\n\r\n", 505},
	{"HTTP/1.2", "GET http://a/ HTTP/1.2\r\nHost: a\r\n\r\n", 505},
	{"HTTP/0.9", "GET http://a/ HTTP/0.9\r\nHost: a\r\n\r\n", 505},
	{"HTTP/1.10", "GET http://a/ HTTP/1.10\r\nHost: a\r\n\r\n", 400},
	{"origin-form", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a relative scheme", "GET //a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"authority-form without CONNECT", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"https", "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"ftp", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"user information", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"user information hidden by a backslash", "GET http://b\\@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a fragment", "GET http://a/#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a control character in the path", "GET http://a/\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"an empty host", "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a host with an escape", "GET http://a%2eb/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"a host of 256 bytes", "GET http://" + strings.Repeat("a", 256) + "/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"port 0", "GET http://a:0/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"port 65536", "GET http://a:65536/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"an empty port", "GET http://a:/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"two ports", "GET http://a:1:2/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"an IPv6 zone", "GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	{"an IPv6 address without an end", "CONNECT [::1 HTTP/1.1\r\n\r\n", 400},
	{"an IPv4 address in brackets", "CONNECT [127.0.0.1]:80 HTTP/1.1\r\n\r\n", 400},
	{"something after the brackets", "CONNECT [::1]a:80 HTTP/1.1\r\n\r\n", 400},
	{"an IPv6 address without brackets in a URI", "GET http://::1:80/ HTTP/1.1\r\n\r\n", 400},
	{"an IPv6 address without brackets in Host", "GET http://a/ HTTP/1.1\r\nHost: ::1:80\r\n\r\n", 400},
	{"an IPv6 address without brackets and port", "CONNECT 2001:db8::80 HTTP/1.1\r\n\r\n", 400},
	{"an IPv6 address without brackets and with port 0", "CONNECT ::1:0 HTTP/1.1\r\n\r\n", 400},
	{"an IPv6 address without brackets and with a zone", "CONNECT fe80::1%25eth0:80 HTTP/1.1\r\n\r\n", 400},
	{"an IPv4 address with two ports", "CONNECT 127.0.0.1:80:80 HTTP/1.1\r\n\r\n", 400},
	{"CONNECT without a port", "CONNECT a HTTP/1.1\r\n\r\n", 400},
	{"CONNECT with a path", "CONNECT a:80/b HTTP/1.1\r\n\r\n", 400},
	{"CONNECT with a URI", "CONNECT http://a:80 HTTP/1.1\r\n\r\n", 400},
	{"CONNECT with user information", "CONNECT u@a:80 HTTP/1.1\r\n\r\n", 400},
	{"CONNECT with a length", "CONNECT a:80 HTTP/1.1\r\nContent-Length: 4\r\n\r\n", 400},
	{"CONNECT with chunks", "CONNECT a:80 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"connect in lower case", "connect a:80 HTTP/1.1\r\n\r\n", 400},
	{"two credentials", get + "Proxy-Authorization: Basic dTpw\r\nProxy-Authorization: Basic dTpx\r\n\r\n", 400},
	{"a Connection field that is no list", get + "Connection: a b\r\n\r\n", 400},
	{"an unknown expectation", post + "Content-Length: 1\r\nExpect: 200-ok\r\n\r\n", 417},
}

func TestWhatCouldBeReadTwoWaysIsRefused(t *testing.T) {
	t.Parallel()
	if len(refused) < 60 {
		t.Fatalf("the corpus has %d heads", len(refused))
	}
	for _, tc := range refused {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := readRequest(tc.head)
			if got := status(err); got != tc.status {
				t.Errorf("status %d (%v), want %d", got, err, tc.status)
			}
			if err != nil && strings.Contains(tc.head, err.Error()) {
				t.Error("the refusal repeats the request")
			}
		})
	}
}

func TestWhatIsHarmlessIsNormalised(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, head, want string }{
		{"one length, given twice", post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\n", "Content-Length: 4\r\n"},
		{"leading zeros", post + "Content-Length: 0004\r\n\r\n", "Content-Length: 4\r\n"},
		{"spaces around a length", post + "Content-Length: \t 4 \r\n\r\n", "Content-Length: 4\r\n"},
		{"chunked in capitals", post + "Transfer-Encoding: Chunked \r\n\r\n", "Transfer-Encoding: chunked\r\n"},
		{"framing that Connection names", post + "Connection: Content-Length\r\nContent-Length: 4\r\n\r\n", "Content-Length: 4\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := "POST / HTTP/1.1\r\nHost: a\r\n" + tc.want + "\r\n"
			if got := string(mustRequest(t, tc.head).Append(nil)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
