package policy_test

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/policy"
)

// rules compiles lists of a session.
func rules(t testing.TB, allow, deny, ports string) *policy.Rules {
	t.Helper()
	o := policy.Own{Mode: policy.Enforce, Allow: strings.Fields(allow), Deny: strings.Fields(deny), Ports: strings.Fields(ports)}
	if err := o.Check(""); err != nil {
		t.Fatal(err)
	}
	return o.Compile()
}

// check returns the rule that refuses a target whose name resolves to addr; a target that
// is an address has no name.
func check(r *policy.Rules, name, addr string, port uint16) string {
	if rule := r.Name(policy.Canonical(name), port); rule != "" {
		return rule
	}
	return r.Address(policy.Canonical(name), netip.MustParseAddr(addr))
}

func TestRules(t *testing.T) {
	t.Parallel()
	const public, other = "198.51.100.7", "203.0.113.9"
	for _, tc := range []struct {
		allow, deny, ports string
		name, addr         string
		port               uint16
		rule               string // that refuses it
	}{
		{deny: "example.com", name: "example.com", addr: public, port: 443, rule: "example.com"},
		{deny: "example.com", name: "www.example.com", addr: public, port: 443},
		{deny: "example.com", name: "notexample.com", addr: public, port: 443},
		{deny: ".example.com", name: "example.com", addr: public, port: 443, rule: ".example.com"},
		{deny: ".example.com", name: "a.b.example.com", addr: public, port: 443, rule: ".example.com"},
		{deny: ".example.com", name: "notexample.com", addr: public, port: 443},
		{deny: ".com", name: "example.com", addr: public, port: 443, rule: ".com"},
		{deny: "EXAMPLE.com.", name: "Example.COM.", addr: public, port: 443, rule: "example.com"},
		{deny: ".Example.Com.", name: "WWW.example.com", addr: public, port: 443, rule: ".example.com"},
		{deny: "xn--bcher-kva.example", name: "XN--BCHER-KVA.example", addr: public, port: 443, rule: "xn--bcher-kva.example"},
		{deny: "198.51.100.0/24", name: "example.com", addr: public, port: 443, rule: "198.51.100.0/24"},
		{deny: "198.51.100.0/24", addr: public, port: 443, rule: "198.51.100.0/24"},
		{deny: "198.51.100.0/24", addr: other, port: 443},
		{deny: "198.51.100.7", addr: public, port: 443, rule: "198.51.100.7"},
		{deny: "198.51.100.7", addr: "::ffff:198.51.100.7", port: 443, rule: "198.51.100.7"},
		{deny: "198.51.100.7", addr: "64:ff9b::c633:6407", port: 443, rule: "198.51.100.7"},
		{deny: "::ffff:198.51.100.0/120", addr: public, port: 443, rule: "198.51.100.0/24"},
		{deny: "2001:db8::/32", addr: "2001:db8:7::1", port: 443, rule: "2001:db8::/32"},
		{deny: "0.0.0.0/0", addr: "2001:db8:7::1", port: 443},
		{deny: "22", name: "example.com", addr: public, port: 22, rule: "22"},
		{deny: "6660-6669", addr: public, port: 6669, rule: "6660-6669"},
		{deny: "6660-6669", addr: public, port: 6670},
		{deny: "6660-6664 6664-6669 6670", addr: public, port: 6670, rule: "6660-6670"},
		{ports: "443 8000-8010", name: "example.com", addr: public, port: 8005},
		{ports: "443 8000-8010", name: "example.com", addr: public, port: 80, rule: "ports"},
		{allow: "example.com", name: "example.com", addr: public, port: 80},
		{allow: "example.com", name: "example.org", addr: public, port: 80, rule: "allow"},
		{allow: "example.com", addr: public, port: 80, rule: "allow"},
		{allow: "198.51.100.0/24", name: "example.com", addr: public, port: 80},
		{allow: "198.51.100.0/24", name: "example.com", addr: other, port: 80, rule: "allow"},
		{allow: "198.51.100.0/24 example.org", name: "example.org", addr: other, port: 80},
		{allow: "443", name: "example.org", addr: other, port: 443},
		{allow: "443", name: "example.org", addr: other, port: 80, rule: "allow"},
		{allow: "443 example.com", name: "example.org", addr: other, port: 443, rule: "allow"},
		{allow: "443 example.com", name: "example.com", addr: other, port: 443},
		{allow: ".example.com", deny: "www.example.com", name: "www.example.com", addr: public, port: 80, rule: "www.example.com"},
		{allow: ".example.com", deny: "198.51.100.7", name: "example.com", addr: public, port: 80, rule: "198.51.100.7"},
		{name: "example.com", addr: public, port: 443},
	} {
		if rule := check(rules(t, tc.allow, tc.deny, tc.ports), tc.name, tc.addr, tc.port); rule != tc.rule {
			t.Errorf("%+v is refused by %q", tc, rule)
		}
	}
}

