package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	proxies "agentproxy/domain/connect"
	"agentproxy/test/campaign"
	"agentproxy/test/freeport"
)

// certificate makes a key and its own certificate for names, valid until an end, and writes it to a file.
func certificate(t *testing.T, until time.Time, names ...string) (c tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	succeeds(t, err)
	name := rand.Text() // clients look for an issuer by its name
	draft := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: until.AddDate(-1, 0, 0), NotAfter: until, DNSNames: names,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, &draft, &draft, &key.PublicKey, key)
	succeeds(t, err)
	file = filepath.Join(t.TempDir(), "ca.pem")
	succeeds(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// secureSite starts a target with TLS that answers the address it was reached from, and returns it with the
// variables that let clients trust it, and files with more certificates.
func secureSite(t *testing.T, trusted ...string) (address string, env []string) {
	t.Helper()
	c, file := certificate(t, time.Now().AddDate(0, 1, 0), "localhost")
	for _, more := range trusted {
		all, err := os.ReadFile(file)
		succeeds(t, err)
		text, err := os.ReadFile(more)
		succeeds(t, err)
		succeeds(t, os.WriteFile(file, append(all, text...), 0o600))
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if strings.Contains(r.Header.Get("Accept"), "text/html") { // a browser
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<title>reached from %s</title>", host)
			return
		}
		fmt.Fprintln(w, "reached from", host)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c}}
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"} {
		env = append(env, name+"="+file)
	}
	home := t.TempDir() // no variable has curl trust a certificate of a proxy
	succeeds(t, os.WriteFile(filepath.Join(home, ".curlrc"), []byte("proxy-cacert = "+file+"\n"), 0o600))
	env = append(env, "CURL_HOME="+home)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return "https://localhost:" + port, env
}

// withBrowser lets a script import a package that drives browsers, with the browser of this host, which trusts
// the target's certificate and uses the proxy for a target on this host too.
func withBrowser(t *testing.T, dir, core, name string) {
	t.Helper()
	_, err := os.Stat("/usr/bin/chromium")
	need(t, "Chromium", err)
	own := filepath.Join(dir, "node_modules", name)
	succeeds(t, os.MkdirAll(own, 0o700))
	succeeds(t, os.Symlink(core, filepath.Join(dir, "node_modules", filepath.Base(core))))
	succeeds(t, os.WriteFile(filepath.Join(own, "package.json"), []byte(`{"type":"module","exports":"./index.js"}`), 0o600))
	from := map[string]string{"playwright": "import { chromium as real } from 'playwright-core'",
		"puppeteer": "import real from 'puppeteer-core'"}[name]
	succeeds(t, os.WriteFile(filepath.Join(own, "index.js"), []byte(from+`;
export const chromium = { launch: (o = {}) => real.launch({ ...o, executablePath: "/usr/bin/chromium", args: [...(o.args ?? []),
  "--no-sandbox", "--ignore-certificate-errors", "--proxy-bypass-list=<-loopback>"] }) };
export default chromium;`), 0o600))
}

// newerNode installs a Node.js whose fetch has an option for proxies, in a campaign, and returns its folder.
func newerNode(t *testing.T) string {
	t.Helper()
	if campaign.Rounds(0, 1) == 0 {
		t.Skip("this Node.js has no option for proxies; a campaign installs one that has")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "node@24.9.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin")
}

// headless is what a site of Python adds to each browser that Selenium starts: the browser of this host, without
// a screen, which trusts the target's certificate and uses the proxy for a target on this host too.
const headless = `from selenium import webdriver

class Options(webdriver.ChromeOptions):
    def __init__(self):
        super().__init__()
        self.binary_location = "/usr/bin/chromium"
        for flag in ("--headless=new", "--no-sandbox", "--ignore-certificate-errors", "--proxy-bypass-list=<-loopback>"):
            self.add_argument(flag)

webdriver.ChromeOptions = Options
`

