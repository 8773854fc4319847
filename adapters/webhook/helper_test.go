package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentproxy/adapters/webhook"
	domain "agentproxy/domain/webhook"
	"agentproxy/ports"
)

// TestMain names a proxy that refuses everybody. net/http reads the environment
// once in a process, so it is there before the first test.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		_ = os.Setenv(name, "http://127.0.0.1:9")
	}
	_, _ = os.Unsetenv("NO_PROXY"), os.Unsetenv("no_proxy")
	goleak.VerifyTestMain(m)
}

// hook is a URL that the certificate of httptest is for.
const hook = "https://hooks.example.com/x?token=t"

var (
	public = netip.MustParseAddr("8.8.8.8")
	secret = secretOf(1)
	now    = time.Date(2026, 3, 1, 12, 0, 0, 987654000, time.UTC)
	event  = domain.Event{ID: "evt_1", AgentID: "agt_1", Type: domain.SessionActive,
		At: now, Data: map[string]string{"session_id": "sess_1", "status": "active"}}
)

func secretOf(n byte) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune('a'+n)), 32)))
}

// world is a sender whose internet is one server: every public address leads to
// it, every name to public.
type world struct {
	*webhook.Sender
	t *testing.T

	mu      sync.Mutex
	looked  int
	dialled []netip.AddrPort
	got     []received
}

// received is a request that reached the server.
type received struct {
	*http.Request
	body []byte
}

// begin starts the server and the sender.
func begin(t *testing.T, handle http.HandlerFunc, edit func(*webhook.Config)) *world {
	t.Helper()
	w := &world{t: t}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.got = append(w.got, received{r, body})
		w.mu.Unlock()
		if handle != nil {
			handle(rw, r)
		}
	}))
	server.Config.ErrorLog = quiet
	address := server.Listener.Addr().String()
	config := webhook.Config{
		Timeout: 2 * time.Minute,
		Roots:   server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil },
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
	}
	if edit != nil {
		edit(&config)
	}
	resolve, dial := config.Resolve, config.Dial
	config.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		w.mu.Lock()
		w.looked++
		w.mu.Unlock()
		return resolve(ctx, host)
	}
	config.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, target)
		w.mu.Unlock()
		return dial(ctx, target)
	}
	w.Sender = webhook.New(config)
	t.Cleanup(server.Close)
	t.Cleanup(w.Close)
	return w
}

// message is an attempt to post the event.
func message(url string) ports.Message {
	return ports.Message{URL: url, ID: event.ID, At: now, Body: webhook.Body(event), Secrets: []string{secret}}
}

// send posts the event; a local error fails the test.
func (w *world) send(url string) domain.Outcome {
	w.t.Helper()
	out, err := w.Send(context.Background(), message(url))
	if err != nil {
		w.t.Fatalf("%s: %v", url, err)
	}
	if out.URL != url {
		w.t.Errorf("the outcome is of %q, want %q", out.URL, url)
	}
	if (out.StatusCode == 0) != (out.Err != "") {
		w.t.Errorf("%s: status %d and error %q", url, out.StatusCode, out.Err)
	}
	return out
}

// requests returns what reached the server.
func (w *world) requests() []received {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got
}

func (w *world) dials() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialled
}

func closed(context.Context, netip.AddrPort) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8), Port: 443}, Err: syscall.ECONNREFUSED}
}

// verified reports how many signatures of a request are right under a secret. It
// is written from the specification, not from the code.
func verified(t *testing.T, h http.Header, body []byte, secret string) int {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		t.Fatal(err)
	}
	content := append([]byte(h.Get("Webhook-Id")+"."+h.Get("Webhook-Timestamp")+"."), body...)
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	right := 0
	for _, text := range strings.Split(h.Get("Webhook-Signature"), " ") {
		version, signature, _ := strings.Cut(text, ",")
		given, err := base64.StdEncoding.DecodeString(signature)
		if version == "v1" && err == nil && hmac.Equal(given, mac.Sum(nil)) {
			right++
		}
	}
	return right
}
