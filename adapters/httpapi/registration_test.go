package httpapi_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/account"
)

// through sends a request from an address.
func through(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(addr), 4711).String() }
}

func TestRegistrationsThroughOurExitsAreOneClient(t *testing.T) {
	t.Parallel()
	exits := netip.MustParsePrefix("203.0.113.0/24")
	w := newWorld(t, options{registrations: 5, trusted: []netip.Prefix{exits},
		config: func(c *accounts.Config) { c.Exits.Sold = exits.Contains }})
	status := map[int]int{}
	for i := range 20 {
		r := w.do("POST", "/v1/account/register", `{"name":"agent"}`, through(fmt.Sprintf("203.0.113.%d", i)),
			header("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)))
		status[r.status]++
	}
	if status[201] != 5 || status[429] != 15 {
		t.Errorf("through 20 exits: %v, want 5 accounts", status)
	}
	w.do("POST", "/v1/account/register", `{"name":"agent"}`, through("192.0.2.7")).want(201)
}

func TestWrongReferralCodesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{limits: throttle.Config{WrongCodesPerMinute: 3}})
	guess := func(addr, code string) *answer {
		return w.do("POST", "/v1/account/register", fmt.Sprintf(`{"name":"agent","referral_code":%q}`, code), through(addr))
	}
	for i := range 3 {
		guess("192.0.2.1", fmt.Sprint("CODE-", i)).refused(400, "INVALID_REFERRAL_CODE")
	}
	// A right code is not found either: the answer is the same for both.
	guess("192.0.2.1", "openAgent").refused(429, "RATE_LIMIT_EXCEEDED")
	w.do("POST", "/v1/account/register", `{"name":"agent"}`, through("192.0.2.1")).want(201)
	guess("192.0.2.2", "openAgent").want(201)
	w.clock.Advance(20 * time.Second)
	guess("192.0.2.1", "openAgent").want(201)
}

func TestClosedRegistration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{config: func(c *accounts.Config) { c.Registration = account.ClosedRegistration }})
	for _, path := range []string{"/v1/account/register", "/v1/auth/register"} {
		w.do("POST", path, `{"name":"agent"}`).refused(403, "REGISTRATION_CLOSED")
	}
}

func TestTheAccessLogHasTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	w.log.take()
	w.do("GET", "/v1/health", "", header("X-Forwarded-For", "198.51.100.7"))
	if line := w.log.take(); !strings.Contains(line, `"client":"198.51.100.7"`) {
		t.Errorf("logged %s", line)
	}
}
