// The benchmarks measure the whole service beside the least that could do the
// same, in one run, and report the ratio: on a shared machine only that holds.
//
//	go test ./cmd/internal/wire -run '^$' -bench .

package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/fx"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"agentproxy/adapters/configfile"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
	"agentproxy/test/freeport"
)

const callers = 16

// serviceSettings returns settings of a service with free ports and a new database.
func serviceSettings(t testing.TB) configfile.Settings {
	t.Helper()
	s := configfile.Settings{HTTPAddr: freeport.Address(t), GatewayAddr: freeport.Address(t), AdminAddr: freeport.Address(t),
		PublicHost: "127.0.0.1", Dev: true, DatabasePath: filepath.Join(t.TempDir(), "service.db"),
		TrialBalance: 1_000_000 * domain.Dollar, TrialDays: 14}
	_, port, _ := net.SplitHostPort(s.GatewayAddr)
	_, _ = fmt.Sscan(port, &s.PublicPort)
	return s
}

// startService runs the whole graph until stop is called and returns the base URL of its API.
func startService(t testing.TB, s configfile.Settings, more ...fx.Option) (api string, stop func()) {
	t.Helper()
	app := fx.New(append(more, wire.Service(s, slog.New(slog.DiscardHandler)))...)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return "http://" + s.HTTPAddr + "/v1", func() { _ = app.Stop(context.Background()) }
}

// service runs the whole graph and returns the base URL of its API, the key of
// an agent and the proxy of an active session with its id.
func service(b *testing.B) (api, key, id string, proxy *url.URL) {
	b.Helper()
	api, stop := startService(b, serviceSettings(b))
	b.Cleanup(stop)
	var agent struct {
		APIKey string `json:"api_key"`
	}
	post(b, api+"/account/register", "", `{"name":"bench"}`, &agent)
	var s struct {
		SessionID string `json:"session_id"`
		Proxy     struct {
			HTTPURL string `json:"http_url"`
		}
	}
	post(b, api+"/sessions", agent.APIKey, `{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1000}}`, &s)
	proxy, err := url.Parse(s.Proxy.HTTPURL)
	if err != nil {
		b.Fatal(err)
	}
	return api, agent.APIKey, s.SessionID, proxy
}

func post(b testing.TB, target, key, body string, into any) {
	b.Helper()
	req, _ := http.NewRequest("POST", target, bytes.NewBufferString(body))
	req.Header.Set("X-API-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	envelope := struct{ Data any }{into}
	if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil || resp.StatusCode >= 300 {
		b.Fatalf("%s: %d, %v", target, resp.StatusCode, err)
	}
}

// beside runs n calls of each in turns and reports how many times as fast as
// the reference the first is.
func beside(b *testing.B, ours, reference func() error) {
	b.Helper()
	var spent [2]time.Duration
	const rounds = 10
	b.ResetTimer()
	for range rounds {
		for i, call := range []func() error{ours, reference} {
			began := time.Now()
			many(b, max(b.N/rounds, 1), call)
			spent[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "×reference")
}

func many(b *testing.B, n int, call func() error) {
	var wg sync.WaitGroup
	for worker := range callers {
		wg.Go(func() {
			for i := worker; i < n; i += callers {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkReadSession is GET /sessions/{id} beside bare gin and GORM on SQLite
// with an indexed key, a row of the same kind and no envelope.
func BenchmarkReadSession(b *testing.B) {
	api, key, id, _ := service(b)
	bare := bareGin(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	get := func(target string) func() error {
		return func() error {
			req, _ := http.NewRequest("GET", target, nil)
			req.Header.Set("X-API-Key", key)
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
				return fmt.Errorf("%s: %d, %v", target, resp.StatusCode, err)
			}
			return nil
		}
	}
	beside(b, get(api+"/sessions/"+id), get(bare+"/sessions/1"))
}

type row struct {
	ID, Agent, Status, Proxy string
	Expires                  int64
}

func bareGin(b *testing.B) string {
	db, err := gorm.Open(sqlite.Open(filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL"),
		&gorm.Config{PrepareStmt: true, SkipDefaultTransaction: true})
	if err == nil {
		err = db.AutoMigrate(&row{})
	}
	if err == nil {
		err = db.Create(&row{ID: "1", Agent: "a", Status: "active", Proxy: "http://user:password@127.0.0.1:8081"}).Error
	}
	if err != nil {
		b.Fatal(err)
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/sessions/:id", func(c *gin.Context) {
		var owner, found row // the key and the session: two indexed reads
		if db.Take(&owner, "id = ?", "1").Error != nil || db.Take(&found, "id = ? AND agent = ?", c.Param("id"), "a").Error != nil {
			c.Status(404)
			return
		}
		c.JSON(200, found)
	})
	server := httptest.NewServer(engine)
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkTunnel is a new CONNECT tunnel for one small exchange, beside a bare
// TCP relay without a proxy protocol.
func BenchmarkTunnel(b *testing.B) {
	_, _, _, proxy := service(b)
	target := listen(b, func(c net.Conn) { _, _ = io.CopyN(c, c, 1) })
	relay := listen(b, func(c net.Conn) {
		up, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, c) }()
		_, _ = io.Copy(c, up)
	})
	password, _ := proxy.User.Password()
	head := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", target, target,
		base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))
	beside(b,
		func() error { return exchange(proxy.Host, head) },
		func() error { return exchange(relay, "") })
}

func listen(b *testing.B, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().String()
}

// exchange opens a connection, sends the head if there is one, and has one byte
// echoed.
func exchange(addr, head string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	if head != "" {
		if _, err := io.WriteString(c, head); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
		if err != nil || resp.StatusCode != 200 {
			return fmt.Errorf("CONNECT: %v, %v", resp, err)
		}
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = r.ReadByte()
	return err
}
