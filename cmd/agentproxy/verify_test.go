package main

import (
	"os"
	"strings"
	"testing"
)

// TestVerifyAgainstHeads proves an empty ledger against heads as the log and a backup have them.
func TestVerifyAgainstHeads(t *testing.T) {
	configure(t, "")
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://service.db")
	done(t, "migrate")
	const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of no entries
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("heads", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("time=x level=INFO msg=\"another line\" entries=5\n" +
		"time=x level=INFO msg=\"the head of the ledger's proof\" seq=0 entries=0 head=" + none + "\n" +
		`{"at":"2026-05-15T12:00:00Z","seq":7,"entries":0,"head":"` + none + `"}` + "\n" +
		`{"time":"x","msg":"the head of the ledger's proof","head":"` + none + `", "seq": 8, "entries": 0}` + "\n")
	if got := object(t, done(t, "verify", "--against", "heads")); got["heads"] != 3.0 || got["faults"] != 0.0 {
		t.Errorf("three right heads: %v", got)
	}
	write(`{"at":"2026-05-15T12:00:00Z","seq":7,"entries":2,"head":"` + none + `"}`)
	if status, out, _ := command("verify", "--against", "heads"); status != 1 || !strings.Contains(out, "the past is that of its published head") {
		t.Errorf("a head of entries that are gone: %d, %s", status, out)
	}
	write("nothing")
	if status, _, errOut := command("verify", "--against", "heads"); status != 1 || !strings.Contains(errOut, "has no head") {
		t.Errorf("a file without heads: %d, %s", status, errOut)
	}
}
