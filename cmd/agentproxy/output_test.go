package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCommandsOfTheOperatorPrintJSONAndExitAsTheySay goes through the commands on an installation with one
// agent: what each prints with --json, who is kept, and how it exits.
func TestCommandsOfTheOperatorPrintJSONAndExitAsTheySay(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	done(t, "migrate")
	agent := object(t, done(t, "agent", "add", "--name", "shop", "--by", "ann"))["agent_id"].(string)
	for _, c := range []struct {
		args string // AGENT is the agent
		exit int
		kept string // the action that is kept of it; empty: none
	}{
		{"agent show AGENT", 0, ""},
		{"agent show agt_x", 1, ""},
		{"agent list --search sho", 0, ""},
		{"agent list --status colour", 2, ""},
		{"agent list --registered-from 203.0.113.7/24", 1, ""},
		{"agent list --sort charged", 0, ""},
		{"agent list --sort colour", 2, ""},
		{"agent note AGENT", 2, ""},
		{"agent note AGENT --reason friendly", 0, "agent note"},
		{"agent note agt_x --reason friendly", 1, ""},
		{"agent set-tier AGENT verified --evidence passport", 0, "agent set-tier"},
		{"agent set-tier AGENT emperor", 1, ""},
		{"agent set-rate-limit AGENT --per-minute 7", 0, "agent set-rate-limit"},
		{"agent set-rate-limit AGENT --per-minute -7", 1, ""},
		{"agent rotate-key AGENT", 0, "agent rotate-key"},
		{"agent disable AGENT", 2, ""},
		{"agent disable AGENT --reason abuse", 0, "agent disable"},
		{"agent enable AGENT", 0, "agent enable"},
		{"adjust AGENT --amount 2 --reason gift --ref t1", 0, "adjust"},
		{"adjust AGENT --amount 2 --reason gift --ref t1", 0, ""}, // the same, once more
		{"adjust AGENT --amount 3 --reason gift --ref t1", 1, ""}, // another one under its reference
		{"adjust AGENT --amount x --reason gift", 1, ""},
		{"adjust AGENT --amount 2", 2, ""},
		{"refund sess_x --percent 50 --reason slow --ref t2", 1, ""},
		{"refund sess_x --percent 101 --reason slow", 1, ""},
		{"session end sess_x --reason abuse", 1, ""},
		{"session list", 0, ""},
		{"session list --status colour", 2, ""},
		{"referrer add --name Friend --code FRIEND", 0, "referrer add"},
		{"referrer add --name Friend --code FRIEND", 1, ""},
		{"referrer disable --code FRIEND", 0, "referrer disable"},
		{"referrer disable --code UNKNOWN", 1, ""},
		{"referrer list", 0, ""},
		{"report margin --by product", 0, ""},
		{"report margin --from tomorrow", 1, ""},
		{"recharge list", 0, ""},
		{"recharge show PAY1", 1, ""},
		{"recharge audit", 0, ""},
		{"recharge addresses", 0, ""},
		{"recharge rescan --from 2026-01-01", 0, "recharge rescan"},
		{"orders list", 0, ""},
		{"orders adopt ord_x", 1, ""},
		{"orders release ord_x", 1, ""},
		{"orders lost ord_x", 1, ""},
		{"orders reconcile unknown", 1, ""},
		{"jobs list", 0, ""},
		{"jobs retry 7", 1, ""},
		{"jobs discard 7", 1, ""},
		{"exits lookup --exit-ip 203.0.113.7 --at 2026-05-15T12:00:00Z --reason police", 1, "exits lookup"}, // kept also if none is found
		{"exits lookup --client 192.0.2.7 --at 2026-05-15T12:00:00Z --reason police", 1, "exits lookup|192.0.2.7"},
		{"exits lookup --seller oxy --token tok1 --at 2026-05-15T12:00:00Z --reason police", 1, "exits lookup|oxy to tok1"},
		{"exits lookup --exit-ip 203.0.113 --at 2026-05-15T12:00:00Z --reason police", 2, ""},
		{"exits lookup --at 2026-05-15T12:00:00Z --reason police", 2, ""}, // it would list every connection
		{"exits lookup --exit-port 7 --agent AGENT --at 2026-05-15T12:00:00Z --reason police", 2, ""},
		{"exits lookups", 0, ""},
		{"exits quality", 0, ""},
		{"exits hold --from 2026-05-01 --to 2026-05-02 --reason police", 0, "exits hold"},
		{"exits holds", 0, ""},
		{"exits release hold_x", 1, ""},
		{"secret rotate", 0, "secret rotate"},
		{"secret drop", 2, ""},
		{"secret drop --reason leaked", 0, "secret drop"},
		{"backup copy.db", 0, "backup"},
		{"backup copy.db", 1, ""},
		{"verify", 0, ""},
		{"audit list --by ann", 0, ""},
		{"audit list --from tomorrow", 1, ""},
		{"providers kinds", 0, ""},
		{"providers list", 0, ""},
		{"version", 0, ""},
	} {
		before := len(did(t))
		args := strings.Fields(strings.ReplaceAll(c.args, "AGENT", agent))
		if c.kept != "" {
			args = append(args, "--by", "eve")
		}
		status, out, errOut := command(append([]string{"--json"}, args...)...)
		if status != c.exit {
			t.Errorf("%s exits with %d: %s%s", c.args, status, out, errOut)
			continue
		}
		var printed any
		switch {
		case status == 0 && json.Unmarshal([]byte(out), &printed) != nil:
			t.Errorf("%s prints %q", c.args, out)
		case status == 1 && (json.Unmarshal([]byte(errOut), &printed) != nil || object(t, errOut)["error"] == nil):
			t.Errorf("%s fails with %q", c.args, errOut)
		case status == exitUsage && !strings.Contains(errOut, "see agentproxy --help"):
			t.Errorf("%s is refused with %q", c.args, errOut)
		}
		now := did(t)
		switch {
		case c.kept == "" && len(now) != before:
			t.Errorf("%s is kept: %s", c.args, now[0])
		case c.kept != "" && (len(now) != before+1 || !strings.HasPrefix(now[0], "eve|"+c.kept+"|")):
			t.Errorf("%s: %d actions more, the last %s", c.args, len(now)-before, now[0])
		}
	}
	if got := object(t, done(t, "agent", "show", agent))["balance"]; got != "12" {
		t.Errorf("the balance is %v: a correction was booked twice, or not at all", got)
	}
}
