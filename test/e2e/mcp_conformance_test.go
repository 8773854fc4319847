//go:build campaign

package e2e_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/test/freeport"
)

// behind serves a service at another address and adds a credential to each request, for programs that
// have no place for one.
func behind(t *testing.T, address, service, key string) {
	t.Helper()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: service})
		r.Out.Host = r.In.Host
		r.Out.Header.Set("X-API-Key", key)
	}}
	server := &http.Server{Addr: address, Handler: proxy}
	go func() { _ = server.ListenAndServe() }()
	t.Cleanup(func() { _ = server.Close() })
}

// The suite of the protocol's authors finds no fault but those of the lists beside it, which name why, and
// their inspector reads the table of tools. Both run on the version of Node.js that they need.
func TestConformanceOfTheTools(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no npm")
	}
	front := freeport.Address(t)
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0", "AGENTPROXY_DEV=true", "AGENTPROXY_PUBLIC_URL=http://"+front)
	key, _ := s.register("conformance")
	behind(t, front, s.api, key)
	dir := t.TempDir()
	ok(t, os.CopyFS(dir, os.DirFS("testdata/mcpconformance")))
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "node_modules/.bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("npm", "ci", "--no-audit", "--no-fund"); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	node := filepath.Join(dir, "node_modules/.bin/node")
	for _, version := range []string{requestEra, "2025-11-25"} {
		out, err := run(node, "node_modules/.bin/conformance", "server", "--url", "http://"+front+"/mcp", "--requirements", version,
			"--expected-failures", "expected-"+version+".yml")
		if err != nil || !strings.Contains(out, "tools-list") {
			t.Errorf("%s: %v\n%s", version, err, out[max(len(out)-2000, 0):])
		}
	}
	out, err := run(node, "node_modules/.bin/mcp-inspector", "--cli", "http://"+s.api+"/mcp", "--transport", "http",
		"--header", "X-API-Key: "+key, "--method", "tools/list")
	if err != nil || !strings.Contains(out, `"name": "create_session"`) {
		t.Errorf("the inspector: %v\n%s", err, out)
	}
	s.verify()
}
