package wire_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/catalogs"
	"agentproxy/app/policies"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/country"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// reloading is a service that sells the products of its file, and its log.
type reloading struct {
	*wire.Reloader
	catalog *catalogs.Catalog
	policy  *policies.Published
	facts   *exitfacts.Facts
	log     *bytes.Buffer
}

func startReloading(t *testing.T) reloading {
	t.Helper()
	s, err := loader.Load()
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	providers, err := loader.Providers(s.Catalog, upstream.Env{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	own := fake.NewProvider(embedded.Name, fake.Products()[:1]...)
	c, err := catalogs.New(catalogOf(t, own), own.Products(), country.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Replace(s.Catalog.All(own.Products())); err != nil {
		t.Fatal(err)
	}
	facts := exitfacts.New(nil)
	log, published := new(bytes.Buffer), policies.Publish(s.Catalog.Policy)
	live := func(_ context.Context, product string) (int, error) { return map[string]int{"two": 3}[product], nil }
	return reloading{wire.NewReloader(loader, s, providers, own.Products(), wire.Reloaded{Catalog: c, Policy: published, Facts: facts}, live, slog.New(slog.NewTextHandler(log, nil))),
		c, published, facts, log}
}

// sold returns the codes of the products, with their prices.
func (r reloading) sold() string {
	var out []string
	for _, p := range r.catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}).Items {
		out = append(out, p.No+"="+p.ListPrice().String())
	}
	return strings.Join(out, " ")
}

const before = `
trial_days: 3
providers:
  - {name: p, kind: proxyssx, options: {zone: a}}
products:
  - {code: one, name: One, type: dynamic, price: 2, sources: [{provider: p, cost: 1}]}
  - {code: two, name: Two, type: dynamic, price: 2, sources: [{provider: p, cost: 1}]}
`

func TestAReloadReplacesTheProductsAsAWhole(t *testing.T) {
	write(t, before)
	r := startReloading(t)
	own := "dyn_sync=0.5"
	if got := r.sold(); got != own+" one=2 two=2" {
		t.Fatalf("at the start %s is sold", got)
	}
	rewrite(t, strings.Replace(strings.Replace(before, "price: 2", "price: 1.5", 1), "code: two", "code: three", 1))
	if !r.Reload() || r.sold() != own+" one=1.5 three=2" {
		t.Errorf("after the reload %s is sold:\n%s", r.sold(), r.log)
	}
	if strings.Contains(r.log.String(), "restart") {
		t.Errorf("nothing needs a restart:\n%s", r.log)
	}
	rewrite(t, "embedded: false\n"+before)
	if !r.Reload() || r.sold() != "one=2 two=2" {
		t.Errorf("without the embedded catalogue %s is sold:\n%s", r.sold(), r.log)
	}
	rewrite(t, strings.Replace(before, ", cost: 1", "", 1))
	if !r.Reload() || !strings.Contains(r.log.String(), "has no cost") {
		t.Errorf("the warning of a new file is not logged:\n%s", r.log)
	}
}

func TestAReloadNamesWhatChanged(t *testing.T) {
	write(t, before)
	r := startReloading(t)
	rewrite(t, strings.Replace(strings.Replace(before, "price: 2", "price: 20", 1), "code: two", "code: three", 1))
	if !r.Reload() {
		t.Fatalf("not reloaded:\n%s", r.log)
	}
	for _, want := range []string{
		`added=[three] removed=[two] changed="[one price 2 -> 20]"`,
		`level=WARN msg="a price is ten times or a tenth of what it was: check it" product="one price 2 -> 20"`,
		`level=WARN msg="a product that is sold no more has live sessions: they go on, and cannot be renewed or get more traffic" product=two sessions=3`,
	} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, r.log)
		}
	}
	r.log.Reset()
	if !r.Reload() || strings.Contains(r.log.String(), "ten times") || strings.Contains(r.log.String(), "live sessions") || !strings.Contains(r.log.String(), "added=[] removed=[] changed=[]") {
		t.Errorf("the same file again: %s", r.log)
	}
}

