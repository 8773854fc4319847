package http1_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
)

func TestConnectIsAsked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		target         hostport.Target
		user, password string
		want           string
	}{
		{hostport.Target{Host: "example.com", Port: 443}, "", "", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"},
		{hostport.Target{Host: "2001:db8::1", Port: 80}, "Aladdin", "open sesame",
			"CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: [2001:db8::1]:80\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"},
		{hostport.Target{Host: "192.0.2.1", Port: 1}, "u\r\nX: y", "", "CONNECT 192.0.2.1:1 HTTP/1.1\r\nHost: 192.0.2.1:1\r\nProxy-Authorization: Basic dQ0KWDogeTo=\r\n\r\n"},
	} {
		if got := string(http1.AppendConnect(nil, tc.target, tc.user, tc.password)); got != tc.want {
			t.Errorf("asked %q, want %q", got, tc.want)
		}
	}
}

func TestAnswersToConnect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in, want, rest string
	}{
		{"open", "HTTP/1.1 200 OK\r\n\r\nSSH-2.0", "200 OK []", "SSH-2.0"},
		{"open, with a length that means nothing", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nSSH-2.0", "200 OK []", "SSH-2.0"},
		{"open, without a text", "HTTP/1.0 200\r\n\r\n", "200 OK []", ""},
		{"behind interim answers", "HTTP/1.1 103 x\r\n\r\nHTTP/1.1 200 y\r\n\r\nz", "200 y []", "z"},
		{"with reasons", "HTTP/1.1 403 No\r\nProxy-Status: a\r\nX-Brd-Err-Code: b\r\nRetry-After: 5\r\nproxy-status: c\r\nx-brd-err-msg:\r\n\r\nbody", "403 No [a c b]", "body"},
		{"as long as allowed", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", http1.MaxAnswer-24) + "\r\n\r\n", "200 OK []", ""},
	} {
		for _, slow := range []bool{false, true} {
			var src io.Reader = strings.NewReader(tc.in)
			if slow {
				src = iotest.OneByteReader(src)
			}
			r := http1.NewReader(src)
			a, err := http1.ReadAnswer(r)
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			why := append([]string{}, a.Why...)
			if len(why) == 3 { // in the order in which they came
				why = []string{why[0], why[2], why[1]}
			}
			rest, _ := io.ReadAll(r)
			got := strings.TrimSpace(a.Text)
			if got = string(rune('0'+a.Status/100)) + string(rune('0'+a.Status/10%10)) + string(rune('0'+a.Status%10)) + " " + got + " [" + strings.Join(why, " ") + "]"; got != tc.want || string(rest) != tc.rest {
				t.Errorf("%s: read %s and left %q", tc.name, got, rest)
			}
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"x\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/3.0 200 OK\r\n\r\n", "HTTP/1.1 101 Up\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", http1.MaxAnswer-23) + "\r\n\r\n",
		strings.Repeat("x", http1.MaxAnswer), "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 129) + "\r\n",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 17)} {
		a, err := http1.ReadAnswer(http1.NewReader(strings.NewReader(in)))
		if bad := (*http1.Error)(nil); !errors.As(err, &bad) || bad.Status != 502 {
			t.Errorf("%.40q: %+v, %v", in, a, err)
		}
	}
	for in, want := range map[string]error{"": io.EOF, "HTTP/1.1 200 OK\r\n": io.ErrUnexpectedEOF, "HTTP/1.1 100 x\r\n\r\n": io.EOF} {
		if _, err := http1.ReadAnswer(http1.NewReader(strings.NewReader(in))); err != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

func TestTheBeginningOfABodyIsRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in, want string
		cut      bool
	}{
		{"Content-Length: 5\r\n\r\nhello, and more", "hello", false},
		{"Content-Length: 50\r\n\r\nhello", "hello", true},
		{"Content-Length: 50\r\n\r\n" + strings.Repeat("x", 50), strings.Repeat("x", 10), true},
		{"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n", "hello", false},
		{"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\nbroken", "he", true},
		{"\r\nuntil", "until", false},
		{"Content-Length: 0\r\n\r\nhello", "", false},
	} {
		r := http1.NewReader(iotest.OneByteReader(strings.NewReader("HTTP/1.1 502 x\r\n" + tc.in)))
		a, err := http1.ReadAnswer(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, cut := a.Beginning(r, 10); string(got) != tc.want || cut != tc.cut {
			t.Errorf("%q: read %q, cut %v", tc.in, got, cut)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\n\r\nearly", "HTTP/1.0 407\r\nProxy-Status: a\r\n\r\n", "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 204 y\n\n",
		"HTTP/1.1 502 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nE_A\r\n0\r\n\r\n", "HTTP/1.1 429 x\r\nRetry-After: 9\r\nContent-Length: 1\r\n\r\nxy"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := http1.NewReader(iotest.HalfReader(bytes.NewReader(in)))
		a, err := http1.ReadAnswer(r)
		if err != nil {
			return
		}
		if a.Status < 200 || a.Status > 999 || strings.ContainsAny(a.Text+strings.Join(a.Why, "")+a.RetryAfter, "\r\n\x00") {
			t.Fatalf("%q is read as %+v", in, a)
		}
		if body, _ := a.Beginning(r, 64); len(body) > 64 || a.Open() && body != nil {
			t.Fatalf("%q has the body %q", in, body)
		}
		if rest, _ := io.ReadAll(r); a.Open() && !bytes.HasSuffix(in, rest) {
			t.Fatalf("%q leaves %q", in, rest)
		} else if head := in[:len(in)-len(rest)]; a.Open() && !bytes.HasSuffix(head, []byte("\n")) {
			t.Fatalf("%q of the tunnel was taken for the answer", head)
		}
	})
}
