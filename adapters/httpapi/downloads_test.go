package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/httpapi"
)

// offering serves a folder of downloads, and returns its address.
func offering(t *testing.T, w *world, folder string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	base := "http://" + s.Listener.Addr().String()
	s.Config.Handler = httpapi.New(httpapi.Config{PublicURL: base, Downloads: folder}, *w.server.Deps).Handler()
	s.Start()
	t.Cleanup(s.Close)
	return base
}

// asked sends a request without following or rewriting anything.
func asked(t *testing.T, method, address string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, body
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	program := bytes.Repeat([]byte("a program\n"), 5000)
	for path, text := range map[string][]byte{outside: []byte("secret"), folder + "/apx-linux-amd64": program,
		folder + "/apx-windows-arm64": program, folder + "/apx-plan9-386": program, folder + "/notes": []byte("secret")} {
		w.must(os.WriteFile(path, text, 0o600))
	}
	w.must(os.Symlink(outside, folder+"/apx-linux-arm64"))
	w.must(os.Mkdir(folder+"/apx-darwin-arm64", 0o700))
	base := offering(t, w, folder)
	at := base + "/download/apx-linux-amd64"
	sum := func(text []byte) string { h := sha256.Sum256(text); return hex.EncodeToString(h[:]) }

	for _, encoding := range []string{"identity", "gzip"} {
		if r, body := asked(t, "GET", at, "Accept-Encoding", encoding); r.StatusCode != 200 || !bytes.Equal(body, program) ||
			r.Header.Get("Content-Disposition") != `attachment; filename="apx"` || r.Header.Get("No-Gzip-Compression") != "" {
			t.Errorf("%s: %d, %d bytes, %v", encoding, r.StatusCode, len(body), r.Header)
		}
		if r, body := asked(t, "GET", at, "Range", "bytes=10-19", "Accept-Encoding", encoding); r.StatusCode != 206 || string(body) != "a program\n" {
			t.Errorf("a part: %d %s", r.StatusCode, body)
		}
	}
	if r, body := asked(t, "HEAD", at); r.StatusCode != 200 || len(body) > 0 || r.ContentLength != int64(len(program)) {
		t.Errorf("HEAD: %d, %d", r.StatusCode, r.ContentLength)
	}
	if r, _ := asked(t, "GET", base+"/download/apx-windows-arm64"); r.StatusCode != 200 || !strings.Contains(r.Header.Get("Content-Disposition"), "apx.exe") {
		t.Errorf("Windows: %v", r.Header)
	}
	for range 2 {
		if r, body := asked(t, "GET", at+".sha256"); r.StatusCode != 200 || string(body) != sum(program)+"  apx-linux-amd64\n" {
			t.Errorf("the checksum: %d %s", r.StatusCode, body)
		}
	}
	replaced := []byte("another program")
	w.must(os.WriteFile(folder+"/new", replaced, 0o600))
	w.must(os.Chtimes(folder+"/new", time.Time{}, time.Now().Add(time.Hour)))
	w.must(os.Rename(folder+"/new", folder+"/apx-linux-amd64"))
	if _, body := asked(t, "GET", at+".sha256"); !strings.HasPrefix(string(body), sum(replaced)) {
		t.Errorf("the checksum of another file: %s", body)
	}
	for _, path := range []string{"apx-linux-arm64", "apx-darwin-arm64", "apx-plan9-386", "apx-darwin-amd64", "notes", "", ".", "..",
		"%2e%2e%2fsecret", "..%2fsecret", "apx-linux-amd64/..%2fnotes", "apx-linux-amd64%00", "apx-linux-amd64/", "/notes", "../notes"} {
		if r, body := asked(t, "GET", base+"/download/"+path); r.StatusCode != 404 || strings.Contains(string(body), "secret\"") && !strings.Contains(string(body), "NOT_FOUND") {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
	if r, _ := asked(t, "POST", at); r.StatusCode != 405 {
		t.Errorf("POST: %d", r.StatusCode)
	}
	w.must(os.Remove(folder + "/apx-linux-amd64"))
	if r, body := asked(t, "GET", at); r.StatusCode != 503 || !strings.Contains(string(body), "SERVICE_UNAVAILABLE") {
		t.Errorf("a file that is gone: %d %s", r.StatusCode, body)
	}
}

// TestPagesNameDownloadsThatAreThere checks that pages name what is offered and nothing else, and runs the script of
// the page about apx.
func TestPagesNameDownloadsThatAreThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, folder := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		base := offering(t, w, folder)
		for _, path := range []string{"/llms.txt", "/skill.md", "/docs/apx.md"} {
			if _, text := asked(t, "GET", base+path); strings.Contains(string(text), "download") {
				t.Errorf("%s names downloads that are not there", path)
			}
		}
	}
	folder, platform := t.TempDir(), runtime.GOOS+"-"+runtime.GOARCH
	w.must(os.WriteFile(filepath.Join(folder, "apx-"+platform), []byte("#!/bin/sh\necho it runs\n"), 0o600))
	base := offering(t, w, folder)
	if _, text := asked(t, "GET", base+"/llms.txt"); !strings.Contains(string(text), base+"/download/apx-"+platform) {
		t.Errorf("/llms.txt does not name it")
	}
	if _, text := asked(t, "GET", base+"/skill.md"); strings.Index(string(text), "curl") > strings.Index(string(text), "apx") &&
		!strings.Contains(string(text), "/docs/apx.md has the commands") {
		t.Errorf("/skill.md begins with apx or does not name its page")
	}
	_, text := asked(t, "GET", base+"/docs/apx.md")
	_, script, _ := strings.Cut(string(text), "```\n")
	script, _, found := strings.Cut(script, "```")
	for _, name := range []string{"curl", "sh", "install", "uname"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script+"\n"+home+"/.local/bin/apx")
	cmd.Dir, cmd.Env = t.TempDir(), []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); !found || err != nil || !strings.HasSuffix(string(out), "it runs\n") {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
	if _, text := asked(t, "GET", base+"/favicon.ico"); !strings.HasPrefix(string(text), "<svg") {
		t.Error("there is no favicon")
	}
	if r, _ := asked(t, "GET", base+"/openapi.json"); r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("a viewer in a browser cannot read the document")
	}
	if r, _ := asked(t, "GET", base+"/v1/account/info"); r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error(fmt.Sprint("a page of another site can read answers to a credential: ", r.Header))
	}
}
