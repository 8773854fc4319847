// Package realproxy starts proxies that others have written, as Debian packages them: squid and
// tinyproxy for HTTP, microsocks for SOCKS5.
package realproxy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/freeport"
)

// The credential that every proxy requires.
const (
	User     = "customer-7-session-abc"
	Password = "S3cret-of-the-hop"
	// hash is Password as htpasswd writes it (apr1).
	hash = "$apr1$chainabc$xoxST.HbSxgKlYZLWqefQ/"
)

// Proxy is a running proxy.
type Proxy struct {
	Name     string
	Protocol session.Protocol
	Addr     netip.AddrPort
	process  *os.Process
	done     chan struct{}
}

// Endpoint returns the proxy as an operator would configure it.
func (p *Proxy) Endpoint() procurement.Endpoint {
	return procurement.Endpoint{Protocol: p.Protocol, Host: p.Addr.Addr().String(), Port: p.Addr.Port(),
		User: User, Password: Password, Trusted: true}
}

// Kill ends the proxy at once.
func (p *Proxy) Kill() {
	_ = p.process.Kill()
	<-p.done
}

// All starts each of the proxies. Every one requires the credential, connects from an address of
// this host, and those of HTTP refuse refused.test:9.
var All = []func(t *testing.T, exit string) *Proxy{Squid, Tinyproxy, Microsocks}

// Squid starts squid.
func Squid(t *testing.T, exit string) *Proxy {
	return run(t, "squid", session.HTTP, func(dir, port string) []string {
		write(t, filepath.Join(dir, "passwd"), User+":"+hash+"\n")
		return []string{"-N", "-f", write(t, filepath.Join(dir, "squid.conf"), fmt.Sprintf(`
http_port 127.0.0.1:%s
auth_param basic program /usr/lib/squid/basic_ncsa_auth %s/passwd
auth_param basic children 1
acl known proxy_auth REQUIRED
acl discard port 9
http_access deny discard
http_access allow known
http_access deny all
tcp_outgoing_address %s
cache deny all
cache_mem 8 MB
max_filedescriptors 1024
shutdown_lifetime 0 seconds
pinger_enable off
visible_hostname upstream.test
access_log none
cache_log /dev/null
pid_filename none
netdb_filename none
coredump_dir %s
`, port, dir, exit, dir))}
	})
}

// Tinyproxy starts tinyproxy.
func Tinyproxy(t *testing.T, exit string) *Proxy {
	return run(t, "tinyproxy", session.HTTP, func(dir, port string) []string {
		filter := write(t, filepath.Join(dir, "filter"), "^refused\\.test$\n")
		conf := fmt.Sprintf("Listen 127.0.0.1\nPort %s\nBind %s\nBasicAuth %s %s\nTimeout 60\nMaxClients 50\n"+
			"LogLevel Critical\nFilter \"%s\"\nFilterExtended On\n", port, exit, User, Password, filter)
		return []string{"-d", "-c", write(t, filepath.Join(dir, "tinyproxy.conf"), conf)}
	})
}

// Microsocks starts microsocks.
func Microsocks(t *testing.T, exit string) *Proxy {
	return run(t, "microsocks", session.SOCKS5, func(_, port string) []string {
		return []string{"-i", "127.0.0.1", "-p", port, "-b", exit, "-u", User, "-P", Password}
	})
}

// run starts a proxy on a port of its own and ends it with the test. Where it is
// not installed the test is skipped; where CI is set it fails.
func run(t *testing.T, name string, p session.Protocol, args func(dir, port string) []string) *Proxy {
	t.Helper()
	binary, err := exec.LookPath(name)
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/" + name); err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skip(err)
		}
	}
	// squid gives up root's rights and has to read its files still.
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(freeport.Address(t))
	cmd := exec.Command(binary, args(dir, strconv.Itoa(int(addr.Port())))...)
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := &Proxy{Name: name, Protocol: p, Addr: addr, process: cmd.Process, done: make(chan struct{})}
	go func() {
		defer close(started.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(started.Kill)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr.String()); err == nil {
			_ = c.Close()
			return started
		}
		select {
		case <-started.done:
		default:
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("%s does not listen on %s: %s", name, addr, text)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
