package pages_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentproxy/adapters/httpapi/pages"
	"agentproxy/domain/worker"
)

var update = flag.Bool("update", false, "rewrite skills/agentproxy/SKILL.md")

// local is a service on this host, as the repository shows it.
var local = pages.Sources{Base: "http://127.0.0.1:8080", Gateway: "127.0.0.1:8081", Target: "http://127.0.0.1:8080/v1/ip",
	Tools: []pages.Tool{{Name: "quote"}}}

func render(t *testing.T, src pages.Sources) map[string]string {
	t.Helper()
	set, err := pages.Render(src)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"home": string(set.Home), "index": string(set.Index)}
	for _, p := range set.Files {
		texts[p.Path] = string(p.Text)
	}
	return texts
}

// TestTheRepositoryHasTheSkill compares the file of the repository with the page of a local service.
func TestTheRepositoryHasTheSkill(t *testing.T) {
	t.Parallel()
	file := filepath.FromSlash("../../../skills/agentproxy/SKILL.md")
	want := render(t, local)["/skill.md"]
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s is not the page /skill.md (%v): run make generate", file, err)
	}
}

// TestTheGrammarIsNoLink checks that Markdown shows the form of user names as it is.
func TestTheGrammarIsNoLink(t *testing.T) {
	t.Parallel()
	src := local
	src.Gateways = []pages.Refusal{{Code: "USERNAME_PARAMETER_INVALID", Status: 400, Message: "the form is " + worker.Grammar}}
	for path, text := range render(t, src) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "-session-<name>[") && !strings.Contains(line, "`"+strings.ReplaceAll(worker.Grammar, "|", `\|`)+"`") &&
				!strings.HasPrefix(line, "    ") {
				t.Errorf("%s: %s", path, line)
			}
		}
		if path == "/docs/errors.md" && !strings.Contains(text, "the form is `<base>") {
			t.Errorf("%s does not show the form", path)
		}
	}
}

func TestPagesLeaveOutWhatIsNotOffered(t *testing.T) {
	t.Parallel()
	without := local
	without.Tools = nil
	for path, text := range render(t, without) {
		if path != "/docs/apx.md" && path != "/llms-full.txt" && path != "/robots.txt" && strings.Contains(text, "8080/mcp") {
			t.Errorf("%s names the tools of a service without tools", path)
		}
		if strings.Contains(text, "security.txt") || strings.Contains(text, "busiv") {
			t.Errorf("%s names a contact that is not configured", path)
		}
	}
	with := local
	with.Contact = "mailto:abuse@shop.example"
	for _, path := range []string{"index", "/docs/policy.md"} {
		if text := render(t, with)[path]; !strings.Contains(text, with.Contact) {
			t.Errorf("%s lacks the contact", path)
		}
	}
}

// TestPagesSayWhatEndingCosts holds because fixed IPs are paid for their whole time.
func TestPagesSayWhatEndingCosts(t *testing.T) {
	t.Parallel()
	texts := render(t, local)
	for _, path := range []string{"home", "/llms.txt", "/skill.md", "/docs/sessions.md", "/docs/money.md"} {
		if text := strings.Join(strings.Fields(texts[path]), " "); !strings.Contains(text, "not refunded when you end it") {
			t.Errorf("%s promises that everything comes back", path)
		}
	}
	if n := len(texts["/llms.txt"]); n > 8_000 {
		t.Errorf("/llms.txt has %d bytes", n)
	}
}

// An operator's texts are data: they cannot break a table or the page for browsers.
func TestTextsAreEscaped(t *testing.T) {
	t.Parallel()
	src := local
	src.Version = "<script>1"
	src.Errors = []pages.Refusal{{Code: "A_CODE", Status: 400, Message: "one | two"}}
	texts := render(t, src)
	if strings.Contains(texts["home"], "<script>1") {
		t.Error("the page for browsers has markup of a value")
	}
	if !strings.Contains(texts["/docs/errors.md"], "| `A_CODE` | 400 | no | one \\| two |\n") {
		t.Error("a cell breaks its table")
	}
}

// TestTheClientsPagePrefersTLS compares the page of a gateway with a certificate with that of one without.
func TestTheClientsPagePrefersTLS(t *testing.T) {
	t.Parallel()
	src := local
	clear := render(t, src)["/docs/clients.md"]
	src.GatewayTLS = true
	secure := render(t, src)["/docs/clients.md"]
	for _, part := range []string{"curl --noproxy '' -x 'https://USERNAME:PASSWORD@127.0.0.1:8081'", "`proxy.https_url`", "\nNo TLS to the proxy: "} {
		if !strings.Contains(secure, part) || strings.Contains(clear, part) {
			t.Errorf("with a certificate alone the page has %q", part)
		}
	}
}
