package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// scripted points apx to a service that answers by method and path, with a status and what the envelope holds. It
// returns the bodies that were sent, by method and path.
func scripted(t *testing.T, answers map[string]string) map[string]string {
	t.Helper()
	sent := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1")
		body, _ := io.ReadAll(r.Body)
		sent[call] = string(body)
		status := 404
		answer := `"success":false,"data":null,"error":{"code":"NOT_FOUND","message":"nothing","retryable":false}`
		if text, known := answers[call]; known {
			_, _ = fmt.Sscan(text, &status)
			_, answer, _ = strings.Cut(text, " ")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, "{"+answer+`,"meta":{}}`)
	}))
	t.Cleanup(s.Close)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("AGENTPROXY_URL", s.URL)
	t.Setenv("AGENTPROXY_API_KEY", "ak_test")
	return sent
}

func answer(data string) string { return `200 "success":true,"error":null,"data":` + data }

func refuses(status int, code, message, details string) string {
	return fmt.Sprintf(`%d "success":false,"data":null,"error":{"code":%q,"message":%q,"retryable":false,"details":%s}`,
		status, code, message, details)
}

// printed runs a command, and returns its exit status and all that it prints.
func printed(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status := run(t.Context(), args, streams{nil, &out, &out})
	return status, out.String()
}

func TestTextsOfCommands(t *testing.T) {
	const session = `{"session_id":"sess_1","type":"dynamic","status":"active","proxy":{"host":"gw.test","port":8081,"username":"u","password":"secret"},` +
		`"ip_list":[{"ip":"192.0.2.7"}],"cost":{"charged":0.5,"held":1.5,"refunded":0},"labels":{"b":"2","a":"1"},"rotation":{"count":3}}`
	sent := scripted(t, map[string]string{
		"GET /public/products": answer(`{"items":[{"product_no":"sta_1","type":"static","durations":[{"duration_days":30},{"duration_days":90}]}],"pagination":{}}`),
		"POST /sessions": refuses(409, "PRICE_MISMATCH", "the cost is above max_cost",
			`{"cost":0.4,"max_cost":0.01,"nearest":["DE","US"],"docs":"http://x/"}`),
		"GET /sessions/sess_1": answer(session),
		"GET /billing/balance": answer(`{"balance":3.5,"held":1,"currency":"USD","trial":{},` +
			`"key":{"key_id":"key_1","spent":0.5,"held":1,"left":3.5,"sessions_live":1}}`),
		"POST /sessions/sess_1/rotate":                answer(session),
		"POST /sessions/sess_1/traffic":               answer(session),
		"POST /sessions/sess_1/ips/192.0.2.9/replace": refuses(409, "REPLACEMENT_REFUSED", "no ground", `{"grounds":["one: this","two: that"]}`),
		"POST /sessions/sess_1/ips/192.0.2.7/replace": answer(`{"replacement_id":"rep_1","session_id":"sess_1","status":"done","ground":"contradicted",` +
			`"ip":"192.0.2.7","new_ip":"192.0.2.8","cost":0,"refunded":0}`),
		"GET /sessions/sess_1/events": answer(`{"items":[{"type":"rotated","exit_ip":"192.0.2.2","at":"2026-05-15T12:00:00Z"},` +
			`{"type":"tunnel","exit_ip":"192.0.2.1","at":"2026-05-15T12:00:00Z"}]}`),
	})
	for args, want := range map[string]string{
		"buy dyn_1 --gb 1 --max-cost 0.01": "(cost 0.4, max_cost 0.01, nearest DE US)",
		"balance":                          "this key: 3.5 USD left, 0.5 USD spent, 1 USD held",
		"quote sta_1":                      "sta_1 is sold by IPs and days: give --quantity and --days (30, 90)",
		"show sess_1":                      "\nproxy\tgw.test:8081 u\nexit\t192.0.2.7\ncost\tcharged 0.5, held 1.5, refunded 0\nlabel\ta:1\nlabel\tb:2\n",
		"rotate sess_1":                    "sess_1\t192.0.2.1\t192.0.2.2\t3\n",
		"add sess_1 --gb 0.5 --max-cost 1 --id k":                    "sess_1\tactive\t",
		"add sess_1 --gb 0.5":                                        "misuse: give --max-cost",
		"replace sess_1 192.0.2.7 --reason wrong_place --max-cost 0": "done\t192.0.2.7\t192.0.2.8\t0\t0\n",
		"replace sess_1 192.0.2.9 --max-cost 1":                      "(one: this, two: that)",
		"replace sess_1 192.0.2.7 --reason ugly --max-cost 0":        "must be one of",
		"add sess_1 --gb lots --max-cost 1":                          "misuse: --gb and --max-cost take a number",
		"help":                                                       "Usage: apx <command>",
		"help buy":                                                   "Usage: apx buy",
	} {
		if status, text := printed(t, strings.Fields(args)...); !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("%s: %d, want %q:\n%s", args, status, want, text)
		}
	}
	if got := sent["POST /sessions/sess_1/traffic"]; got != `{"max_cost":1,"traffic_gb":0.5}` {
		t.Errorf("it adds %s", got)
	}
	if got := sent["POST /sessions/sess_1/ips/192.0.2.7/replace"]; got != `{"max_cost":0,"reason":"wrong_place"}` {
		t.Errorf("it replaces %s", got)
	}
}

// TestTheGatewaysAddressIsNamed calls what closes each connection, as the gateway does to a client that is no proxy's.
func TestTheGatewaysAddressIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			c.Close()
		}
	}()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("AGENTPROXY_URL", "http://"+l.Addr().String())
	if _, text := printed(t, "balance"); !strings.Contains(text, "not that of the gateway") {
		t.Error(text)
	}
}
