package http1_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/gateway/http1"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		reply http1.Reply
		want  string
	}{
		{"407 asks for credentials",
			http1.Reply{Status: 407, Code: "A", Message: "m", HowToFix: "h", ProxyError: "http_request_denied"},
			"HTTP/1.1 407 A: m|Content-Type: application/json|Content-Length: 43|" +
				"Proxy-Status: agentproxy; error=http_request_denied; details=\"m\"|" +
				"Proxy-Authenticate: Basic realm=\"agentproxy\"|Connection: close||{\"code\":\"A\",\"message\":\"m\",\"how_to_fix\":\"h\"}"},
		{"a time is rounded up",
			http1.Reply{Status: 503, Code: "A", Message: "m", HowToFix: "h", RetryAfter: 1001 * time.Millisecond},
			"HTTP/1.1 503 A: m|Content-Type: application/json|Content-Length: 43|" +
				"Proxy-Status: agentproxy; details=\"m\"|Retry-After: 2|Connection: close||{\"code\":\"A\",\"message\":\"m\",\"how_to_fix\":\"h\"}"},
		{"HEAD has no body",
			http1.Reply{Status: 403, Code: "A", Message: "m", HowToFix: "h", Head: true},
			"HTTP/1.1 403 A: m|Content-Type: application/json|Content-Length: 43|" +
				"Proxy-Status: agentproxy; details=\"m\"|Connection: close||"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := string(bytes.ReplaceAll([]byte(tc.want), []byte("|"), []byte("\r\n")))
			if got := string(tc.reply.Append(nil)); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestNoTextBreaksAReply(t *testing.T) {
	t.Parallel()
	const nasty = "a\"b\\c\r\nSet-Cookie: x\x00é"
	b := http1.Reply{Status: 502, Code: nasty, Message: nasty, HowToFix: nasty}.Append(nil)
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Status, `502 a"b\c??Set-Cookie: x??: a"b\c??Set-Cookie: x??`; got != want {
		t.Errorf("status %s, want %s", got, want)
	}
	if got, want := res.Header.Get("Proxy-Status"), `agentproxy; details="a\"b\\c??Set-Cookie: x??"`; got != want {
		t.Errorf("Proxy-Status %s, want %s", got, want)
	}
	if len(res.Header["Set-Cookie"]) > 0 {
		t.Error("the message became a field")
	}
	var body struct {
		Code     string `json:"code"`
		Message  string `json:"message"`
		HowToFix string `json:"how_to_fix"`
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil || json.Unmarshal(raw, &body) != nil || body.Code != nasty || body.Message != nasty || body.HowToFix != nasty {
		t.Errorf("body %q, %v", raw, err)
	}
}

func TestReasonPhrasesAreBounded(t *testing.T) {
	t.Parallel()
	b := http1.Reply{Status: 502, Code: "CODE", Message: strings.Repeat("é", 200)}.Append(nil)
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	if want := "HTTP/1.1 502 CODE: " + strings.Repeat("?", 114); string(line) != want {
		t.Errorf("%s, want %s", line, want)
	}
}
