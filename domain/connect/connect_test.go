package connect_test

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
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
	cmd := exec.Command("sh", "-c", `eval "$(cat)"; printf '%s\n' "$PROXY_PASSWORD" "$https_proxy" "$PROXY_SERVER" "$PROXY_URLS" "$NO_PROXY$no_proxy$NODE_USE_ENV_PROXY"`)
	cmd.Env = []string{"NO_PROXY=*", "no_proxy=*"}
	cmd.Stdin = strings.NewReader(connect.Env([]connect.Proxy{odd, odd}))
	out, err := cmd.Output()
	if err != nil {
		t.Skip("there is no shell: ", err)
	}
	want := odd.Password + "\n" + odd.URL() + "\nhttp://[2001:db8::1]:8081\n" + odd.URL() + " " + odd.URL() + "\n1\n"
	if string(out) != want {
		t.Errorf("a shell has\n%s, want\n%s", out, want)
	}
}

var gate = connect.Proxy{Protocol: "http", Host: "proxy.test", Port: 8081, Username: "user", Password: "secret"}

// uses are one proxy, one worker in a country, and many workers.
var uses = map[string]connect.Use{
	"one":    {Session: "sess_1", Proxy: gate},
	"worker": {Session: "sess_1", Proxy: gate, Workers: []string{"w07"}, Country: "DE"},
	"many":   {Session: "sess_1", Proxy: gate, Workers: []string{"w1", "login_2"}},
}

func TestSnippets(t *testing.T) {
	if len(connect.Names()) != 12 {
		t.Errorf("the clients are %v", connect.Names())
	}
	var all strings.Builder
	for _, name := range connect.Names() {
		c, found := connect.Find(name)
		if !found {
			t.Errorf("%s is not found", name)
		}
		for _, kind := range []string{"one", "worker", "many"} {
			u := uses[kind]
			text := c.Snippet(u)
			all.WriteString("=== " + name + " " + kind + "\n" + text + "\n")
			if !strings.Contains(text, "proxy.test:8081") || name != "selenium" && !strings.Contains(text, "secret") {
				t.Errorf("%s: %s", name, text)
			}
			if left := regexp.MustCompile(`\{[A-Z]+\}`).FindString(text); left != "" {
				t.Errorf("%s has %s left", name, left)
			}
			u.Proxy = u.Proxy.Masked()
			if masked := c.Snippet(u); strings.Contains(masked, "secret") || name != "selenium" && !strings.Contains(masked, "***") {
				t.Errorf("%s shows the password, or no mask: %s", name, masked)
			}
			if err := reads(t, c.Language, c.Snippet(connect.Use{Session: u.Session, Proxy: odd, Workers: u.Workers})); err != nil {
				t.Errorf("%s %s does not compile: %v", name, kind, err)
			}
		}
	}
	if _, found := connect.Find("nothing"); found {
		t.Error("an unknown client is found")
	}
	golden(t, all.String())
}

var update = flag.Bool("update", false, "write the golden file")

// golden compares the text of every snippet with the file.
func golden(t *testing.T, got string) {
	t.Helper()
	const file = "testdata/snippets.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("the snippets differ from %s, %v; run make generate and read the difference", file, err)
	}
}

