package arch_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheLicenceOfEachModuleIsCarried holds THIRD_PARTY_LICENSES to the modules that are linked into the programs;
// -update writes it.
func TestTheLicenceOfEachModuleIsCarried(t *testing.T) {
	t.Parallel()
	const file = root + "/THIRD_PARTY_LICENSES"
	want := licences(t)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("THIRD_PARTY_LICENSES differs from the linked modules: run make generate")
	}
}

// TestLicencesGoWithThePrograms holds whatever is made of the programs for others to carry the three files.
func TestLicencesGoWithThePrograms(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".dockerignore", "Dockerfile", ".goreleaser.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"LICENSE", "NOTICE", "THIRD_PARTY_LICENSES"} {
			if !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
				t.Errorf("%s leaves out %s", file, name)
			}
		}
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)`)

// licences returns each licence text once, under the modules that it is of.
func licences(t *testing.T) []byte {
	t.Helper()
	// A program that is built without tags contains the most.
	list := exec.Command("go", "list", "-tags=", "-deps",
		"-f", "{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/...")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string][]string{} // by their text
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(out)), "\t", "|"))
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		f := strings.Split(line, "|")
		text := licence(t, f[2])
		if text == "" {
			t.Errorf("%s has no licence", f[0])
		}
		modules[text] = append(modules[text], f[0]+" "+f[1])
	}
	addVendored(t, modules)
	var b bytes.Buffer
	b.WriteString("The programs of agentproxy contain these modules and scripts. Each licence follows the names of what it is of.\n")
	texts := slices.SortedFunc(maps.Keys(modules), func(a, b string) int { return strings.Compare(modules[a][0], modules[b][0]) })
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(modules[text], "\n"), text)
	}
	return b.Bytes()
}

// addVendored adds the licences of the scripts that the consoles serve: of each *.min.js the text of
// LICENSE.<name>.txt beside it.
func addVendored(t *testing.T, modules map[string][]string) {
	t.Helper()
	const dir = "../../adapters/console/ui/static"
	scripts, err := filepath.Glob(dir + "/*.min.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%s has the scripts %q, %v", dir, scripts, err)
	}
	for _, script := range scripts {
		name, _, _ := strings.Cut(filepath.Base(script), ".")
		text, err := os.ReadFile(filepath.Join(dir, "LICENSE."+name+".txt"))
		if err != nil {
			t.Error(err)
		}
		of := name + " (" + strings.TrimPrefix(filepath.ToSlash(script), "../../") + ")"
		key := strings.TrimSpace(string(text))
		modules[key] = append(modules[key], of)
	}
}

// licence returns the texts of a module's licence files.
func licence(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n")))
	}
	return strings.Join(texts, "\n\n")
}
