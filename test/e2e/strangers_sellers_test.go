//go:build campaign

package e2e_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/apiclient"
)

// Forty callers of one account that buy and give up sessions of a seller all the time delay another's
// purchase by little. This counts calls of the seller instead of time, and few are made a second, since
// other processes use this machine: in the order of arrival each call of the purchase waits behind forty.
// A purchase's own work takes time too, in which others pass, so this is for a campaign: adapters/upstream/rest
// tests the order of turns on a clock of its own.
func TestOneAccountDoesNotStarveASellerForOthers(t *testing.T) {
	t.Parallel()
	seller, _, provider := ssx(t)
	provider = strings.Replace(provider, "per_second: 1000", "per_second: 4", 1)
	m := open(t, "embedded: false\nproviders:\n"+provider+"products:\n"+traffic("sx", "dyn_sx", ", provisioning: sync"), ssxKey,
		"AGENTPROXY_TRUSTED_PROXIES=127.0.0.0/8")
	from := func(name, addr string) string {
		var a struct {
			APIKey string `json:"api_key"`
		}
		m.service.must(201, "POST", "/account/register", "", `{"name":"`+name+`"}`, "X-Forwarded-For", addr).into(t, &a)
		return a.APIKey
	}
	attacker, victim := from("attacker", "198.51.100.7"), from("victim", "192.0.2.9")
	// create returns how many calls the seller got while a session was made.
	create := func() int {
		before := seller.Calls("")
		m.must(201, "POST", "/sessions", victim, dynamic("dyn_sx", "0.001"))
		return seller.Calls("") - before
	}
	alone := create()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	began := seller.Calls("")
	for range 40 {
		callers.Go(func() {
			for ctx.Err() == nil {
				r, err := m.call(ctx, "POST", "/sessions", attacker, dynamic("dyn_sx", "0.001"))
				if err != nil || r.status != 201 { // refused at once, it would take the processors instead of the seller
					select {
					case <-ctx.Done():
					case <-time.After(500 * time.Millisecond):
					}
					continue
				}
				var d apiclient.Session
				r.into(t, &d)
				_, _ = m.call(ctx, "POST", "/sessions/"+d.SessionID+"/terminate", attacker, "")
			}
		})
	}
	within(t, soon, "calls of the attacker", func() bool { return seller.Calls("")-began > 10 })
	for range 3 {
		calls := create()
		t.Logf("%d calls, alone %d", calls, alone)
		// Twice what it makes alone, and what passes in ten seconds in which the program is not scheduled.
		if most := 2*alone + 40; calls > most {
			t.Errorf("%d calls were made while a session was created, alone %d", calls, alone)
		}
	}
	stop()
	callers.Wait()
}