// TestSeleniumsSnippetConnects runs what the service answers for Selenium, with the target and the addresses of
// the local proxies put in, and nothing else changed.
func TestSeleniumsSnippetConnects(t *testing.T) {
	t.Parallel()
	if campaign.Rounds(0, 1) == 0 {
		t.Skip("the example with Selenium has a browser in the default run")
	}
	const python = "/usr/bin/python3"
	need(t, "Selenium", exec.Command(python, "-c", "import selenium").Run())
	_, err := os.Stat("/usr/bin/chromedriver")
	need(t, "chromedriver", err)
	s := serve(t)
	key, _ := s.register("selenium")
	id := s.dynamic(key, "0.1")
	target, env := secureSite(t)
	exit := s.exitOf(s.proxyAt(key, id).String())
	apart := s.workersApart(key, id, `{"count":2,"unique_exits":true}`)
	site := t.TempDir()
	succeeds(t, os.WriteFile(filepath.Join(site, "sitecustomize.py"), []byte(headless), 0o600))
	run := func(query, address, local string) string {
		var answer struct{ Snippet string }
		s.must(200, "GET", "/sessions/"+id+"/connect?client=selenium"+query, key, "").into(t, &answer)
		if !strings.Contains(answer.Snippet, address) {
			t.Fatalf("the snippet has not %s:\n%s", address, answer.Snippet)
		}
		text := strings.NewReplacer("https://example.com", target, address, local).Replace(answer.Snippet)
		path := filepath.Join(t.TempDir(), "a.py")
		succeeds(t, os.WriteFile(path, []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), python, path)
		cmd.Env = append(append(os.Environ(), env...), "PYTHONPATH="+site)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", query, err, out)
		}
		return string(out)
	}
	if out := run("", `"--proxy-server=http://127.0.0.1:8899"`, `"--proxy-server=http://`+s.forwards(key, id)+`"`); out !=
		"reached from "+exit+"\n" {
		t.Errorf("want the exit %s, it printed\n%s", exit, out)
	}
	first, second := s.forwards(key, id, "--worker", "w1"), s.forwards(key, id, "--worker", "w2")
	out := run("&workers=2", `"--proxy-server=http://127.0.0.1:" + str(8900 + n)`,
		`"--proxy-server=http://" + ["`+first+`", "`+second+`"][n]`)
	if want := "w1 reached from " + apart[0] + "\nw2 reached from " + apart[1] + "\n"; out != want {
		t.Errorf("it printed\n%swant\n%s", out, want)
	}
}

// workersApart makes workers with an exit of their own each, and returns the exits.
func (s *service) workersApart(key, id, body string) (exits []string) {
	s.t.Helper()
	var made struct {
		Items []struct {
			Exit string `json:"exit_ip"`
		} `json:"items"`
	}
	s.must(201, "POST", "/sessions/"+id+"/workers", key, body).into(s.t, &made)
	for _, w := range made.Items {
		exits = append(exits, w.Exit)
	}
	return exits
}

// stops runs the snippet for the fetch of Node.js by a version that has no option for proxies: it must not reach
// the target by this host's own address.
func (s *service) stops(key, id, target string, env []string) {
	s.t.Helper()
	for _, query := range []string{"", "&workers=2"} {
		var answer struct{ Snippet string }
		s.must(200, "GET", "/sessions/"+id+"/connect?client=fetch"+query, key, "").into(s.t, &answer)
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", strings.ReplaceAll(answer.Snippet, "https://example.com", target))
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "reached from") {
			s.t.Errorf("%q: %v\n%s", query, err, out)
		}
	}
}

// keyFile writes the private key of a certificate to a file.
func keyFile(t *testing.T, c tls.Certificate) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	succeeds(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	succeeds(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return file
}

// withCertificate starts the program with a certificate of its gateway for names, which agents reach as localhost,
// and returns it with the file of the certificate. The API has no TLS.
func withCertificate(t *testing.T, names []string, env ...string) (s *service, file string) {
	t.Helper()
	c, file := certificate(t, time.Now().AddDate(0, 1, 0), names...)
	s = &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t)}
	_, port, err := net.SplitHostPort(s.gateway)
	succeeds(t, err)
	s.env = append([]string{"AGENTPROXY_TLS_CERT=" + file, "AGENTPROXY_TLS_KEY=" + keyFile(t, c), "AGENTPROXY_HTTP_TLS=false", "AGENTPROXY_DEV=true",
		"AGENTPROXY_PUBLIC_GATEWAY=localhost:" + port}, env...)
	s.start()
	t.Cleanup(s.stop)
	return s, file
}

