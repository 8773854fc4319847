package refusal

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/procurement"
)

func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": time.Second, "0": time.Second, "1": time.Second, "30": 30 * time.Second, "61": time.Minute, "4294967295": time.Minute,
		"99999999999999999999": time.Second, "-5": time.Second, "soon": time.Second,
		now.Add(20 * time.Second).Format(http.TimeFormat): 20 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       time.Second,
		now.Add(time.Hour).Format(http.TimeFormat):        time.Minute,
	} {
		if got := retryAfter(field, now); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

func TestCodeLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		body      string
		truncated bool
		want      string
	}{
		{"E_CAP_EXCEEDED: cap reached (req: 1)\n", false, "E_CAP_EXCEEDED: cap reached (req: 1)"},
		{"TRAFFIC_EXHAUSTED", false, "TRAFFIC_EXHAUSTED"},
		{"TRAFFIC_EXHAUSTED", true, ""}, // the line may be incomplete
		{"\r\n  NO_RAY\r\n", true, "NO_RAY"},
		{"<html><head>\n<title>ERROR</title>\nACCESS_DENIED: no\n", false, "ACCESS_DENIED: no"},
		{"no code: here\nNo: here\nNO\nE-1: x\nHTTP://x\n", false, ""},
		{strings.Repeat(" ", 300) + "\nE_LATE: x\n", false, "E_LATE: x"}, // leading spaces do not count
		{strings.Repeat("-", 256) + "\nE_LATE: x\n", false, ""},
		{"", false, ""},
	} {
		if got := codeLine(printableLines([]byte(tc.body)), tc.truncated); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.body, got, tc.want)
		}
	}
}

func FuzzReason(f *testing.F) {
	f.Add("No", "brd; error=x", []byte("E_A: user-1 secret\n"), "user-1", "secret")
	f.Add("dXNlcjpwdw==", "user%3Apw", []byte("\xffUSER"), "user", "pw")
	f.Fuzz(func(t *testing.T, text, why string, body []byte, user, password string) {
		if len(user) > maxSecret || len(password) > maxSecret {
			return
		}
		a := http1.Answer{Status: 502, Text: text, Why: []string{why}}
		got := FromAnswer(&a, body, false, &procurement.Endpoint{User: user, Password: password}, time.Time{}).HowToFix
		_, got, _ = strings.Cut(got, "the provider answered: ")
		if len(got) > maxReason || !strings.HasPrefix(got, "502") && user == "" && password == "" {
			t.Fatalf("%q", got)
		}
		for _, c := range []byte(got) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q is not printable", got)
			}
		}
		// A short secret may be part of the replacement [hidden].
		shown := strings.ToLower(strings.ReplaceAll(got, "[hidden]", "\n"))
		for _, secret := range []string{user, password} {
			if s := strings.ToLower(printable(secret)); len(s) > 2 && !strings.Contains("; ", s) && strings.Contains(shown, s) {
				t.Fatalf("%q contains %q", got, secret)
			}
		}
	})
}
