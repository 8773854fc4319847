package iproyal_test

import (
	"slices"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/iproyal"
	"agentproxy/test/fake/seller"
)

func TestASubUserIsFoundByItsKeyAlone(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil)
	for _, key := range []string{"ord_111", "ord_11", "ord_1"} {
		if _, err := p.Order(t.Context(), traffic(key)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := p.Find(t.Context(), traffic("ord_1"))
	if err != nil || len(found) != 1 || found[0].Label != "ord_1" {
		t.Fatalf("found %+v, %v", found, err)
	}
	if found, err := p.Find(t.Context(), traffic("ord_2")); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	// The order itself has taken the name, so nothing is sold twice.
	again, err := p.Order(t.Context(), traffic("ord_1"))
	if err != nil || again.Ref != found[0].Ref || s.Sales() != 3 {
		t.Errorf("again: %+v, %v, sold %d", again, err, s.Sales())
	}
}

// Of a provider that also sells addresses only traffic keeps its order key. Two
// sub-users are distinguished by it.
func TestRivalsDoNotHideASubUser(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil)
	s.Next("POST /v1/residential-subusers", seller.DropAnswer, seller.Failed)
	for _, key := range []string{"ord_1", "ord_2"} {
		_, err := p.Order(t.Context(), traffic(key))
		refusedAs(t, err, procurement.Ambiguous)
		found, err := p.Find(t.Context(), traffic(key))
		if err != nil {
			t.Fatal(err)
		}
		o := procurement.Order{ID: key, Intent: traffic(key), Status: procurement.Unknown, SentAt: time.Now()}
		verdict, d := procurement.Decide(o, p.Capabilities().Labels(session.Dynamic), procurement.Evidence{Found: found, OthersUnknown: true}, time.Now())
		if verdict != procurement.Adopt || d.Access.User != key || d.Access.Password == "" {
			t.Errorf("%s: %s %+v", key, verdict, d.Access.User)
		}
		if i := slices.IndexFunc(s.SubUsers(), func(u iproyal.SubUser) bool { return u.User == key }); s.SubUsers()[i].Password != d.Access.Password {
			t.Error("the password is another one than was sent")
		}
	}
}

func TestPasswordsAreTheirOwn(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil)
	for _, key := range []string{"ord_1", "ord_2"} {
		if _, err := p.Order(t.Context(), traffic(key)); err != nil {
			t.Fatal(err)
		}
	}
	users := s.SubUsers()
	if users[0].Password == users[1].Password || len(users[0].Password) != 26 {
		t.Errorf("the passwords are %d and %d characters", len(users[0].Password), len(users[1].Password))
	}
}

func TestDisableTakesTheUnusedTraffic(t *testing.T) {
	t.Parallel()
	const mb = 1_000_000
	s := iproyal.New(t)
	p := newProvider(t, s, nil).(ports.Dynamic)
	in := traffic("ord_1")
	in.Bytes = 1_500_000_001 // rounded up to the unit
	d, err := p.Order(t.Context(), in)
	if err != nil || d.Access.CapBytes != 1501*mb {
		t.Fatalf("ordered %+v, %v", d.Access.CapBytes, err)
	}
	account := s.Traffic() + 1501*mb
	s.Use(d.Ref, 400*mb)
	for range 3 {
		if err := p.Disable(t.Context(), d.Ref); err != nil {
			t.Error(err)
		}
		read, err := p.Read(t.Context(), d.Ref)
		if err != nil || read.Access.CapBytes != 400*mb || s.Traffic()+400*mb != account {
			t.Errorf("disabled, the cap is %d, want %d: %v", read.Access.CapBytes, 400*mb, err)
		}
		if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 400*mb || u.Gone {
			t.Errorf("disabled, the usage is %+v, %v", u, err)
		}
	}
	if n := s.Calls("take-traffic"); n != 1 {
		t.Errorf("traffic was taken %d times", n)
	}
	refusedAs(t, p.Disable(t.Context(), "01NOBODY"), procurement.NotFound)
}

func TestDisableWhoseAnswerIsLostTakesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, fault := range []seller.Fault{seller.DropAnswer, seller.Failed, seller.Garbage, seller.Cut} {
		s := iproyal.New(t)
		p := newProvider(t, s, nil).(ports.Dynamic)
		account := s.Traffic()
		d, err := p.Order(t.Context(), traffic("ord_1"))
		if err != nil {
			t.Fatal(err)
		}
		s.Next("take-traffic", seller.DropRequest)
		refusedAs(t, p.Disable(t.Context(), d.Ref), procurement.Ambiguous)
		s.Next("take-traffic", fault)
		for range 2 {
			if err := p.Disable(t.Context(), d.Ref); err != nil {
				t.Errorf("%s: nothing is left, and the error is %v", fault, err)
			}
		}
		if u := s.SubUsers()[0]; u.Available != 0 || s.Traffic() != account || s.Calls("take-traffic") != 2 {
			t.Errorf("%s: %d bytes are left after %d calls", fault, u.Available, s.Calls("take-traffic"))
		}
	}
}

func TestADeletedSubUserIsGone(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil).(ports.Dynamic)
	account := s.Traffic()
	d, err := p.Order(t.Context(), traffic("ord_1"))
	if err != nil {
		t.Fatal(err)
	}
	s.Next("DELETE", seller.DropAnswer) // it is repeated, and finds nothing
	if err := p.Cancel(t.Context(), d.Ref); err != nil {
		t.Error(err)
	}
	if s.Traffic() != account || len(s.SubUsers()) != 0 {
		t.Error("the traffic did not come back")
	}
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || !u.Gone {
		t.Errorf("the usage is %+v, %v", u, err)
	}
	if f, err := newProvider(t, s, without("key")).Balance(t.Context()); err != nil || f.Known {
		t.Errorf("traffic has no balance: %+v, %v", f, err)
	}
	in := traffic("ord 2") // no user name
	_, err = p.Order(t.Context(), in)
	refusedAs(t, err, procurement.Invalid)
}

func TestExitsAreWordsBehindThePassword(t *testing.T) {
	t.Parallel()
	s := iproyal.New(t)
	p := newProvider(t, s, nil).(ports.Dynamic)
	access := procurement.Access{User: "subuser_231", Password: "pass"}
	for name, c := range map[string]struct {
		t    procurement.Target
		want string // empty: Invalid
	}{
		"nothing":           {procurement.Target{}, "pass"},
		"a country":         {procurement.Target{Location: session.Location{Country: "US"}}, "pass_country-us"},
		"a city":            {procurement.Target{Location: session.Location{Country: "DE", City: "berlin"}}, "pass_country-de_city-berlin"},
		"a session":         {procurement.Target{Token: "abcd1234"}, "pass_session-abcd1234_lifetime-7d"},
		"30 seconds":        {procurement.Target{Token: "abcd1234", TTL: 30 * time.Second}, "pass_session-abcd1234_lifetime-30s"},
		"10 minutes":        {procurement.Target{Token: "abcd1234", TTL: 10 * time.Minute}, "pass_session-abcd1234_lifetime-10m"},
		"90 seconds":        {procurement.Target{Token: "abcd1234", TTL: 90 * time.Second}, "pass_session-abcd1234_lifetime-90s"},
		"5 hours":           {procurement.Target{Token: "abcd1234", TTL: 5 * time.Hour}, "pass_session-abcd1234_lifetime-5h"},
		"half a second":     {procurement.Target{Token: "abcd1234", TTL: time.Second / 2}, ""},
		"8 days":            {procurement.Target{Token: "abcd1234", TTL: 8 * 24 * time.Hour}, ""},
		"a fraction":        {procurement.Target{Token: "abcd1234", TTL: 1500 * time.Millisecond}, ""},
		"a short token":     {procurement.Target{Token: "abcd123"}, ""},
		"a hostile token":   {procurement.Target{Token: "a_ttl-1d"}, ""},
		"a city alone":      {procurement.Target{Location: session.Location{City: "berlin"}}, ""},
		"a hostile city":    {procurement.Target{Location: session.Location{Country: "DE", City: "berlin_session-abcd1234"}}, ""},
		"a made-up country": {procurement.Target{Location: session.Location{Country: "XX"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := p.Endpoint(access, c.t)
			if c.want == "" {
				refusedAs(t, err, procurement.Invalid)
				return
			}
			if err != nil || e.Password != c.want || e.User != access.User || e.Host != "geo.iproyal.com" || e.Port != 12321 || !e.Trusted || e.Protocol != session.HTTP {
				t.Errorf("%+v %q, %v", e.Host, e.Password, err)
			}
		})
	}
	if n := s.Calls(""); n != 0 {
		t.Errorf("an endpoint asked the seller %d times", n)
	}
}