// TestSnippetsConnect runs what the service answers, with the target put in, and nothing else changed.
func TestSnippetsConnect(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("snippets")
	id := s.dynamic(key, "0.1")
	target, env := secureSite(t)
	s.snippetsConnect(key, id, target, s.exitOf(s.proxyAt(key, id).String()), env, false)
}

// TestSnippetsConnectByTLS is the same with a gateway that takes nothing but TLS, for the clients that can.
func TestSnippetsConnectByTLS(t *testing.T) {
	t.Parallel()
	s, file := withCertificate(t, []string{"localhost"}, "AGENTPROXY_GATEWAY_PLAINTEXT=refuse")
	key, _ := s.register("snippets")
	id := s.dynamic(key, "0.1")
	target, env := secureSite(t, file)
	proxy, err := url.Parse(text(s.session(key, id).Proxy.HTTPSURL))
	succeeds(t, err)
	own, err := os.ReadFile(file)
	succeeds(t, err)
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(own)
	client := http.Client{Timeout: soon, Transport: &http.Transport{Proxy: http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{RootCAs: trust}}}
	answer, err := client.Get("http://" + s.api + "/v1/ip")
	succeeds(t, err)
	defer answer.Body.Close()
	var echo struct{ Data struct{ IP string } }
	succeeds(t, json.NewDecoder(answer.Body).Decode(&echo))
	s.shows("agentproxy_certificate_expires_timestamp_seconds{", "agentproxy_certificate_files_fault 0")
	s.snippetsConnect(key, id, target, echo.Data.IP, env, true)
}