func TestTheFirstLayerThatRefusesIsNamed(t *testing.T) {
	t.Parallel()
	deny := rules(t, "", "example.com", "")
	for _, tc := range []struct {
		layers policy.Layers
		want   policy.Denial
	}{
		{policy.Layers{Operator: deny, Product: deny, Session: deny}, policy.Denial{Layer: policy.Operator, Rule: "example.com", Part: policy.Host}},
		{policy.Layers{Product: deny, Session: deny}, policy.Denial{Layer: policy.Product, Rule: "example.com", Part: policy.Host}},
		{policy.Layers{Session: deny}, policy.Denial{Layer: policy.Session, Rule: "example.com", Part: policy.Host}},
		{policy.Layers{Session: deny, Reports: true}, policy.Denial{Layer: policy.Session, Rule: "example.com", Reported: true, Part: policy.Host}},
		{policy.Layers{Operator: deny, Session: deny, Reports: true}, policy.Denial{Layer: policy.Operator, Rule: "example.com", Part: policy.Host}},
		{policy.Layers{}, policy.Denial{}},
	} {
		got := tc.layers.Name("example.com", 443)
		if got != tc.want || got.Refuses() != (tc.want.Layer != "" && !tc.want.Reported) {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}

func TestWrongRulesAreNamed(t *testing.T) {
	t.Parallel()
	o := policy.Own{Mode: "sometimes",
		Allow: []string{"example.com", "*.example.com", "bücher.example", "", ".", "a b"},
		Deny:  []string{"10.0.0.1/8", "10.0.0.0/33", "70000", "0", "20-10", "example.com:443", "http://example.com", "127.1", "[::1]", "fe80::1%eth0", ".192.0.2.1"},
		Ports: []string{"443", "https", "1-65536", "192.0.2.1"}}
	var e *domain.Error
	if !errors.As(o.Check("policy."), &e) || e.Code != "INVALID_REQUEST" {
		t.Fatal("it is accepted")
	}
	var fields []string
	for _, i := range e.Details["fields"].([]domain.FieldIssue) {
		fields = append(fields, i.Field)
	}
	want := []string{"policy.mode"}
	for i := 1; i < 6; i++ {
		want = append(want, fmt.Sprintf("policy.allow[%d]", i))
	}
	for i := range 11 {
		want = append(want, fmt.Sprintf("policy.deny[%d]", i))
	}
	want = append(want, "policy.ports[1]", "policy.ports[2]", "policy.ports[3]")
	if !slices.Equal(fields, want) {
		t.Errorf("the faults are %v, want %v", fields, want)
	}
}

func TestBoundsOfASession(t *testing.T) {
	t.Parallel()
	names := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("h%d.example.com", i))
		}
		return list
	}
	if err := (policy.Own{Allow: names(500), Deny: names(500)}).Check(""); err != nil {
		t.Error(err)
	}
	if (policy.Own{Allow: names(500), Deny: names(501)}).Check("") == nil {
		t.Error("1,001 rules are accepted")
	}
	var ports []string
	for i := range 1001 {
		ports = append(ports, fmt.Sprint(i+1))
	}
	if (policy.Own{Ports: ports}).Check("") == nil {
		t.Error("1,001 ports are accepted")
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for mode, inForce := range map[policy.Mode]bool{policy.Off: false, "": false, policy.Report: true, policy.Enforce: true} {
		o := policy.Own{Mode: mode, Deny: []string{"example.com"}}
		if got := o.Compile().Name("example.com", 80) != ""; got != inForce {
			t.Errorf("mode %q: the rules are checked: %v", mode, got)
		}
	}
	if (policy.Own{Mode: policy.Enforce}).Compile() != nil {
		t.Error("no rules are some")
	}
}

