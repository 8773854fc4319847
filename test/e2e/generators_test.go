//go:build campaign

package e2e_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Clients that three generators make of the document compile and buy, and two linters with
// their own rules report nothing.
func TestGeneratedClientsBuy(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no npm")
	}
	s := serve(t)
	dir := t.TempDir()
	ok(t, os.CopyFS(dir, os.DirFS("testdata/clients")))
	res, err := http.Get("http://" + s.api + "/openapi.json")
	ok(t, err)
	document, err := io.ReadAll(res.Body)
	ok(t, err)
	ok(t, res.Body.Close())
	ok(t, os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600))
	root, err := filepath.Abs("../..")
	ok(t, err)
	run := func(t *testing.T, in, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = filepath.Join(dir, in)
		if in == "root" {
			cmd.Dir = root
		}
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CI=")
		var out, rest strings.Builder // go writes to stderr what it downloads
		cmd.Stdout, cmd.Stderr = &out, &rest
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, &out, &rest)
		}
		return out.String()
	}
	file := filepath.Join(dir, "openapi.json")
	run(t, "", "npm", "ci", "--no-audit", "--no-fund")
	t.Run("lint", func(t *testing.T) {
		if out := run(t, "", "npx", "redocly", "lint", "--extends=recommended", "openapi.json"); strings.Contains(out, "arning was") {
			t.Errorf("redocly: %s", out)
		}
		run(t, "", "npx", "spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", "openapi.json")
	})
	t.Run("TypeScript", func(t *testing.T) {
		run(t, "", "npx", "openapi-typescript", "openapi.json", "-o", "schema.d.ts")
		run(t, "", "npx", "openapi-ts", "-i", "openapi.json", "-o", "hey")
		run(t, "", "npx", "tsc", "-p", ".")
		if out := run(t, "", "node", "out/buy.js", "http://"+s.api+"/v1"); strings.Count(out, "201 sess_") != 2 {
			t.Errorf("bought: %s", out)
		}
	})
	t.Run("Go", func(t *testing.T) {
		run(t, "root", "go", "tool", "-modfile=.ci/tools/go.mod", "oapi-codegen", "-generate", "types,client",
			"-package", "main", "-o", filepath.Join(dir, "gobuy", "client.go"), file)
		if out := run(t, "gobuy", "go", "run", ".", "http://"+s.api+"/v1"); !strings.HasPrefix(out, "201 sess_") ||
			!strings.Contains(out, "\nsession.active sess_") {
			t.Errorf("bought: %s", out)
		}
	})
}
