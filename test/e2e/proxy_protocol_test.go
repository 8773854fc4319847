package e2e_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The client that a balancer names is recorded by the registration and by the exit log, on both ports.
func TestTheClientBehindABalancerIsRecorded(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_TRUSTED_PROXIES=127.0.0.0/8", "AGENTPROXY_PROXY_PROTOCOL=true", "AGENTPROXY_DEV=true")
	send := func(addr, text string) *http.Response {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		_, _ = io.WriteString(c, "PROXY TCP4 192.0.2.77 198.51.100.7 4000 443\r\n"+text)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	const body = `{"name":"behind"}`
	if res := send(s.api, fmt.Sprintf("POST /v1/account/register HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		s.api, len(body), body)); res.StatusCode != 201 {
		t.Fatalf("the registration: %d", res.StatusCode)
	}
	if out, err := s.run("--json", "agent", "list"); err != nil || !strings.Contains(out, `"192.0.2.77"`) {
		t.Errorf("agents: %v\n%s", err, out)
	}
	key, _ := s.register("without a header") // as behind a reverse proxy
	u := s.proxyAt(key, s.dynamic(key, "1"))
	password, _ := u.User.Password()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	target := l.Addr().String()
	if res := send(s.gateway, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\nProxy-Authorization: Basic "+
		base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))+"\r\n\r\n"); res.StatusCode != 200 {
		t.Fatalf("CONNECT: %d", res.StatusCode)
	}
	within(t, soon, "the client is found", func() bool {
		out, err := s.run("--json", "exits", "lookup", "--client", "192.0.2.77", "--at", time.Now().UTC().Format(time.RFC3339), "--reason", "test")
		return err == nil && strings.Contains(out, s.agentOf(key)) && strings.Contains(out, `"192.0.2.77:4000"`)
	})
}
