package e2e_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/test/campaign"
)

// visits is a site that notes from which address each worker's requests come. The first element of
// a path names the worker; a page has pictures and a WebSocket.
type visits struct {
	mu   sync.Mutex
	from map[string]map[netip.Addr]int // by worker: requests of an address
}

func (v *visits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(r.URL.Path, "/")
	name, what, _ := strings.Cut(path, "/")
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && what != "" {
		v.mu.Lock()
		if v.from[name] == nil {
			v.from[name] = map[netip.Addr]int{}
		}
		v.from[name][from.Addr()]++
		v.mu.Unlock()
	}
	switch what {
	case "page":
		w.Header().Set("Content-Type", "text/html")
		n := r.URL.Query().Get("n")
		for i := range 3 {
			fmt.Fprintf(w, `<img alt="" src="/%s/picture?n=%s&i=%d">`, name, n, i)
		}
		fmt.Fprintf(w, `<script>new WebSocket(location.origin.replace("http", "ws") + "/%s/socket").onmessage = `+
			`() => { window.done = true }</script>`, name)
	case "picture":
		w.Header().Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	case "socket":
		greet(w, r)
	default:
		http.NotFound(w, r)
	}
}

// greet opens a WebSocket, sends one text and waits for the client's end (RFC 6455, sections 4.2.2 and 5.2).
func greet(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n\x81\x02hi", base64.StdEncoding.EncodeToString(sum[:]))
	_ = buffered.Flush()
	_, _ = conn.Read(make([]byte, 1))
}

// exits returns the one address of each worker; a worker with several fails the test.
func (v *visits) exits(t *testing.T) map[string]netip.Addr {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	one := map[string]netip.Addr{}
	for name, from := range v.from {
		if len(from) != 1 {
			t.Errorf("%s came from %d addresses: %v", name, len(from), from)
		}
		for addr := range from {
			one[name] = addr
		}
	}
	clear(v.from)
	return one
}

// A browser gives each of its contexts a worker of one session: each keeps its exit over pages,
// pictures and WebSockets, and a rotation moves one alone.
func TestABrowserKeepsAnExitForEachWorker(t *testing.T) {
	t.Parallel()
	const chromium = "/usr/bin/chromium"
	node, err := filepath.Abs(examples + "node")
	ok(t, err)
	for _, file := range []string{node + "/node_modules/playwright-core", chromium} {
		_, err := os.Stat(file)
		need(t, file, err)
	}
	oneBrowser(t)
	site := &visits{from: map[string]map[netip.Addr]int{}}
	server := httptest.NewUnstartedServer(site)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	server.Listener = l
	server.Start()
	defer server.Close()

	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	key, _ := s.register("fleet")
	id := s.dynamic(key, "1")
	count, pages := campaign.Rounds(4, 50), campaign.Rounds(2, 20)
	var made struct {
		Items []struct {
			Name  string
			Proxy struct{ Username, Password string }
		}
	}
	s.must(201, "POST", "/sessions/"+id+"/workers", key, fmt.Sprintf(`{"count":%d,"unique_exits":true}`, count)).into(t, &made)
	type credential struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	fleet := map[string]credential{}
	for _, w := range made.Items {
		fleet[w.Name] = credential{w.Proxy.Username, w.Proxy.Password}
	}
	browse := func(fleet map[string]credential, pages int) map[string]netip.Addr {
		t.Helper()
		in, err := json.Marshal(map[string]any{"target": server.URL, "proxy": "http://" + s.gateway, "workers": fleet, "pages": pages})
		ok(t, err)
		cmd := exec.CommandContext(t.Context(), "node", "testdata/workers/pages.mjs", node)
		cmd.Stdin = bytes.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return site.exits(t)
	}
	before := browse(fleet, pages)
	different := map[netip.Addr]bool{}
	for _, addr := range before {
		different[addr] = true
	}
	if len(before) != count || len(different) != count {
		t.Fatalf("%d workers have %d exits: %v", len(before), len(different), before)
	}

	moved := slices.Sorted(maps.Keys(fleet))[count/2]
	s.must(200, "POST", "/sessions/"+id+"/workers/"+moved+"/rotate", key, `{"reason":"http_403"}`)
	for name, addr := range browse(fleet, 1) {
		if (addr != before[name]) != (name == moved) {
			t.Errorf("%s was rotated: %s has %s, and had %s", moved, name, addr, before[name])
		}
	}
	s.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	s.verify()
}
