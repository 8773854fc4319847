package arch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// makefile returns the recipe of each target.
func makefile(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	recipes := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*\n((?:\t.*\n)+)`).FindAllStringSubmatch(string(text), -1) {
		recipes[m[1]] = m[2]
	}
	if err != nil || len(recipes) < 5 {
		t.Fatalf("the Makefile has %d targets, %v", len(recipes), err)
	}
	return recipes
}

// TestMakeGenerateWritesAllFiles holds make generate to the packages whose tests write files.
func TestMakeGenerateWritesAllFiles(t *testing.T) {
	t.Parallel()
	recipe := strings.Fields(makefile(t)["generate"])
	want := map[string]bool{}
	for _, s := range sources(t) {
		if bytes.Contains(s.text, []byte(`flag.Bool("update"`)) && s.path != "test/arch/commands_test.go" {
			want["./"+path.Dir(s.path)] = true
		}
	}
	for _, word := range recipe {
		if strings.HasPrefix(word, "./") && !want[word] {
			t.Errorf("make generate runs %s, which has no -update", word)
		}
		delete(want, word)
	}
	for pkg := range want {
		t.Errorf("make generate leaves out %s", pkg)
	}
}

func TestPagesNameTargetsOfMakeThatExist(t *testing.T) {
	t.Parallel()
	recipes := makefile(t)
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if recipes[m[1]] == "" {
				t.Errorf("%s names make %s, which the Makefile does not have", page, m[1])
			}
		}
	}
}

// TestPackagesAreInstalledOnCIAlone runs .ci/prepare where every program is missing and apt-get and npm write down
// what they are asked for: a developer's machine is left as it is, a fresh one of CI gets everything.
func TestPackagesAreInstalledOnCIAlone(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for _, ci := range []string{"", "true"} {
		dir := t.TempDir()
		for _, name := range []string{"apt-get", "npm", "dirname", "go"} {
			script := "#!" + bash + "\necho \"" + name + " $*\" >&2\n"
			if name == "dirname" {
				script = "#!" + bash + "\necho \"${1%/*}\"\n"
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"prepare", "../examples/node/package.json"} {
			text, err := os.ReadFile(filepath.Join(root, ".ci", file))
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, "repository", ".ci", file)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(bash, "-c", "source .ci/prepare && echo \"goes on: ${missing[*]}\"")
		cmd.Dir = filepath.Join(dir, "repository")
		cmd.Env = []string{"PATH=" + dir, "CI=" + ci}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("CI=%s: %v\n%s", ci, err, out)
		}
		installs := bytes.Contains(out, []byte("apt-get install")) && bytes.Contains(out, []byte("npm ci --prefix examples/node --no-audit"))
		says := bytes.Contains(out, []byte("Not tested: what needs the Debian packages gcc"))
		goesOn := regexp.MustCompile(`goes on: (gcc)?`).FindSubmatch(out)
		if installs != (ci != "") || says != (ci == "") || goesOn == nil || (len(goesOn[1]) == 0) != (ci != "") {
			t.Errorf("CI=%s prints\n%s", ci, out)
		}
	}
}
