package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A build without a C compiler fails with one line that names the remedy: in a
// package that the one with the SQLite driver imports, so that it fails first.
func TestABuildWithoutACompilerNamesTheRemedy(t *testing.T) {
	t.Parallel()
	const sqlite = "agentproxy/adapters/storage/sqlite"
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir() // a PATH with go and without gcc
	if err := os.Symlink(tool, filepath.Join(alone, "go")); err != nil {
		t.Fatal(err)
	}
	gocmd := func(env, command, pkg string, args ...string) (string, error) {
		cmd := exec.Command(tool, append(append([]string{command}, args...), pkg)...)
		cmd.Env = append(os.Environ(), env)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, env := range []string{
		"CGO_ENABLED=0",
		"PATH=" + alone,
	} {
		out, err := gocmd(env, "build", sqlite+"/needscgo")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); err == nil || len(lines) != 2 ||
			!strings.Contains(lines[1], "undefined: install_a_C_compiler_such_as_gcc_and_build_with_CGO_ENABLED_1") {
			t.Errorf("with %s: %v\n%s", env, err, out)
		}
	}
	out, err := gocmd("CGO_ENABLED=0", "list", sqlite, "-f", `{{join .Imports "\n"}}`)
	if err != nil || !slices.Contains(strings.Fields(out), sqlite+"/needscgo") {
		t.Errorf("%s does not import needscgo: %v\n%s", sqlite, err, out)
	}
}