// reads reports why a parser of the language refuses a text. A language that is not installed is
// not checked.
func reads(t *testing.T, language, text string) error {
	t.Helper()
	var cmd *exec.Cmd
	switch language {
	case "go":
		_, err := parser.ParseFile(token.NewFileSet(), "main.go", text, parser.AllErrors)
		return err
	case "sh":
		cmd = exec.Command("sh", "-n")
	case "python":
		cmd = exec.Command("python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	case "javascript":
		cmd = exec.Command("node", "--input-type=module", "--check")
	default:
		t.Fatalf("there is no parser of %s", language)
	}
	if _, err := exec.LookPath(cmd.Path); err != nil {
		return nil
	}
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func TestWorkersInUserNames(t *testing.T) {
	for kind, want := range map[string][]string{
		"one": {"user"}, "worker": {"user-country-de-session-w07"}, "many": {"user-session-w1", "user-session-login_2"}} {
		var got []string
		for _, p := range uses[kind].Proxies() {
			got = append(got, p.Username)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	place := connect.Use{Proxy: gate, Country: "US"}
	if got := place.Proxies(); len(got) != 1 || got[0].Username != "user-country-us" {
		t.Errorf("a country alone gives %v", got)
	}
}

func TestAdapt(t *testing.T) {
	socks := gate
	socks.Protocol = "socks5"
	puppeteer, _ := connect.Find("puppeteer")
	curl, _ := connect.Find("curl")
	if got, err := curl.Adapt(socks, gate.URL()); err != nil || got != socks {
		t.Errorf("curl gets %v, %v", got, err)
	}
	if got, err := puppeteer.Adapt(socks, odd.URL()); err != nil || got != odd {
		t.Errorf("puppeteer gets %v, %v", got, err)
	}
	for _, address := range []string{"", "http://no.port"} {
		if got, err := puppeteer.Adapt(socks, address); err == nil {
			t.Errorf("without an HTTP address puppeteer gets %v", got)
		}
	}
}

func TestByTLS(t *testing.T) {
	secure, socks := gate, gate
	secure.Protocol, socks.Protocol = "https", "socks5"
	curl, _ := connect.Find("curl")
	variables, _ := connect.Find("env")
	for _, c := range []struct {
		client  connect.Client
		proxy   connect.Proxy
		address string
		want    connect.Proxy
	}{
		{curl, gate, secure.URL(), secure}, {curl, gate, "", gate}, {curl, socks, secure.URL(), socks},
		{variables, gate, secure.URL(), gate},
	} {
		if got := c.client.ByTLS(c.proxy, c.address); got != c.want {
			t.Errorf("%s with %q gets %v, want %v", c.client.Name, c.address, got, c.want)
		}
	}
}

func TestOnlyTLS(t *testing.T) {
	socks := gate
	socks.Protocol = "socks5"
	for _, name := range connect.Names() {
		client, _ := connect.Find(name)
		for _, workers := range [][]string{nil, {"a", "b"}} {
			for _, p := range []connect.Proxy{gate, socks} {
				by, secure := client.OnlyTLS(p)
				text := by.Snippet(connect.Use{Session: "sess_1", Proxy: secure, Workers: workers})
				if strings.Contains(text, "http://"+p.Username) || strings.Contains(text, "http://"+p.Address()) ||
					strings.Contains(text, "socks5://") {
					t.Errorf("%s does not go by TLS:\n%s", name, text)
				}
				if noted := strings.HasPrefix(text, "# "+client.NoTLS+"\n"); noted != (client.NoTLS != "" && name != "selenium") {
					t.Errorf("%s: why some versions cannot is in the snippet: %v\n%s", name, noted, text)
				}
			}
		}
	}
}

func TestMaskIn(t *testing.T) {
	p := gate
	p.Password = `p@"s\<`
	for _, name := range connect.Names() {
		client, _ := connect.Find(name)
		for _, workers := range [][]string{nil, {"a", "b"}} {
			u := connect.Use{Session: "sess_1", Proxy: p, Workers: workers}
			got := p.MaskIn(client.Snippet(u))
			if u.Proxy = p.Masked(); got != client.Snippet(u) {
				t.Errorf("%s: %s\nwant %s", name, got, client.Snippet(u))
			}
		}
	}
}

func TestParseWorkers(t *testing.T) {
	for text, want := range map[string]string{"": "", "1": "w1", "3": "w1 w2 w3", "a": "a", "a,B_2": "a B_2", "7,": "7",
		"0": "!", "1001": "!", "99999999999999999999": "!", "a,": "a", ",": "!", "a,,b": "!", "a,a": "!", "a b": "!", "-1": "!",
		strings.Repeat("x", 32): strings.Repeat("x", 32), strings.Repeat("x", 33): "!", strings.Repeat("a,", 1001): "!"} {
		names, err := connect.ParseWorkers(text)
		got := strings.Join(names, " ")
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%.40q gives %q, %v; want %q", text, got, err, want)
		}
		if again, err := connect.ParseWorkers(connect.WorkersText(names)); err != nil || !slices.Equal(again, names) {
			t.Errorf("%v is written and read as %v, %v", names, again, err)
		}
	}
	if names, err := connect.ParseWorkers("1000"); err != nil || names[999] != "w1000" {
		t.Errorf("1000 workers: %v", err)
	}
}
