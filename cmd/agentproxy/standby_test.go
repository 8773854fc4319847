package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"agentproxy/test/pg"
)

// Reports and the proof are for a standby, which takes them off the primary. It takes no writes, and the commands that
// write name that.
func TestCommandsThatReadWorkOnAStandby(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_SECRET", strings.Repeat("0123456789abcdef", 3))
	primary := pg.Start(t)
	dsn := primary.Database(t)
	standby := primary.Standby(t)
	t.Setenv("AGENTPROXY_DATABASE_URL", dsn)
	agent := object(t, done(t, "agent", "add", "--name", "shop", "--by", "ann"))["agent_id"].(string)
	done(t, "adjust", agent, "--amount", "2", "--reason", "gift", "--by", "ann")

	t.Setenv("AGENTPROXY_DATABASE_URL", strings.Replace(dsn, url.QueryEscape(primary.Folder()), url.QueryEscape(standby.Folder()), 1))
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, out, errOut := command("--json", "audit", "list")
		if status == 0 && strings.Contains(out, `"adjust"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the standby has not what the primary has: %d %s%s", status, out, errOut)
		}
	}
	for _, reads := range []string{"verify", "report margin", "agent list", "agent list --sort balance", "agent show " + agent, "session list", "audit list",
		"jobs list", "recharge list", "recharge addresses", "orders list", "exits lookups", "exits holds", "exits quality", "referrer list"} {
		if status, out, errOut := command(append([]string{"--json"}, strings.Fields(reads)...)...); status != 0 {
			t.Errorf("%s exits with %d: %s%s", reads, status, out, errOut)
		}
	}
	status, _, errOut := command("referrer", "add", "--name", "Friend", "--code", "FRIEND", "--by", "ann")
	if status != 1 || !strings.Contains(errOut, "it is a standby") {
		t.Errorf("a command that writes exits with %d: %s", status, errOut)
	}
}
