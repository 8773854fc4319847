package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentproxy/cmd/internal/wire"
	"agentproxy/test/fake/upstreamproxy"
)

// The check of a gateway logs in there, since its address and password are proved by nothing else.
func TestProvidersCheckLogsInAtGateways(t *testing.T) {
	gate := upstreamproxy.New(t, "decodo", "user9", "right-Password9")
	gate.Route("example.com:443", strings.TrimPrefix(gate.Echo, "http://"))
	gate.Route("closed.example:443", "127.0.0.1:1")
	check := func(t *testing.T, password string, port uint16, args ...string) (status int, row map[string]any) {
		t.Helper()
		configure(t, fmt.Sprintf("providers:\n  - {name: gate, kind: gateway, secrets: {password: {env: GATE}}, "+
			"options: {profile: decodo, username: user9, host: 127.0.0.1, port: %d}, %s}\n"+
			"products:\n  - {code: faulty}\n", port, sourced()))
		t.Setenv("GATE", password)
		var stdout, stderr bytes.Buffer
		status = runWith(wire.Loader{}, append([]string{"--json", "providers", "check"}, args...), &stdout, &stderr)
		if strings.Contains(stdout.String()+stderr.String(), password) {
			t.Errorf("the password is printed: %s%s", &stdout, &stderr)
		}
		if stdout.Len() == 0 {
			t.Fatalf("nothing is printed: %s", &stderr)
		}
		return status, rows(t, stdout.String())[0]
	}
	port := gate.Addr().Port()
	for name, c := range map[string]struct {
		password         string
		port             uint16
		args             []string
		status           int
		reachable, class string
		reason           string
	}{
		"the right password": {"right-Password9", port, nil, 0, "yes", "", ""},
		"a wrong one":        {"wrong-Password9", port, nil, 1, "no", "auth", "rejected the service's credential: 407"},
		"a wrong address":    {"right-Password9", 1, nil, 1, "no", "temporary", "the provider's proxy cannot be reached"},
		"a target that cannot be reached": {"right-Password9", port, []string{"--target", "closed.example:443"}, 1, "no", "temporary",
			"did not open the connection"},
		"no target": {"right-Password9", port, []string{"--target", "example.com"}, 1, "no", "invalid", "is not HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			status, row := check(t, c.password, c.port, c.args...)
			if status != c.status || row["reachable"] != c.reachable || row["error"] != c.class ||
				!strings.Contains(row["reason"].(string), c.reason) {
				t.Errorf("%d: %v", status, row)
			}
		})
	}
	if seen := gate.Sessions(); len(seen) == 0 || seen[0].Session == "" {
		t.Errorf("no session was asked for: %v", seen)
	}
	if up, down := gate.Bytes("user9", "right-Password9"); up+down > 0 {
		t.Errorf("%d bytes were sent and %d received", up, down)
	}
}

// The commands about providers run while a product has a fault.
func TestProviderCommandsReadNoProducts(t *testing.T) {
	configure(t, "providers:\n  - {name: quiet, kind: silent, "+sourced()+"}\nproducts:\n  - {code: faulty}\n")
	for _, args := range [][]string{{"providers", "list"}, {"providers", "check"}, {"providers", "catalogue", "quiet"}} {
		if status, out, errOut := command(args...); status != 0 {
			t.Errorf("%v ends with %d: %s%s", args, status, out, errOut)
		}
	}
	if status, out, _ := command("config", "check"); status == 0 || !strings.Contains(out, "products[0]") {
		t.Errorf("the check of the file ends with %d: %s", status, out)
	}
}
