package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentproxy/adapters/httpapi"
	"agentproxy/test/fake"
)

func startServer(t *testing.T, addr string) *httpapi.Server {
	t.Helper()
	s := httpapi.New(httpapi.Config{Addr: addr}, httpapi.Deps{Log: slog.New(slog.DiscardHandler), IDs: &fake.IDs{}, Clock: fake.NewClock()})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func TestServer(t *testing.T) { // not parallel: goleak reads every goroutine of the process
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s := startServer(t, "127.0.0.1:0")
	url := "http://" + s.Addr().String()

	t.Run("answers once it has started", func(t *testing.T) {
		res, err := client.Get(url + "/v1/ip")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 200 || !strings.Contains(string(body), `"ip":"127.0.0.1"`) ||
			res.ContentLength != int64(len(body)) {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	})
	t.Run("a taken port fails the start", func(t *testing.T) {
		other := httpapi.New(httpapi.Config{Addr: s.Addr().String()}, httpapi.Deps{Log: slog.New(slog.DiscardHandler)})
		if err := other.Start(t.Context()); err == nil {
			t.Error("it started")
		}
	})
	t.Run("a slow body does not hold others up, and stop waits for no idle connection", func(t *testing.T) {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /v1/ip HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("it waited: %v", err)
		}
		if _, err := client.Get(url + "/v1/ip"); err == nil {
			t.Error("it answers after Stop")
		}
	})
}

func TestOddRequestLines(t *testing.T) {
	t.Parallel()
	s := startServer(t, "127.0.0.1:0")
	for _, line := range []string{
		"CONNECT example.com:443 HTTP/1.1", "GET http://example.com HTTP/1.1", "GET http://example.com/v1/nothing HTTP/1.1", "GET /v1/sessions/..%2f..%2faccount HTTP/1.1",
		"GET * HTTP/1.1", "OPTIONS /v1/sessions HTTP/1.1", "TRACE /v1/ip HTTP/1.1", "GET /v1/%e2%98%83 HTTP/1.1", "GET //v1//sessions HTTP/1.1", "GET ?x HTTP/1.1",
	} {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "%s\r\nHost: x\r\nConnection: close\r\n\r\n", line)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("%s: %d %s", line, res.StatusCode, body)
		}
		if res.StatusCode != 400 && !strings.Contains(string(body), `"success":false`) {
			t.Errorf("%s: %d without envelope: %s", line, res.StatusCode, body)
		}
		conn.Close()
	}
}
