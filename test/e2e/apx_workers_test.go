package e2e_test

import (
	"strings"
	"testing"
)

// TestWorkersOfApx makes, uses, rotates and lists workers by apx and curl alone.
func TestWorkersOfApx(t *testing.T) {
	t.Parallel()
	s := shared(t, "AGENTPROXY_TRIAL_BALANCE=100")
	home := t.TempDir()
	out, err := s.shell(home, `
		apx register >/dev/null
		S=$(apx buy dyn_fast_1 --gb 0.1 --max-cost 1 | cut -f1)
		apx workers $S | wc -l
		apx workers $S --names a,b --unique --country US >/dev/null
		apx workers $S --count 120 >/dev/null
		echo "all $(apx workers $S | cut -f1 | sort -u | wc -l) $(apx --json workers $S | grep -c '"name"')"
		echo "country $(apx workers $S | grep '^a' | cut -f3)"
		echo "apart $(apx workers $S | grep '^[ab]' | cut -f4 | sort -u | wc -l)"
		ip() { curl -sSf -x "$1" http://`+s.api+`/v1/ip | grep -o '"ip":"[0-9.]*' | cut -d'"' -f4; }
		A=$(ip "$(apx url $S --worker a)")
		test "$A" = "$(apx workers $S | grep '^a' | cut -f4)" && echo "the listed exit"
		test "$A" = "$(ip "$(eval "$(apx env $S --worker a)"; echo $PROXY_URL)")" && echo "the same by env"
		test "$A" = "$(apx check $S --worker a | cut -f1)" && echo "the checked exit"
		apx check $S --worker a --url http://`+s.api+`/v1/ip | grep -q ^200
		test "$A" != "$(apx rotate $S --worker a --reason captcha | cut -f4)" && echo "another exit"
		test "$A" != "$(ip "$(apx url $S --worker a)")" && echo "used too"
		echo "report $(apx report $S captcha --worker b | cut -f2)"
		echo "events $(apx --json events $S | grep -c '"worker": "b"')"
		apx --json rotate $S --worker b | grep password
		F=$(apx buy sta_isp_1 --days 30 --country US --max-cost 50 | cut -f1)
		apx workers $F --count 1 2>&1 || echo "status $?"
		apx check $F --worker a 2>&1 || echo "status $?"
		apx workers $S --unique 2>&1 || echo "status $?"
		apx rotate $S --worker none 2>&1 || echo "status $?"
		apx report $S success --worker none 2>&1 || echo "status $?"`)
	for _, want := range []string{"0\nall 122 122\n", "country US\n", "apart 2\n", "the listed exit", "the same by env", "the checked exit",
		"another exit", "used too", "report medium", "events 1\n", `"password": "***"`, "a static session has no workers", "worker is for dynamic sessions",
		"apx: misuse: --unique, --country and --require-… go with --count or --names\nstatus 2\n", "apx: WORKER_NOT_FOUND"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answers lack %q", want)
		}
	}
	if err != nil || strings.Count(out, "status 1\n") != 4 || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
	_, rest, _ := strings.Cut(out, "the listed exit")
	if strings.Contains(rest, "ak_") {
		t.Error("an answer has the key")
	}
}