func TestAFaultyReloadChangesNothing(t *testing.T) {
	write(t, before)
	r := startReloading(t)
	was := r.sold()
	for claim, c := range map[string]struct {
		text string
		want []string
	}{
		"two faults": {strings.ReplaceAll(before, "price: 2", "price: 0.5"), []string{"config.yaml:6: products[0].price: ", "config.yaml:7: products[1].price: "}},
		"a fault elsewhere in the file": {strings.Replace(strings.Replace(before, "code: one", "code: uno", 1), "trial_days: 3", "trial_days: 0", 1),
			[]string{"config.yaml:2: trial_days: "}},
		"bad YAML": {before + "]", []string{"config.yaml:8: "}},
		"a provider that is new": {strings.Replace(strings.Replace(before, "products:", "  - {name: late, kind: proxyssx}\nproducts:", 1), "provider: p", "provider: late", 1),
			[]string{`config.yaml:7: products[0].sources[0].provider: the provider \"late\" was added after the start; restart agentproxy to sell from it`}},
		"a provider that is gone": {strings.Replace(before, "name: p,", "name: r,", 1), []string{"config.yaml:6: ", "config.yaml:7: "}},
	} {
		t.Run(claim, func(t *testing.T) {
			rewrite(t, c.text)
			r.log.Reset()
			if r.Reload() {
				t.Error("it was reloaded")
			}
			if got := r.sold(); got != was {
				t.Errorf("%s is sold, want %s", got, was)
			}
			lines := strings.Split(strings.TrimSpace(r.log.String()), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("%d lines are logged, want %d:\n%s", len(lines), len(c.want), r.log)
			}
			for i, line := range lines {
				if !strings.Contains(line, c.want[i]) || !strings.Contains(line, "level=ERROR") {
					t.Errorf("logged %s, want %s", line, c.want[i])
				}
			}
		})
	}
}

func TestChangesThatNeedARestartAreLogged(t *testing.T) {
	for claim, c := range map[string]struct{ text, want string }{
		"an option of a provider": {strings.Replace(before, "zone: a", "zone: b", 1), `changed settings of providers take effect after a restart" providers=[p]`},
		"another provider":        {strings.Replace(before, "products:", "  - {name: late, kind: proxyssx}\nproducts:", 1), "providers=[late]"},
		"another setting":         {strings.Replace(before, "trial_days: 3", "trial_days: 5", 1), "changed settings other than products"},
	} {
		t.Run(claim, func(t *testing.T) {
			write(t, before)
			r := startReloading(t)
			rewrite(t, c.text)
			if !r.Reload() || strings.Count(r.log.String(), "restart") != 1 || !strings.Contains(r.log.String(), c.want) {
				t.Errorf("logged:\n%s", r.log)
			}
		})
	}
	t.Run("a provider that no product names any more", func(t *testing.T) {
		write(t, before)
		r := startReloading(t)
		rewrite(t, "trial_days: 3\n")
		if !r.Reload() || !strings.Contains(r.log.String(), "providers=[p]") || r.sold() != "dyn_sync=0.5" {
			t.Errorf("%s is sold, and logged:\n%s", r.sold(), r.log)
		}
	})
}

func TestWithoutAFileAReloadKeepsTheEmbeddedCatalogue(t *testing.T) {
	clean(t)
	r := startReloading(t)
	if !r.Reload() || r.sold() != "dyn_sync=0.5" {
		t.Errorf("%s is sold:\n%s", r.sold(), r.log)
	}
}

// catalogOf returns the providers that products may name.
func catalogOf(t *testing.T, own *fake.Provider) []ports.Provider {
	t.Helper()
	return []ports.Provider{own, fake.NewProvider("p")}
}

