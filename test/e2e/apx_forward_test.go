package e2e_test

import (
	"bufio"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// forwards starts a local proxy in front of a session and returns its address.
func (s *service) forwards(key string, args ...string) string {
	s.t.Helper()
	return s.listens(s.client(s.t.TempDir(), key, append([]string{"forward"}, args...)...))
}

// listens starts a local proxy and returns its address.
func (s *service) listens(cmd *exec.Cmd) string {
	s.t.Helper()
	out, err := cmd.StdoutPipe()
	succeeds(s.t, err)
	succeeds(s.t, cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, found := strings.Cut(line, "set the proxy http://")
	if err != nil || !found {
		s.t.Fatalf("it prints %q, %v", line, err)
	}
	address, _, _ := strings.Cut(rest, " ")
	return address
}

// TestForwardNeedsNoPassword uses the local proxy by each protocol, through a session.
func TestForwardNeedsNoPassword(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, "curl", err)
	s := shared(t)
	key, _ := s.register("forward")
	id := s.dynamic(key, "0.1")
	target, env := secureSite(t)
	exit := s.exitOf(s.proxyAt(key, id).String())
	at := s.forwards(key, id)
	if !strings.HasPrefix(at, "127.0.0.1:") {
		t.Errorf("it listens on %s", at)
	}
	for _, proxy := range []string{"http://" + at, "socks5h://" + at, "socks5://" + at} {
		for _, page := range []string{target, "http://" + s.api + "/v1/ip"} {
			cmd := exec.CommandContext(t.Context(), "curl", "-sS", "-x", proxy, page)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), exit) {
				t.Errorf("%s through %s: %v %s", page, proxy, err, out)
			}
		}
	}
	// What the gateway refuses with is passed on.
	through := &url.URL{Scheme: "http", Host: at}
	for page, want := range map[string]int{"http://10.1.2.3/": 403, "http://127.0.0.1:25/": 403} {
		c := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(through), DisableKeepAlives: true}, Timeout: soon}
		r, err := c.Get(page)
		if err != nil || r.StatusCode != want || !strings.HasPrefix(r.Header.Get("Proxy-Status"), "agentproxy") {
			t.Errorf("%s: %v, %v", page, r, err)
		}
	}
	if _, _, status, err := connect(through, "10.1.2.3:443"); err != nil || status != 403 {
		t.Errorf("CONNECT: %d, %v", status, err)
	}
	s.must(200, "POST", "/sessions/"+id+"/terminate", key, "")
	within(t, soon, "the end of the session", func() bool {
		_, _, status, err := connect(through, s.api)
		return err == nil && status == 410
	})
}

// TestForwardGoesByTLS uses the local proxy before gateways that take nothing but TLS: one whose certificate is
// trusted, and one whose certificate has another name.
func TestForwardGoesByTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		trusted bool
		fault   string // what apx ends with; empty: it serves
	}{
		{"localhost", true, ""}, {"localhost", false, "certificate signed by unknown authority"},
		{"elsewhere.example", true, "not localhost"},
	} {
		s, file := withCertificate(t, []string{c.name}, "AGENTPROXY_GATEWAY_PLAINTEXT=refuse")
		key, _ := s.register("forward")
		cmd := s.client(t.TempDir(), key, "forward", s.dynamic(key, "0.1"))
		if c.trusted {
			cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+file)
		}
		if c.fault != "" {
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.fault) {
				t.Errorf("%+v: apx ends with %v and prints %s", c, err, out)
			}
			continue
		}
		at := s.listens(cmd)
		if status, body := through(t, "http://"+at, "http://"+s.api+"/v1/ip"); status != 200 || !strings.Contains(body, `"ip"`) {
			t.Errorf("a request is answered %d %s", status, body)
		}
		if _, _, status, err := connect(&url.URL{Scheme: "http", Host: at}, s.api); err != nil || status != 200 {
			t.Errorf("CONNECT is answered %d, %v", status, err)
		}
	}
}

// TestTheRestOfApx runs the commands that act on sessions and money, in a pipe and on a terminal.
func TestTheRestOfApx(t *testing.T) {
	t.Parallel()
	s := shared(t, "AGENTPROXY_TRIAL_BALANCE=100")
	home := t.TempDir()
	out, err := s.shell(home, `
		apx register >/dev/null
		S=$(apx buy dyn_fast_1 --gb 0.1 --max-cost 1 | cut -f1)
		F=$(apx buy sta_isp_1 --days 30 --country US --max-cost 50 | cut -f1)
		echo "renew $(apx renew $F --days 30 --max-cost 50 --id once)"
		apx renew $F --days 30 --max-cost 50 --id once >/dev/null
		echo "report $(apx report $S captcha --status 403 --host shop.example)"
		echo "events $(apx events $S | grep shop.example)"
		echo "explain $(apx explain $S --status 403)"
		echo "check $(apx check $S --url http://`+s.api+`/v1/health)"
		echo "spent $(apx transactions | grep -c hold)"
		apx recharge 25 --id pay | grep -q TRC20
		echo "order $(apx recharge 25 --id pay)"
		for command in "transactions" "recharge 25 --id pay" "events $S" "explain $S" "check $S" "renew $F --days 30 --max-cost 50 --id once" "report $S success" "url $S" "env $S" "connect $S" "workers $S" "version"; do
			apx --json $command | grep -q '^{' || echo "no JSON from $command"
		done`)
	for _, want := range []string{"renew sess_", "report ", "\tcaptcha\tshop.example\t403\t", "likely\tcaptcha\t", "check 200\t", "spent 3\n", "\t25 USDT\tTRC20\tT"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answers lack %q", want)
		}
	}
	if err != nil || strings.Contains(out, "no JSON") || t.Failed() {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err = exec.LookPath("script")
	need(t, "script", err)
	shown, err := s.shell(home, `script -qec "apx recharge 25 --id pay" /dev/null; script -qec "apx ls" /dev/null`)
	if err != nil || !strings.Contains(shown, "█") || !strings.Contains(shown, "SESSION") {
		t.Errorf("on a terminal: %v\n%s", err, shown)
	}
	if strings.Contains(out, "█") {
		t.Error("a pipe has a QR code")
	}
	for script, want := range map[string]string{
		`apx renew sess_none --days 30`:                        "exit status 2: apx: misuse: give --max-cost",
		`apx check $(apx ls --type dynamic | cut -f1) --url x`: "exit status 1: apx: INVALID_REQUEST: url",
		`apx recharge lots`:                                    "exit status 2: apx: misuse: the amount",
		`apx explain sess_none`:                                "exit status 1: apx: SESSION_NOT_FOUND",
		`apx report $(apx ls --type dynamic | cut -f1) sneeze`: "exit status 1: apx: INVALID_REQUEST",
		`apx forward sess_none`:                                "exit status 1: apx: SESSION_NOT_FOUND",
	} {
		if out, err := s.shell(home, script); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s\n%s", script, err, want, out)
		}
	}
}
