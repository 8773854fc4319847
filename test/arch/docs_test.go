package arch_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeFile = regexp.MustCompile("`((?:domain|ports|app|adapters|cmd|test)/[A-Za-z0-9_/]+\\.go)`")
	link     = regexp.MustCompile(`\]\(([^)#: ]+)(?:#[^)]*)?\)`)
)

// pages returns the Markdown files of the repository, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

func TestPagesNameFilesThatExist(t *testing.T) {
	for page, text := range pages(t) {
		for _, m := range codeFile.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}

// TestExamplesStopWithoutAProxy holds because curl -x "" connects directly: an example whose session is not there
// would show the reader's own address as an exit.
func TestExamplesStopWithoutAProxy(t *testing.T) {
	texts := pages(t)
	served, err := filepath.Glob(filepath.Join(root, "adapters/httpapi/pages/text/*.tmpl"))
	if err != nil || len(served) < 10 {
		t.Fatalf("%d pages are served, %v", len(served), err)
	}
	for _, page := range append(served, filepath.Join(root, "cmd/agentproxy/serve.go")) { // which prints examples
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	found := 0
	for page, text := range texts {
		for _, m := range regexp.MustCompile(`-x ("?\$\S+)`).FindAllStringSubmatch(text, -1) {
			if found++; !regexp.MustCompile(`^"\$\{[A-Z]+:\?\}"$`).MatchString(m[1]) {
				t.Errorf("%s: curl -x %s connects directly where it is empty: write \"${PROXY:?}\"", page, m[1])
			}
		}
		if strings.Contains(text, `eval "$(apx env`) {
			t.Errorf("%s: what follows eval of a session that is not there connects directly: write apx run", page)
		}
	}
	if found < 8 {
		t.Errorf("found only %d examples", found)
	}
}

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if n := strings.Count(string(text), "\n"); err != nil || n > 150 {
		t.Errorf("README.md has %d lines, %v; at most 150: the rest belongs to docs/", n, err)
	}
}

var (
	variable  = regexp.MustCompile(`\bAGENTPROXY_[A-Z0-9_]*[A-Z0-9]\b`)
	metric    = regexp.MustCompile(`\bagentproxy_[a-z0-9_]*[a-z0-9]\b`)
	endpoint  = regexp.MustCompile("`(?:GET|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9_{}./-]*)")
	literal   = regexp.MustCompile(`"([^"\n]*)"`)
	parameter = regexp.MustCompile(`\{[^}]*\}|:[a-z_]+`)
)

// TestPagesNameVariablesMetricsAndEndpointsThatExist looks for each in the texts of the code.
func TestPagesNameVariablesMetricsAndEndpointsThatExist(t *testing.T) {
	texts, prefixes, words := map[string]bool{}, []string{}, map[string]bool{}
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, m := range literal.FindAllSubmatch(s.text, -1) {
			text := string(m[1])
			texts[parameter.ReplaceAllString(text, "{}")] = true
			if strings.HasPrefix(text, "agentproxy_") && strings.HasSuffix(text, "_") && text != "agentproxy_" {
				prefixes = append(prefixes, text)
			}
		}
		for _, word := range variable.FindAll(s.text, -1) {
			words[string(word)] = true
		}
	}
	all := pages(t)
	for _, name := range variable.FindAllString(all[filepath.Join(root, "docs/configuration.md")], -1) {
		words[name] = true // a test of configfile writes this page from the code
	}
	words["AGENTPROXY_TELEMETRY_0"] = true // a stream of NATS
	found := 0
	for page, text := range all {
		for _, name := range variable.FindAllString(text, -1) {
			if found++; !words[name] {
				t.Errorf("%s names the variable %s, which the code does not have", page, name)
			}
		}
		for _, name := range metric.FindAllString(text, -1) {
			series := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			found++
			if !texts[name] && !texts[series] && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				t.Errorf("%s names the metric %s, which the code does not have", page, name)
			}
		}
		for _, m := range endpoint.FindAllStringSubmatch(text, -1) {
			path := parameter.ReplaceAllString(strings.TrimRight(m[1], "./"), "{}")
			if found++; !texts[path] && !texts[strings.TrimPrefix(path, "/v1")] {
				t.Errorf("%s names the endpoint %s, which the code does not have", page, m[1])
			}
		}
	}
	if found < 200 {
		t.Errorf("found only %d names", found)
	}
}
