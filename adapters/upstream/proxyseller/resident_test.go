package proxyseller_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s, p := openTraffic(t)
	d, err := p.Order(t.Context(), gigabyte("ord_1"))
	if err != nil || d.State != procurement.Live || d.Access.User == "" || d.Access.Password == "" || d.Access.CapBytes != 1e9 {
		t.Fatalf("ordered %s, cap %d, %v", d.State, d.Access.CapBytes, err)
	}
	s.Use(d.Ref, 12345)
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 12345 || u.Gone || u.AsOf.Before(began.Add(-time.Minute)) {
		t.Errorf("used %+v, %v", u, err)
	}
	for range 2 {
		if err := p.Disable(t.Context(), d.Ref); err != nil || s.Active(d.Ref) {
			t.Errorf("disabled, it is active: %v, %v", s.Active(d.Ref), err)
		}
		if u, err := p.Usage(t.Context(), d.Ref); err != nil || u.Bytes != 12345 {
			t.Errorf("disabled, it used %+v, %v", u, err)
		}
	}
	if read := readLive(t, p, d.Ref); read.Access.CapBytes != 1e9 || read.Access.User != d.Access.User {
		t.Errorf("read, the cap is %d", read.Access.CapBytes)
	}
	if n := s.Calls("PUT "); n != 1 {
		t.Errorf("the credential was made %d times", n)
	}
	if err := p.Cancel(t.Context(), d.Ref); err != nil {
		t.Errorf("given up: %v", err)
	}
	if err := p.Cancel(t.Context(), d.Ref); err != nil {
		t.Errorf("given up again: %v", err)
	}
	if u, err := p.Usage(t.Context(), d.Ref); err != nil || !u.Gone {
		t.Errorf("given up, it used %+v, %v", u, err)
	}
	if err := p.Disable(t.Context(), d.Ref); procurement.ClassOf(err) != procurement.NotFound {
		t.Errorf("given up, disable: %v", err)
	}
}

func TestPackageWithoutCredential(t *testing.T) {
	t.Parallel()
	s, p := openTraffic(t)
	s.Next("/residentsubuser/list/tools", seller.Failed, seller.Failed, seller.Failed)
	d, err := p.Order(t.Context(), gigabyte("ord_1"))
	if err != nil || d.State != procurement.Pending || d.Ref == "" || s.Packages() != 1 {
		t.Fatalf("ordered %+v, %v", d, err)
	}
	if live := readLive(t, p, d.Ref); live.Access.Password == "" {
		t.Error("there is no credential")
	}
}

func TestTariff(t *testing.T) {
	t.Parallel()
	s, p := openTraffic(t)
	for _, c := range []struct {
		left  int64
		class procurement.Class
	}{{1e9 + 2, ""}, {1e9 + 1, procurement.InsufficientFunds}, {0, procurement.InsufficientFunds}, {-1, procurement.InsufficientFunds}} {
		s.SetTariff(c.left)
		if q, err := p.Quote(t.Context(), gigabyte("ord_1")); procurement.ClassOf(err) != c.class || q.Cost != 0 {
			t.Errorf("with %d bytes left: %+v, %v", c.left, q, err)
		}
		if c.class == "" {
			continue
		}
		if _, err := p.Order(t.Context(), gigabyte("ord_1")); procurement.ClassOf(err) != c.class || s.Packages() != 0 {
			t.Errorf("ordered with %d bytes left: %v", c.left, err)
		}
		if offers, err := p.Offers(t.Context()); err != nil || (offers[0].Stock == procurement.StockYes) != (c.left > 2) {
			t.Errorf("with %d bytes left it offers %+v, %v", c.left, offers, err)
		}
	}
	for claim, change := range map[string]func(in *procurement.Intent){
		"no traffic": func(in *procurement.Intent) { in.Bytes = 0 }, "another product": func(in *procurement.Intent) { in.SKU = "isp" },
		"a city with a separator":  func(in *procurement.Intent) { in.Location.City = "new_york" },
		"a country that is none":   func(in *procurement.Intent) { in.Location.Country = "XX" },
		"a city without a country": func(in *procurement.Intent) { in.Location = session.Location{City: "paris"} },
	} {
		in := gigabyte("ord_1")
		change(&in)
		if _, err := p.Order(t.Context(), in); procurement.ClassOf(err) != procurement.Invalid || s.Calls("/residentsubuser/create") != 3 {
			t.Errorf("%s: %v", claim, err)
		}
	}
}

