package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// block returns the fenced block that follows a line of a page.
func block(t *testing.T, page, after string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), after)
	_, rest, opened := strings.Cut(rest, "```sh\n")
	code, _, closed := strings.Cut(rest, "```")
	if !found || !opened || !closed {
		t.Fatalf("%s has no block after %q", page, after)
	}
	return code
}

func TestTheReadmesFirstSessionWorksUnchanged(t *testing.T) {
	t.Parallel()
	s := shared(t)
	script := strings.ReplaceAll(block(t, "README.md", "## First session"), "127.0.0.1:8080", s.api)
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	products := regexp.MustCompile(`(?m)^"product_no":"[^"]+"\n`)
	if n := len(products.FindAll(out, -1)); n < 2 {
		t.Errorf("%d products are listed:\n%s", n, out)
	}
	answers := answersIn(t, products.ReplaceAll(out, nil))
	var exits []string
	for _, a := range answers {
		if !a.Success {
			t.Errorf("one of its calls was refused: %s", a.Data)
		}
		var d struct{ IP string }
		if _ = json.Unmarshal(a.Data, &d); d.IP != "" {
			exits = append(exits, d.IP)
		}
	}
	if len(answers) != 10 || len(exits) != 2 || exits[0] == exits[1] {
		t.Errorf("%d answers and the exits %v; want 10 and two different ones:\n%s", len(answers), exits, out)
	}
	s.verify()
}

type answer struct {
	Success bool
	Data    json.RawMessage
}

// answersIn reads a sequence of envelopes.
func answersIn(t *testing.T, out []byte) []answer {
	t.Helper()
	var list []answer
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var a answer
		if err := d.Decode(&a); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		list = append(list, a)
	}
	return list
}

func TestTheCommandsThatServePrintsWork(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.logs("curl -s -x")
	var script strings.Builder
	for line := range strings.Lines(s.log.String()) {
		if line, ok := strings.CutPrefix(line, "  "); ok && (strings.Contains(line, "curl ")) {
			script.WriteString(line)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"ip":"127.`) {
		t.Errorf("%v: the commands\n%s\nprinted\n%s", err, script.String(), out)
	}
}

func TestTheReadmesTestCommandIsTheOneOfCI(t *testing.T) {
	t.Parallel()
	if got := strings.TrimSpace(block(t, "README.md", "Test it:")); got != "go test ./..." {
		t.Errorf("the README has %q; .ci/run looks for go test ./...", got)
	}
}

func TestTheDocumentedPaymentWorksUnchanged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	script := strings.NewReplacer("127.0.0.1:8080", s.api, "go run ./cmd/agentproxy", program).Replace(block(t, "docs/money.md", "## Paying in"))
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail")
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.command().Env, strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	// The program prints a table between the answers.
	text := string(out)
	answers := answersIn(t, []byte(text[strings.Index(text, "{"):]))
	var status struct{ Status string }
	var balance struct{ Balance json.Number }
	if len(answers) != 2 || json.Unmarshal(answers[0].Data, &status) != nil || json.Unmarshal(answers[1].Data, &balance) != nil ||
		status.Status != "paid" || balance.Balance != "22.5" {
		t.Errorf("the order is %q and the balance %s:\n%s", status.Status, balance.Balance, out)
	}
}
