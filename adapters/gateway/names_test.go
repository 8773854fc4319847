package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentproxy/domain/egress"
	"agentproxy/domain/session"
)

// asked is a resolver that keeps what it was asked.
type asked struct {
	resolver
	mu    sync.Mutex
	names []string
}

func (a *asked) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	a.mu.Lock()
	a.names = append(a.names, host)
	a.mu.Unlock()
	return a.resolver.LookupNetIP(ctx, network, host)
}

// A name of the operator's network, and one without a dot, is answered like one that does not exist, by each way and
// for each port; no search domain is added to a name.
func TestNamesOfThePrivateNetworkAreNotConfirmed(t *testing.T) {
	t.Parallel()
	names := &asked{resolver: resolver{"db.internal": {"10.1.2.3"}, "both.internal": {"93.184.216.34", "10.1.2.3"},
		"own.internal": {"127.0.0.1"}, "intranet": {"93.184.216.34"}}}
	w := begin(t, newCore(t), func(s *setup) { s.AddressPolicy, s.Resolver = egress.Policy{}, names })
	direct, sold := w.add(1, 0), w.add(1, 0)
	w.via(sold, newSeller(t, "u", "p").endpoint(session.HTTP))
	_, gateway, _ := strings.Cut(w.addr, ":")
	answer := func(id, request, host, port string) string {
		c := w.dial()
		_, _ = fmt.Fprintf(c, request, host, port, basic(user(id, 0), password(id)))
		b, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), host, "HOST")
	}
	for _, id := range []string{direct, sold} {
		for _, request := range []string{"CONNECT %[1]s:%[2]s HTTP/1.1\r\nConnection: close\r\n%[3]s\r\n",
			"GET http://%[1]s:%[2]s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%[3]s\r\n"} {
			for _, port := range []string{"443", "5432", "25", gateway} {
				want := answer(id, request, "nothing.internal", port)
				if !strings.Contains(want, " 502 ") || !strings.Contains(want, "TARGET_UNREACHABLE") {
					t.Fatalf("of a name that does not exist: %s", want)
				}
				for _, host := range []string{"db.internal", "both.internal", "own.internal", "intranet", "DB.internal."} {
					if got := answer(id, request, host, port); got != want {
						t.Errorf("%s:%s: %s\nwant %s", host, port, got, want)
					}
				}
			}
		}
		for _, host := range []string{"nothing.internal", "db.internal", "intranet"} {
			if reply := w.socksReply(id, host, "5432"); reply != 4 {
				t.Errorf("SOCKS5 to %s: reply %d", host, reply)
			}
		}
	}
	names.mu.Lock()
	defer names.mu.Unlock()
	if i := slices.IndexFunc(names.names, func(n string) bool { return !strings.HasSuffix(n, ".") || n == "intranet." }); i >= 0 {
		t.Errorf("%q was looked up", names.names[i])
	}
}

// Development mode has names without a dot.
func TestNamesWithoutADotInDevelopmentMode(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { s.SingleLabels, s.Resolver = true, resolver{"localhost": {"127.0.0.1"}} })
	id := w.add(1, 0)
	if got := w.status(id, "localhost:"+port(echo(t))); got != 200 {
		t.Errorf("localhost: %d", got)
	}
}
