package e2e_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shell runs a script with apx and curl in a home of its own.
func (s *service) shell(home, script string) (string, error) {
	s.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Env = []string{"HOME=" + home, "PATH=" + filepath.Dir(apx) + ":" + os.Getenv("PATH"), "AGENTPROXY_URL=http://" + s.api}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

// TestFirstRequestInThreeCommands goes from nothing to a proxied request.
func TestFirstRequestInThreeCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	s := shared(t)
	home := t.TempDir()
	out, err := s.shell(home, `
		apx register
		S=$(apx buy dyn_fast_1 --gb 0.1 --max-cost 1 | cut -f1)
		curl -sf -x "$(apx url $S)" `+"http://"+s.api+`/v1/ip`)
	if err != nil || !strings.Contains(out, `"ip":"127.`) {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(filepath.Join(home, ".config/agentproxy/profile.json"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the profile: %v, %v", info, err)
	}

	// The rest of the commands, with the secret in none of their answers but url and env.
	out, err = s.shell(home, `
		S=$(apx ls --status active | cut -f1)
		apx account; apx balance; apx products --country US; apx quote dyn_fast_1 --gb 1
		apx show $S; apx show $S --json; apx rotate $S --reason captcha --json; apx check $S; apx version`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	proxy, err := s.shell(home, `apx url $(apx ls | cut -f1)`)
	parsed, bad := url.Parse(strings.TrimSpace(proxy))
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	password, _ := parsed.User.Password()
	if password == "" || strings.Contains(out, password) || strings.Contains(out, "ak_") || !strings.Contains(out, `"password": "***"`) {
		t.Errorf("the answers have a secret, or no mask:\n%s", out)
	}
	env, err := s.shell(home, `eval "$(apx env $(apx ls | cut -f1))"; printf %s "$PROXY_PASSWORD"`)
	if err != nil || env != password {
		t.Errorf("env sets %q, %v", env, err)
	}
	if out, err := s.shell(home, `apx end $(apx ls | cut -f1) --yes`); err != nil || !strings.Contains(out, "terminated") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestStatusesOfApx(t *testing.T) {
	t.Parallel()
	s := shared(t)
	home := t.TempDir()
	for script, want := range map[string]string{
		`apx register; apx register`:                                "exit status 2: apx: misuse: the profile has",
		`apx register; apx buy dyn_fast_1 --gb 1`:                   "exit status 2: apx: misuse: give --max-cost",
		`apx register; apx buy dyn_fast_1 --gb 900 --max-cost 9999`: "exit status 3: apx: INSUFFICIENT_BALANCE",
		`apx register; apx buy dyn_fast_1 --gb 1 --max-cost 0.01`:   "exit status 1: apx: PRICE_MISMATCH",
		`apx register; apx show sess_none`:                          "exit status 1: apx: SESSION_NOT_FOUND",
		`AGENTPROXY_URL=http://127.0.0.1:1 apx products`:            "exit status 1: apx: call the service",
		`AGENTPROXY_URL=nonsense apx products`:                      "exit status 1: apx: AGENTPROXY_URL",
		`apx nonsense`:                                              "exit status 2: apx:",
		`AGENTPROXY_API_KEY=ak_wrong apx balance`:                   "exit status 1: apx: AUTH_INVALID_KEY",
	} {
		out, err := s.shell(filepath.Join(home, url.PathEscape(script)), script)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s\n%s", script, err, want, out)
		} else if text := err.Error(); strings.Contains(text, "to repeat it") { // none of them can be repeated
			t.Errorf("%s advises to repeat it: %s", script, text)
		} else if strings.Contains(text, "call the service") != strings.Contains(text, "AGENTPROXY_URL names") ||
			strings.Contains(text, "AUTH_INVALID_KEY") != strings.Contains(text, "apx register") {
			t.Errorf("%s does not name what to set: %s", script, text)
		}
	}
	// The key of one service is not sent to another.
	other := shared(t, "AGENTPROXY_TRIAL_BALANCE=100")
	if _, err := s.shell(home, `apx register && AGENTPROXY_URL=http://`+other.api+` apx balance`); err == nil ||
		!strings.Contains(err.Error(), "AUTH_INVALID_KEY: send") {
		t.Errorf("another service: %v", err)
	}
}
