package main

import (
	"strings"
	"testing"
)

// TestTheOperatorSeesMoneyAndSessions walks through the commands on an installation without sessions.
func TestTheOperatorSeesMoneyAndSessions(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	done(t, "migrate")
	agent := object(t, done(t, "agent", "add", "--name", "shop"))["agent_id"].(string)
	done(t, "agent", "add", "--name", "other")
	done(t, "adjust", agent, "--amount", "2.5", "--reason", "gift")
	list := rows(t, done(t, "agent", "list", "--search", "SHO", "--status", "active", "--referrer", "openAgent"))
	if len(list) != 1 || list[0]["agent_id"] != agent || list[0]["held"] != "0" || list[0]["charged"] != "0" || list[0]["live_sessions"] != 0.0 {
		t.Errorf("the list is %v", list)
	}
	if list := rows(t, done(t, "session", "list", "--status", "active")); len(list) != 0 {
		t.Errorf("sessions: %v", list)
	}
	for _, args := range [][]string{{"session", "show", "sess_1"}, {"session", "end", "sess_1", "--reason", "x"}, {"refund", "sess_1", "--percent", "5", "--reason", "x"}} {
		if status, _, errOut := command(args...); status != 1 || !strings.Contains(errOut, "session") {
			t.Errorf("%q: %d %q", args, status, errOut)
		}
	}
	for _, by := range []string{"provider", "product", "agent", "day"} {
		r := object(t, done(t, "report", "margin", "--by", by, "--from", "2026-01-01"))
		ledger := r["ledger"].(map[string]any)
		if total := r["total"].(map[string]any); total["margin"] != "-2.5" || total["given"] != "2.5" || ledger["corrections"] != "-2.5" || r["by"] != by {
			t.Errorf("by %s: %v", by, r)
		}
	}
	if lines := object(t, done(t, "report", "margin", "--by", "product"))["lines"].([]any); lines[0].(map[string]any)["product"] != "" {
		t.Errorf("the line of gifts is %v", lines)
	}
	if status, out, _ := command("report", "margin", "--by", "product"); status != 0 || !strings.Contains(out, "\n(no product) ") {
		t.Errorf("%d: %s", status, out)
	}
	if status, out, _ := command("report", "margin"); status != 0 || !strings.Contains(out, "\ntotal ") {
		t.Errorf("%d: %s", status, out)
	}
	if status, out, errOut := command("recharge", "addresses", "--csv"); status != 0 || out != "index,address,balance,agent_id,key_fingerprint,created_at\n" {
		t.Errorf("%d: %s%s", status, out, errOut)
	}
	for _, args := range [][]string{{"session", "end", "sess_1"}, {"refund", "sess_1", "--percent", "5"}, {"report", "margin", "--by", "colour"}} {
		if status, _, _ := command(args...); status != exitUsage {
			t.Errorf("%q: %d", args, status)
		}
	}
}