// loader creates providers that sell traffic.
var loader = wire.Loader{New: func(s upstream.Spec, _ *slog.Logger) (ports.Provider, error) {
	return fake.NewProvider(s.Name), nil
}}

// clean unsets every variable of the service for one test.
func clean(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AGENTPROXY_") {
			t.Setenv(name, "") // restores it afterwards
			os.Unsetenv(name)
		}
	}
}

// write makes a file the configuration of the test: config.yaml in a folder of
// its own, which the test works in.
func write(t *testing.T, text string) {
	t.Helper()
	clean(t)
	t.Chdir(t.TempDir())
	t.Setenv("AGENTPROXY_CONFIG", "config.yaml")
	rewrite(t, text)
}

func rewrite(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile("config.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReloadReplacesThePolicy(t *testing.T) {
	write(t, before)
	r := startReloading(t)
	denied := func(host string, port uint16) string {
		return string(r.policy.Now().Layers("one", nil, false).Name(host, port).Layer)
	}
	if denied("example.com", 443) != "" || denied("example.com", 22) != "operator" {
		t.Fatal("at the start the default does not hold")
	}
	onTrial := func(port uint16) string {
		return string(r.policy.Now().Layers("one", nil, false).OnTrial(r.policy.Now()).Name("example.com", port).Layer)
	}
	rewrite(t, before+"trial_ports: [443]\n")
	if r.Reload(); onTrial(443) != "" || onTrial(8443) != "trial" {
		t.Errorf("the ports of trials are as before:\n%s", r.log)
	}
	const list = "deny.txt"
	if err := os.WriteFile(list, []byte("# a list\n\nexample.com\r\n.example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rewrite(t, strings.Replace(before, "{code: one,", "{code: one, policy: {ports: [443]},", 1)+
		"policy:\n  deny: [{file: deny.txt}, bücher.example]\n  denied_ports: [8333]\n")
	if !r.Reload() {
		t.Fatal(r.log)
	}
	for at, want := range map[[2]string]string{{"example.com", "443"}: "operator", {"www.example.org", "443"}: "operator",
		{"xn--bcher-kva.example", "443"}: "operator", {"example.net", "443"}: "", {"example.net", "22"}: "product", {"example.net", "8333"}: "operator"} {
		n, _ := strconv.Atoi(at[1])
		if got := denied(at[0], uint16(n)); got != want {
			t.Errorf("%v is denied by %q, want %q", at, got, want)
		}
	}
	if err := os.WriteFile(list, []byte("example.com\nhttp://example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.log.Reset()
	if r.Reload() || denied("www.example.org", 443) != "operator" {
		t.Error("a faulty file replaced the policy")
	}
	if !strings.Contains(r.log.String(), "policy.deny[0].file: line 2: ") {
		t.Errorf("the fault is not named:\n%s", r.log)
	}
}

// Facts about exits are replaced with their files, and a fault leaves all as it was.
func TestAReloadReadsTheFactsOfExitsAgain(t *testing.T) {
	config := "exit_facts:\n  - {kind: ranges, file: ranges.txt}\n"
	ranges := func(text string) {
		if err := os.WriteFile("ranges.txt", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, config)
	ranges("127.0.0.0/8 country=LT\n")
	r := startReloading(t)
	for _, step := range []struct {
		lines, country string
		ok             bool
	}{{"127.0.0.0/8 country=LT\n", "LT", true}, {"127.0.0.0/8 country=lt\n", "LT", false}, {"127.0.0.0/8 country=TH\n", "TH", true}} {
		ranges(step.lines)
		if ok := r.Reload(); ok != step.ok {
			t.Errorf("%q: reloaded %v\n%s", step.lines, ok, r.log)
		}
		if got := r.facts.Facts(t.Context(), netip.MustParseAddr("127.0.0.5")).Country; got != step.country {
			t.Errorf("%q: the country is %q, want %s", step.lines, got, step.country)
		}
	}
}
