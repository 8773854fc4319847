package connect_test

import (
	"os/exec"
	"strings"
	"testing"

	"agentproxy/domain/connect"
)

var odd = connect.Proxy{Protocol: "http", Host: "2001:db8::1", Port: 8081, Username: "user name", Password: `p'a"s$s@:/\`}

func TestProxyAsText(t *testing.T) {
	if got := odd.URL(); got != "http://user%20name:p%27a%22s$s%40%3A%2F%5C@[2001:db8::1]:8081" {
		t.Errorf("the address is %s", got)
	}
	if got := odd.Masked().URL(); got != "http://user%20name:***@[2001:db8::1]:8081" {
		t.Errorf("the masked address is %s", got)
	}
	if got := connect.URLs([]connect.Proxy{odd, odd}); strings.Count(got, "\n") != 2 {
		t.Errorf("the addresses are %q", got)
	}
	if connect.Env(nil) != "" {
		t.Error("there are variables without a proxy")
	}
}

// TestEnvSurvivesAShell evaluates the variables by a shell.
func TestEnvSurvivesAShell(t *testing.T) {
	cmd := exec.Command("sh", "-c", `eval "$(cat)"; printf '%s\n' "$PROXY_PASSWORD" "$https_proxy" "$PROXY_SERVER" "$PROXY_URLS"`)
	cmd.Stdin = strings.NewReader(connect.Env([]connect.Proxy{odd, odd}))
	out, err := cmd.Output()
	if err != nil {
		t.Skip("there is no shell: ", err)
	}
	want := odd.Password + "\n" + odd.URL() + "\nhttp://[2001:db8::1]:8081\n" + odd.URL() + " " + odd.URL() + "\n"
	if string(out) != want {
		t.Errorf("a shell has\n%s, want\n%s", out, want)
	}
}

func TestSnippets(t *testing.T) {
	if len(connect.Names()) != 12 {
		t.Errorf("the clients are %v", connect.Names())
	}
	p := connect.Proxy{Protocol: "http", Host: "proxy.test", Port: 8081, Username: "user", Password: "secret"}
	for _, name := range connect.Names() {
		c, found := connect.Find(name)
		text := c.Snippet(p)
		if !found || !strings.Contains(text, "proxy.test:8081") || !strings.Contains(text, "secret") ||
			strings.ContainsAny(strings.NewReplacer("{ ", "", " }", "").Replace(text), "\t") {
			t.Errorf("%s: %s", name, text)
		}
		for _, left := range []string{"{URL}", "{SERVER}", "{HOSTPORT}", "{USER}", "{PASSWORD}"} {
			if strings.Contains(text, left) {
				t.Errorf("%s has %s left", name, left)
			}
		}
		if strings.Contains(c.Snippet(p.Masked()), "secret") {
			t.Errorf("%s shows the password", name)
		}
	}
	if _, found := connect.Find("nothing"); found {
		t.Error("an unknown client is found")
	}
}