func TestFindsAPackageByItsCap(t *testing.T) {
	t.Parallel()
	s, p := openTraffic(t)
	big := gigabyte("ord_1")
	big.Bytes = 7e9
	if _, err := p.Order(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	s.Next("/residentsubuser/create", seller.DropAnswer)
	if _, err := p.Order(t.Context(), gigabyte("ord_2")); procurement.ClassOf(err) != procurement.Ambiguous {
		t.Fatal(err)
	}
	found, err := p.Find(t.Context(), gigabyte("ord_2"))
	if err != nil || len(found) != 1 || found[0].Ref != s.Refs()[1] || found[0].State != procurement.Pending {
		t.Errorf("found %+v, %v", found, err)
	}
	if f, err := p.Balance(t.Context()); err != nil || f.Known {
		t.Errorf("money proves nothing about traffic: %+v, %v", f, err)
	}
}

func TestDoubtsStrangePackages(t *testing.T) {
	t.Parallel()
	const good = `{"package_key":"k","is_active":true,"rotation":0,"traffic_limit":"1000","traffic_usage":"0"}`
	for claim, bad := range map[string]string{
		"no key": `{"is_active":true,"traffic_limit":"1000","traffic_usage":"0"}`, "no limit": `{"package_key":"k","is_active":true,"traffic_usage":"0"}`,
		"a limit in words": strings.Replace(good, `"1000"`, `"1 KB"`, 1), "a negative usage": strings.Replace(good, `"0"`, `"-1"`, 1),
		"no state": strings.Replace(good, `"is_active":true,`, ``, 1),
	} {
		t.Run(claim, func(t *testing.T) {
			s, p := openTraffic(t)
			s.Answer("/residentsubuser/create", `{"status":"success","data":`+bad+`,"errors":[]}`)
			if d, err := p.Order(t.Context(), gigabyte("ord_1")); procurement.ClassOf(err) != procurement.Ambiguous {
				t.Errorf("ordered %+v, %v", d, err)
			}
			for range 3 {
				s.Answer("/residentsubuser/packages", `{"status":"success","data":[`+good+`,`+bad+`],"errors":[]}`)
			}
			if found, err := p.Find(t.Context(), gigabyte("ord_1")); procurement.ClassOf(err) != procurement.Temporary {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
	t.Run("what became of a deletion", func(t *testing.T) {
		for data, want := range map[string]procurement.Class{
			`"{\"status\":\"delete\"}"`: "", `"{\"status\":\"not-found\"}"`: "", `"delete"`: "", `{"status":"delete"}`: "",
			`"later"`: procurement.Temporary, `null`: procurement.Temporary, `"{\"status\":\"busy\"}"`: procurement.Temporary, `[]`: procurement.Temporary,
		} {
			s, p := openTraffic(t)
			s.Answer("/residentsubuser/delete", `{"status":"success","data":`+data+`,"errors":[]}`)
			if err := p.Cancel(t.Context(), "k"); procurement.ClassOf(err) != want {
				t.Errorf("%s: %v", data, err)
			}
		}
		s, p := openTraffic(t)
		s.Refuse("/residentsubuser/delete", 404, "not-found")
		if err := p.Cancel(t.Context(), "k"); err != nil {
			t.Errorf("not found: %v", err)
		}
	})
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := proxyseller.New(t)
	spec := specOf(s, "resident")
	spec.Options["host"], spec.Options["port"] = "us.res.proxy-seller.com", "10005"
	spec.Locations = map[string]string{"US/newyork": "New-York"}
	p := open(t, spec).(interface {
		Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error)
	})
	access := procurement.Access{User: "xxx", Password: "pass"}
	for _, c := range []struct {
		claim string
		to    procurement.Target
		want  string // empty: Invalid
	}{
		{"anywhere, another exit every time", procurement.Target{}, "xxx"},
		{"a place and an exit", procurement.Target{Location: session.Location{Country: "US", City: "newyork"}, Token: "abcd1234", TTL: 30 * time.Second},
			"xxx_c_US_city_New-York_s_abcd1234_ttl_30s"},
		{"a city by its code", procurement.Target{Location: session.Location{Country: "FR", City: "paris"}}, "xxx_c_FR_city_Paris"},
		{"SOCKS5", procurement.Target{Protocol: session.SOCKS5}, "xxx"},
		{"a city that is a parameter", procurement.Target{Location: session.Location{Country: "US", City: "x_s_1"}}, ""},
		{"a country that is a parameter", procurement.Target{Location: session.Location{Country: "US_s_1"}}, ""},
		{"a token that is a parameter", procurement.Target{Token: "a_c_DE_sx"}, ""},
		{"a part of a second", procurement.Target{Token: "abcd1234", TTL: 1500 * time.Millisecond}, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e, err := p.Endpoint(access, c.to)
			if c.want == "" {
				if procurement.ClassOf(err) != procurement.Invalid {
					t.Errorf("got %s, %v", e.User, err)
				}
				return
			}
			protocol := session.HTTP
			if c.to.Protocol != "" {
				protocol = c.to.Protocol
			}
			want := procurement.Endpoint{Protocol: protocol, Host: "us.res.proxy-seller.com", Port: 10005, User: c.want, Password: "pass", Trusted: true}
			if err != nil || e != want {
				t.Errorf("got %s@%s:%d, %v; want %s", e.User, e.Host, e.Port, err, c.want)
			}
		})
	}
	if _, err := p.Endpoint(procurement.Access{User: "xxx"}, procurement.Target{}); procurement.ClassOf(err) != procurement.Invalid {
		t.Errorf("without a password: %v", err)
	}
}
