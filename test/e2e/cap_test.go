package e2e_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// pour starts a server that sends a number of bytes on each connection, and returns
// its address.
func pour(t *testing.T, bytes int64) string {
	t.Helper()
	return listen(t, func(w io.Writer) { _, _ = io.CopyN(w, zeros{}, bytes) })
}

// listen starts a server that calls serve for each connection and then closes it. It
// returns its address.
func listen(t *testing.T, serve func(io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				// A service that stops would wait for the tunnel.
				defer context.AfterFunc(t.Context(), func() { c.Close() })()
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// connect opens a tunnel by hand and returns its reader and the status.
func connect(proxy *url.URL, target string) (net.Conn, *bufio.Reader, int, error) {
	c, err := net.DialTimeout("tcp", proxy.Host, soon)
	if err != nil {
		return nil, nil, 0, err
	}
	password, _ := proxy.User.Password()
	credential := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", target, target, credential)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil {
		c.Close()
		return nil, nil, 0, err
	}
	return c, r, resp.StatusCode, nil
}

func TestTwentyDownloadsNeverExceedTheTraffic(t *testing.T) {
	t.Parallel()
	const limit = 100_000_000
	s := shared(t)
	key, _ := s.register("cap")
	target := pour(t, 10_000_000)
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":0.1}}`).into(t, &d)
	proxy, err := url.Parse(d.Proxy.HTTPURL)
	if err != nil {
		t.Fatal(err)
	}
	var delivered atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c, r, status, err := connect(proxy, target)
			if err != nil {
				t.Errorf("a tunnel: %v", err)
				return
			}
			defer c.Close()
			if status != 200 {
				return // the traffic was used up before its turn
			}
			n, err := io.Copy(io.Discard, r)
			delivered.Add(n)
			if err != nil {
				t.Errorf("a tunnel ended with %v after %d bytes; want an orderly end", err, n)
			}
		})
	}
	wg.Wait()
	if delivered.Load() > limit {
		t.Errorf("delivered %d bytes of %d", delivered.Load(), limit)
	}
	within(t, soon, "the end of the session", func() bool { return s.session(key, d.SessionID).Status == "expired" })
	after := s.session(key, d.SessionID)
	if text(after.StatusReason) != "traffic_exhausted" || after.Usage.Traffic.DownloadBytes != delivered.Load() || after.Usage.Traffic.UsedBytes != limit {
		t.Errorf("ended for %s with %d bytes down and %d used; delivered were %d", text(after.StatusReason),
			after.Usage.Traffic.DownloadBytes, after.Usage.Traffic.UsedBytes, delivered.Load())
	}
	if after.Cost.Charged != "0.04" || after.Cost.Held != "0" {
		t.Errorf("charged %s and held %s; want 0.04 and 0", after.Cost.Charged, after.Cost.Held)
	}
	if _, _, status, err := connect(proxy, target); status != http.StatusPaymentRequired {
		t.Errorf("the next connection gets %d, %v; want 402", status, err)
	}
	s.verify()
}

func TestWhatIsChargedIsWhatWasDelivered(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("exact")
	var d apiclient.Session
	s.must(201, "POST", "/sessions", key, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}`).into(t, &d)
	proxy, err := url.Parse(d.Proxy.HTTPURL)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, size := range []int64{0, 1, 1459, 65_536, 262_145, 5_000_003} {
		c, r, status, err := connect(proxy, pour(t, size))
		if err != nil || status != 200 {
			t.Fatalf("a tunnel: %d, %v", status, err)
		}
		n, err := io.Copy(io.Discard, r)
		c.Close()
		if n != size || err != nil {
			t.Errorf("got %d bytes of %d, %v", n, size, err)
		}
		want += n
	}
	s.promised(2*time.Second, "the usage", func() bool { return s.session(key, d.SessionID).Usage.Traffic.DownloadBytes == want })
	if got := s.session(key, d.SessionID).Usage; got.Connections != 6 || got.Traffic.UploadBytes != 0 {
		t.Errorf("usage %+v, want 6 connections and nothing up", got)
	}
	s.must(200, "POST", "/sessions/"+d.SessionID+"/terminate", key, "")
	s.promised(2*time.Second, "the settlement", func() bool { return s.session(key, d.SessionID).Cost.Held == "0" })
	micro := want * 400_000 / 1_000_000_000
	if got := s.session(key, d.SessionID).Cost.Charged.String(); got != strings.TrimRight(fmt.Sprintf("0.%06d", micro), "0") {
		t.Errorf("%d bytes were charged %s, want %d micro-dollars", want, got, micro)
	}
	s.verify()
}
