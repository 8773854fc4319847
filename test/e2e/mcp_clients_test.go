//go:build campaign

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two clients of tools that others wrote buy, use and end a session over both transports: the one of the
// handshake era and the one of the protocol without a handshake.
func TestOtherClientsUseTheTools(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no npm")
	}
	s := serve(t, "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")
	key, _ := s.register("clients")
	dir := t.TempDir()
	ok(t, os.CopyFS(dir, os.DirFS("testdata/mcpclients")))
	install := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	// The checker of the authors of the format of skills.
	skill, err := filepath.Abs("../../skills/agentproxy")
	ok(t, err)
	if out, err := exec.Command(dir+"/node_modules/.bin/skills-ref", "validate", skill).CombinedOutput(); err != nil {
		t.Errorf("the skill: %v\n%s", err, out)
	}
	for _, client := range [][2]string{{"sdk", "legacy"}, {"client", "legacy"}, {"client", requestEra}} {
		for _, where := range []string{"http://" + s.api + "/mcp", apx} {
			t.Run(client[0]+" "+client[1]+" "+filepath.Base(where), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), "node", "buy.mjs", client[0], client[1], where)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "AGENTPROXY_URL=http://"+s.api, "AGENTPROXY_API_KEY="+key)
				out, err := cmd.CombinedOutput()
				const want = "tools 14\nget_account ok\nquote ok\ncreate_session ok\ncheck_proxy ok\nconnect ok\nreport ok\n" +
					"end_session ok\nget_session refused SESSION_NOT_FOUND\n"
				if err != nil || string(out) != want {
					t.Errorf("%v\n%s", err, strings.TrimSpace(string(out)))
				}
			})
		}
	}
	s.verify()
}
