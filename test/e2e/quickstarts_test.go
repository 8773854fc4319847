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

// fetched reads a page of the running program.
func (s *service) fetched(path string) string {
	s.t.Helper()
	r, err := http.Get("http://" + s.api + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v", path, r.StatusCode, err)
	}
	return string(text)
}

// scripts returns the blocks of a page that a shell runs.
func scripts(page string) (list []string) {
	for {
		_, rest, found := strings.Cut(page, "```sh\n")
		if !found {
			return list
		}
		code, after, _ := strings.Cut(rest, "```")
		list, page = append(list, code), after
	}
}

// TestQuickstartsWorkAsTheyStand runs the examples of the pages as the program serves them, each page in a
// home of its own. Pages that go on from the quickstart begin with it.
func TestQuickstartsWorkAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
	s := shared(t)
	start := scripts(s.fetched("/docs/quickstart.md"))
	if len(start) != 2 || !strings.Contains(start[0], "API=http://"+s.api+"/v1\n") {
		t.Fatalf("the quickstart has %d scripts: %q", len(start), start)
	}
	for name, c := range map[string]struct {
		script  []string
		answers int // with success true, at least
		exits   int // addresses of exits that /v1/ip has answered
	}{
		"curl":     {start[:1], 2, 1},
		"apx":      {start[1:], 1, 1},
		"llms.txt": {scripts(s.fetched("/llms.txt")), 2, 1},
		"sessions": {append(start[:1:1], scripts(s.fetched("/docs/sessions.md"))...), 9, 1},
		"workers":  {append(start[:1:1], scripts(s.fetched("/docs/workers.md"))...), 6, 1},
		"money":    {append(start[:1:1], scripts(s.fetched("/docs/money.md"))...), 5, 1},
		"policy":   {append(start[:1:1], scripts(s.fetched("/docs/policy.md"))...), 4, 1},
		"apx page": {scripts(s.fetched("/docs/apx.md")), 0, 0},
		"skill":    {scripts(s.fetched("/skill.md")), 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "bash", "-eu") // pipefail is not the default of a shell
			cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(apx) + ":" + os.Getenv("PATH")}
			cmd.Stdin = strings.NewReader(strings.Join(c.script, "\n"))
			out, err := cmd.CombinedOutput()
			text := string(out)
			good, exits := strings.Count(text, `"success":true`), strings.Count(text, `"data":{"ip":"127.`)
			if err != nil || good < c.answers || exits != c.exits || strings.Contains(text, `"success":false`) || strings.Contains(text, "ak_") ||
				strings.Contains(text, `"ip":"127.0.0.1"`) { // this host's own address: the request passed by the proxy
				t.Errorf("%v, %d answers and %d exits, want %d and %d:\n%s\n%s", err, good, exits, c.answers, c.exits,
					strings.Join(c.script, "\n"), text)
			}
		})
	}
}