// snippetsConnect runs the snippets for a session, those of clients that reach a proxy by TLS if it is to be by TLS.
func (s *service) snippetsConnect(key, id, target, exit string, env []string, byTLS bool) {
	t := s.t
	const python = "/usr/bin/python3"
	modules, err := filepath.Abs(examples + "node/node_modules")
	succeeds(t, err)
	env = append(env, "NO_PROXY=localhost", "no_proxy=localhost") // no snippet may heed it
	apart := s.workersApart(key, id, `{"count":2,"country":"US","unique_exits":true}`)
	for _, c := range []struct {
		client string
		file   string
		run    []string
		needs  string // a module of Python or Node.js
	}{
		{"curl", "a.sh", []string{"sh"}, ""},
		{"requests", "a.py", []string{python}, "requests"},
		{"httpx", "a.py", []string{python}, "httpx"},
		{"aiohttp", "a.py", []string{python}, "aiohttp"},
		{"undici", "a.mjs", []string{"node"}, "undici"},
		{"axios", "a.mjs", []string{"node"}, "axios"},
		{"fetch", "a.sh", []string{"sh"}, ""},
		{"go", "a.go", []string{"go", "run"}, ""},
		{"env", "a.sh", []string{"sh"}, ""},
		{"playwright", "a.mjs", []string{"node"}, "playwright-core"},
		{"puppeteer", "a.mjs", []string{"node"}, "puppeteer-core"},
	} {
		t.Run(c.client, func(t *testing.T) {
			t.Parallel()
			dir, env := t.TempDir(), env
			known, _ := proxies.Find(c.client)
			switch {
			case !byTLS || known.NoTLS == "" || c.client == "env": // curl reads its variables
			case c.client == "aiohttp" && exec.Command(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run() == nil:
			default:
				t.Skip(known.NoTLS)
			}
			switch {
			case strings.HasSuffix(c.needs, "-core") && campaign.Rounds(0, 1) == 0 && (!byTLS || c.client == "puppeteer"):
				t.Skip("the example with it has a browser in the default run")
			case c.client == "fetch":
				need(t, "Node.js", exec.Command("node", "--version").Run())
				if exec.Command("node", "--use-env-proxy", "-e", "").Run() != nil {
					s.stops(key, id, target, env)
					env = append(slices.Clone(env), "PATH="+newerNode(t)+":"+os.Getenv("PATH"))
				}
			case c.run[0] == python:
				need(t, c.needs, exec.Command(python, "-c", "import "+c.needs).Run())
			case c.run[0] == "node":
				_, err := os.Stat(filepath.Join(modules, c.needs))
				need(t, c.needs, err)
				if strings.HasSuffix(c.needs, "-core") {
					withBrowser(t, dir, filepath.Join(modules, c.needs), c.client)
					env = append(slices.Clone(env), oneBrowser(t)...)
				} else {
					succeeds(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
				}
			}
			run := func(query, more, target string) string { // with a path
				var answer struct{ Snippet string }
				s.must(200, "GET", "/sessions/"+id+"/connect?client="+c.client+query, key, "").into(t, &answer)
				text := strings.ReplaceAll(answer.Snippet, "https://example.com/", target)
				if c.client == "env" {
					text += more
				}
				path := filepath.Join(dir, c.file)
				succeeds(t, os.WriteFile(path, []byte(text), 0o600))
				cmd := exec.CommandContext(t.Context(), c.run[0], append(c.run[1:], path)...)
				cmd.Env = append(os.Environ(), env...)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", query, err, out)
				}
				return string(out)
			}
			if out := run("", "\ncurl -s "+target, target+"/"); !strings.Contains(out, "reached from "+exit) {
				t.Errorf("want the exit %s, it printed\n%s", exit, out)
			}
			if byTLS && !strings.HasSuffix(c.needs, "-core") {
				clear := "http://" + s.api + "/v1/ip" // clients may reach a proxy otherwise for it
				if out := run("", "\ncurl -s "+clear, clear); !strings.Contains(out, exit) {
					t.Errorf("of a target without TLS want the exit %s, it printed\n%s", exit, out)
				}
			}
			if c.client == "go" && campaign.Rounds(0, 1) == 0 {
				return // a second compilation
			}
			out := run("&workers=2&country=US", "\nfor name in w1 w2; do use_worker $name; curl -s "+target+"; done", target+"/")
			for _, exit := range apart {
				if strings.Count(out, "reached from "+exit) != 1 {
					t.Errorf("want each of the exits %v, it printed\n%s", apart, out)
				}
			}
		})
	}
}

// TestApxConfiguresAsTheServiceDoes compares what apx prints with what the API answers.
func TestApxConfiguresAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	key, _ := s.register("apx")
	id := s.dynamic(key, "0.1")
	for _, name := range proxies.Names() {
		var answer struct{ Snippet string }
		s.must(200, "GET", "/sessions/"+id+"/connect?workers=2&client="+name, key, "").into(t, &answer)
		shown, err := s.client(t.TempDir(), key, "connect", id, "--workers", "2", "--client", name, "--reveal").Output()
		if err != nil || string(shown) != answer.Snippet+"\n" {
			t.Errorf("%s: %v; apx prints\n%s\nthe service answers\n%s", name, err, shown, answer.Snippet)
		}
	}
	proxy := s.proxyAt(key, id)
	password, _ := proxy.User.Password()
	for _, args := range [][]string{{"connect", id}, {"connect", id, "--json"}, {"connect", id, "--client", "aiohttp", "--workers", "a,b", "--json"}} {
		out, err := s.client(t.TempDir(), key, args...).CombinedOutput()
		if err != nil || strings.Contains(string(out), password) || !strings.Contains(string(out), "***") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"url", id}, "http://" + proxy.User.String() + "@" + proxy.Host + "\n"},
		{[]string{"url", id, "--worker", "7", "--socks"},
			"socks5://" + proxy.User.Username() + "-session-7:" + password + "@" + proxy.Host + "\n"},
	} {
		out, err := s.client(t.TempDir(), key, c.args...).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%v: %v\n%s, want %s", c.args, err, out, c.want)
		}
	}
	out, err := s.client(t.TempDir(), key, "env", id, "--worker", "w07").Output()
	if err != nil || !strings.Contains(string(out), "export PROXY_USERNAME='"+proxy.User.Username()+"-session-w07'\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