// All of a long list is found, and nothing else.
func TestAMillionHosts(t *testing.T) {
	t.Parallel()
	var b policy.Builder
	const n = 200_000
	for i := range n {
		if err := b.Deny(fmt.Sprintf("host-%d.example.com", i)); err != nil {
			t.Fatal(err)
		}
	}
	r := b.Rules()
	for i := range 2 * n {
		if got := r.Name(fmt.Sprintf("host-%d.example.com", i), 80) != ""; got != (i < n) {
			t.Fatalf("host %d is denied: %v", i, got)
		}
	}
}

func TestJudgingDoesNotAllocate(t *testing.T) {
	l := policy.Layers{Operator: rules(t, "", ".example.org 22 6660-6669", ""), Session: rules(t, ".example.com 198.51.100.0/24", "", "443")}
	addr := netip.MustParseAddr("198.51.100.7")
	if n := testing.AllocsPerRun(100, func() {
		if l.Name("www.shop.example.com", 443) != (policy.Denial{}) || l.Address("www.shop.example.com", addr) != (policy.Denial{}) {
			t.Error("it is refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRules compares compiled rules with a search through the texts.
func FuzzRules(f *testing.F) {
	f.Add("example.com .example.org 192.0.2.0/24 22 6660-6669", "www.example.org", []byte{192, 0, 2, 1}, uint16(443))
	f.Add(". .. a..b 1-0 ::/0 .xn--a", "A.B", []byte{1}, uint16(0))
	f.Fuzz(func(t *testing.T, list, name string, bytes []byte, port uint16) {
		var b policy.Builder
		var accepted []string
		for _, text := range strings.Fields(list) {
			if b.Deny(text) == nil {
				accepted = append(accepted, text)
			}
		}
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			addr = netip.IPv4Unspecified()
		}
		name = policy.Canonical(name)
		r := b.Rules()
		if got, want := r.Name(name, port) != "", slices.ContainsFunc(accepted, func(text string) bool { return denies(text, name, port) }); got != want {
			t.Errorf("%q denies %q, port %d: %v, want %v", accepted, name, port, got, want)
		}
		if rule := r.Address(name, addr); rule != "" && len(accepted) == 0 {
			t.Errorf("no rules refuse %s by %q", addr, rule)
		}
	})
}

// denies reports whether a rule about a name or a port matches.
func denies(text, name string, port uint16) bool {
	if first, last, isRange := strings.Cut(text, "-"); strings.Trim(first+last, "0123456789") == "" && first != "" {
		if !isRange {
			last = first
		}
		var a, b uint16
		_, _ = fmt.Sscan(first, &a)
		_, _ = fmt.Sscan(last, &b)
		return a <= port && port <= b
	}
	host := policy.Canonical(text)
	if below, ok := strings.CutPrefix(host, "."); ok {
		return name == below || strings.HasSuffix(name, host)
	}
	return name != "" && name == host
}

func BenchmarkName(b *testing.B) {
	var built policy.Builder
	for i := range 1_000_000 {
		_ = built.Deny(fmt.Sprintf(".host-%d.example.com", i))
	}
	l := policy.Layers{Operator: built.Rules()}
	b.ReportAllocs()
	for b.Loop() {
		if l.Name("www.shop.example.org", 443).Layer != "" {
			b.Fatal("refused")
		}
	}
}

func TestRulesAreListedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var b policy.Builder
	for _, rule := range []string{"25", "6660-6669", "10.0.0.0/8", "2001:db8::/32", "192.0.2.7", "b.example", "a.example", ".ads.example"} {
		if err := b.Deny(rule); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{b.Allow(".shop.example"), b.Port("443"), b.Port("80")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := b.Rules()
	want := policy.Listing{Allow: []string{".shop.example"}, Ports: []string{"80", "443"},
		Deny: []string{"25", "6660-6669", "10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "b.example", "a.example", ".ads.example"}}
	if got := r.List(100); !reflect.DeepEqual(got, want) {
		t.Errorf("the rules are %+v, want %+v", got, want)
	}
	for most, more := range map[int]int{0: 11, 1: 8, 2: 6, 7: 1} {
		if got := r.List(most); got.More != more || len(got.Deny) != most {
			t.Errorf("of %d each: %+v, want %d more", most, got, more)
		}
	}
	if got := (*policy.Rules)(nil).List(10); !reflect.DeepEqual(got, policy.Listing{}) {
		t.Errorf("without rules: %+v", got)
	}
}

func TestAURLIsNoRule(t *testing.T) {
	t.Parallel()
	for text, parts := range map[string][]string{
		"https://shop.example/cart": {"is a URL", `"shop.example"`},
		"shop.example/cart":         {"without a path", `"shop.example"`},
		"10.0.0.0/33":               {`"10.0.0.0/33" is not a network in CIDR form, such as 192.0.2.0/24`},
	} {
		err := policy.Own{Deny: []string{text}}.Check("")
		var e *domain.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		issues := e.Details["fields"].([]domain.FieldIssue)
		for _, part := range parts {
			if len(issues) != 1 || !strings.Contains(issues[0].Issue, part) {
				t.Errorf("%s: the issues %+v do not have %q", text, issues, part)
			}
		}
	}
}

// The ports of accounts on trial are looked at after the operator's rules and before those of products and sessions.
func TestLayersOnTrial(t *testing.T) {
	t.Parallel()
	ports := func(texts ...string) *policy.Rules {
		var b policy.Builder
		for _, text := range texts {
			if err := b.Port(text); err != nil {
				t.Fatal(err)
			}
		}
		return b.Rules()
	}
	var denied policy.Builder
	if err := denied.Deny("22"); err != nil {
		t.Fatal(err)
	}
	s := &policy.Shared{Operator: denied.Rules(), Trial: ports("80", "8000-8010", "81"), Products: map[string]*policy.Rules{"web": ports("443")}}
	own := policy.Own{Mode: policy.Report, Deny: []string{"shop.example"}}.Compile()
	l := s.Layers("web", own, true)
	for port, want := range map[uint16]policy.Denial{
		22:   {Layer: policy.Operator, Rule: "22", Part: policy.Port},
		25:   {Layer: policy.Trial, Rule: "80-81, 8000-8010", Part: policy.Port},
		443:  {Layer: policy.Trial, Rule: "80-81, 8000-8010", Part: policy.Port},
		8005: {Layer: policy.Product, Rule: "ports", Part: policy.Port},
	} {
		if got := l.OnTrial(s).Name("shop.example", port); got != want {
			t.Errorf("port %d: %+v, want %+v", port, got, want)
		}
	}
	if d := l.Name("shop.example", 443); d.Refuses() || d.Layer != policy.Session {
		t.Errorf("of another account: %+v", d)
	}
	if d := s.Layers("other", own, true).OnTrial(s).Name("shop.example", 25); d.Layer != policy.Trial {
		t.Errorf("a report hides the refusal: %+v", d)
	}
	if d := l.OnTrial(nil).Name("shop.example", 443); d.Layer == policy.Trial {
		t.Errorf("without rules: %+v", d)
	}
}
