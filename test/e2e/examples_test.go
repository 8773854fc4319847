package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const examples = "../../examples/"

// need skips a test without what it needs, and fails it on CI, which installs all of it.
func need(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is missing: %v", what, err)
	default:
		t.Skipf("%s is missing: %v", what, err)
	}
}

// ok ends a test with an error that is not what it tests.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExamplesFetchThroughASession(t *testing.T) {
	t.Parallel()
	const python, chromium, chromedriver = "/usr/bin/python3", "/usr/bin/chromium", "/usr/bin/chromedriver"
	module := func(name string) func() error {
		return func() error { return exec.Command(python, "-c", "import "+name).Run() }
	}
	files := func(names ...string) func() error {
		return func() error {
			for _, name := range names {
				if _, err := os.Stat(name); err != nil {
					return err
				}
			}
			return nil
		}
	}
	node := examples + "node/node_modules/"
	s := shared(t)
	for _, e := range []struct {
		name    string
		needs   func() error
		command []string
	}{
		{"requests", module("requests"), []string{python, examples + "python/requests_session.py"}},
		{"httpx", module("httpx"), []string{python, examples + "python/httpx_session.py"}},
		{"net/http", files(), []string{nethttp}},
		{"the Go client", files(), []string{goclient}},
		{"undici", files(node + "undici"), []string{"node", examples + "node/undici.mjs"}},
		{"playwright", files(node+"playwright-core", chromium), []string{"node", examples + "node/playwright.mjs"}},
		{"puppeteer", files(node+"puppeteer-core", chromium), []string{"node", examples + "node/puppeteer.mjs"}},
		{"selenium", files(node+"selenium-webdriver", chromium, chromedriver), []string{"node", examples + "node/selenium.mjs"}},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			need(t, e.name, e.needs())
			cmd := exec.CommandContext(t.Context(), e.command[0], e.command[1:]...)
			cmd.Env = append(os.Environ(), "AGENTPROXY_URL=http://"+s.api) // as apx takes it
			if strings.Contains("playwright puppeteer selenium", e.name) {
				cmd.Env = append(cmd.Env, oneBrowser(t)...)
			}
			out, err := cmd.CombinedOutput()
			if text := string(out); err != nil || !strings.Contains(text, `"ip":"127.`) || !strings.Contains(text, "terminated") {
				t.Errorf("%v; it printed\n%s", err, text)
			}
		})
	}
}

// browsing is held by the test whose browser runs: one keeps two processors busy.
var browsing sync.Mutex

// oneBrowser waits until no other test has a browser, until this one ends. It returns variables with which Node.js
// drives a browser patiently.
func oneBrowser(t *testing.T) []string {
	t.Helper()
	browsing.Lock()
	t.Cleanup(browsing.Unlock)
	modules, err := filepath.Abs(examples + "node/node_modules")
	ok(t, err)
	patient, err := filepath.Abs("testdata/patient.mjs")
	ok(t, err)
	return []string{"NODE_MODULES=" + modules, "NODE_OPTIONS=--import=" + patient}
}

func TestExamplesReadmeNamesEachProgram(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(examples + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"python/*_session.py", "node/*.mjs"} {
		programs, err := filepath.Glob(examples + pattern)
		if err != nil || len(programs) == 0 {
			t.Fatalf("%s: %d programs, %v", pattern, len(programs), err)
		}
		for _, p := range programs {
			name := strings.TrimPrefix(p, examples)
			if name != "node/session.mjs" && !strings.Contains(string(text), "examples/"+name) {
				t.Errorf("examples/README.md does not name %s", name)
			}
		}
	}
}
