package configfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// documentedExample returns the file that docs/providers.md shows.
func documentedExample(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/providers.md has no example")
	}
	return example
}

func TestTheDocumentedExampleLoads(t *testing.T) {
	example := documentedExample(t)
	write(t, example)
	t.Setenv("BRD_PASSWORD", "password321")
	if err := os.WriteFile("royal.key", []byte("key654\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t)
	if s.Dev || s.Catalog.WithoutEmbedded || len(s.Warnings) != 0 || len(s.Catalog.Providers) != 2 {
		t.Errorf("got %+v", s.Catalog)
	}
	want := []catalog.Product{
		{No: "dyn_us_1", Name: "Dynamic US", Description: "Residential exits in the United States and Germany.", Type: session.Dynamic,
			Price: 3_500_000, Countries: []string{"DE", "US"}, Cities: []string{"miami", "newyork"}, MinQuantity: 1, MaxQuantity: 1,
			MinBytes: billing.GB / 10, MaxBytes: 500 * billing.GB, Available: true, OwnMoneyOnly: true,
			Sources: []procurement.Source{
				{Provider: "brd", Cost: 2_100_000, Countries: []string{"US"}, Cities: []string{"newyork", "miami"}},
				{Provider: "brd", Cost: 2_600_000, Countries: []string{"DE"}, Cities: []string{}},
			}},
		{No: "sta_us_1", Name: "Static US", Type: session.Static, Countries: []string{"DE", "US"}, MinQuantity: 1, MaxQuantity: 20,
			Durations: []catalog.Duration{{Days: 30, Price: 3 * domain.Dollar}, {Days: 90, Price: 8 * domain.Dollar}},
			Async:     true, Available: true, OwnMoneyOnly: true,
			Sources: []procurement.Source{{Provider: "royal", SKU: "9", Costs: []procurement.Term{{Days: 30, Cost: 2_400_000}, {Days: 90, Cost: 7_200_000}}}}},
	}
	for i := range want {
		got := s.Catalog.Products[i]
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("product %d is\n%+v, want\n%+v", i, got, want[i])
		}
	}
	brd, royal := s.Catalog.Providers[0], s.Catalog.Providers[1]
	if brd.Secrets["password"] != "password321" || brd.Options["zone"] != "resi" || brd.Name != "brd" || brd.Timeout != 0 || brd.PerSecond != 0 {
		t.Errorf("brd is %#v", brd)
	}
	if royal.Secrets["key"] != "key654" || royal.Locations["DE"] != "31" || royal.PerSecond != 2 || royal.Timeout != 30*time.Second || s.Catalog.Kind("royal") != "iproyal" {
		t.Errorf("royal is %#v", royal)
	}
	embedded := []catalog.Product{{No: "own"}}
	if all := s.Catalog.All(embedded); len(all) != 3 || all[0].No != "own" {
		t.Errorf("sold are %d products", len(all))
	}
	rewrite(t, strings.Replace(example, "embedded: true", "embedded: false", 1))
	if all := load(t).Catalog.All(embedded); len(all) != 2 || all[0].No != "dyn_us_1" {
		t.Errorf("sold without the embedded catalogue are %d products", len(all))
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	example := documentedExample(t)
	write(t, example)
	t.Setenv("BRD_PASSWORD", "password321")
	t.Setenv("AGENTPROXY_SECRET", "0123456789abcdefghijklmnopqrstuvwxyz")
	t.Setenv("AGENTPROXY_DATABASE_URL", "postgres://eve:hunter2@db/agentproxy")
	t.Setenv("AGENTPROXY_TRON_XPUB", xpub)
	t.Setenv("AGENTPROXY_TRON_API_KEY", "tron987")
	if err := os.WriteFile("royal.key", []byte("key654"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t)
	var printed bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&printed, format, s)
		fmt.Fprintf(&printed, format, &s)
		fmt.Fprintf(&printed, format, s.Catalog)
	}
	_ = json.NewEncoder(&printed).Encode(s)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("", "settings", s, "catalog", s.Catalog)
	slog.New(slog.NewTextHandler(&printed, nil)).Info("", "settings", s, "catalog", s.Catalog)
	for _, secret := range []string{"password321", "key654", "0123456789abcdef", "hunter2", "tron987"} {
		if strings.Contains(printed.String(), secret) {
			t.Errorf("%s is printed", secret)
		}
	}
}

const dynamicProduct = `
embedded: false
providers: [{name: p, kind: proxyssx, ` + sourced + `}, {name: q, kind: proxyseller, ` + sourced + `}]
products:
  - {code: dyn, name: Dynamic, type: dynamic, price: 2, countries: [NO], sources: [{provider: p}]}
`

func TestWhatAProductLeavesOut(t *testing.T) {
	write(t, dynamicProduct)
	s := load(t)
	p := s.Catalog.Products[0]
	if p.MinBytes != billing.GB/10 || p.MaxBytes != 1000*billing.GB || p.Async || p.Direct || p.Price != 2*domain.Dollar || p.Countries[0] != "NO" {
		t.Errorf("a dynamic product is %+v", p)
	}
	if len(s.Warnings) != 1 || s.Warnings[0].Error() != "config.yaml:5: products[0].sources[0]: "+
		"has no cost, so a price below the cost would not be noticed" {
		t.Errorf("the warnings are %v", s.Warnings)
	}
	rewrite(t, `
providers: [{name: q, kind: proxyseller, `+sourced+`}]
products:
  - code: sta
    name: Static
    type: static
    durations: [{days: 7, price: 0.10}]
    sources:
      - {provider: q, countries: &eu [FR, DE], costs: [{days: 7, cost: 0.1}]}
      - {provider: embedded, countries: *eu}
`)
	s = load(t)
	p = s.Catalog.Products[0]
	if !p.Async || p.MinQuantity != 1 || p.MaxQuantity != 100 || !reflect.DeepEqual(p.Countries, []string{"DE", "FR"}) ||
		p.Durations[0].Price != domain.Dollar/10 || len(s.Warnings) != 0 {
		t.Errorf("a static product of an async provider is %+v, %v", p, s.Warnings)
	}
	rewrite(t, strings.Replace(dynamicProduct, "countries: [NO]", "provisioning: async", 1))
	if p = load(t).Catalog.Products[0]; !p.Async || p.Countries != nil {
		t.Errorf("an async product without countries is %+v", p)
	}
}

// Trial credit pays for a product only if no delivery of it costs the operator money, unless the file
// sets it.
func TestWhatTrialCreditPaysFor(t *testing.T) {
	for sources, own := range map[string]bool{
		"[{provider: p, cost: 1}]":                          true,
		"[{provider: p}]":                                   true,
		"[{provider: embedded}]":                            false,
		"[{provider: embedded}, {provider: p, cost: 0.01}]": true,
	} {
		for key, want := range map[string]bool{"": own, "trial_credit: true, ": false, "trial_credit: false, ": true} {
			write(t, strings.Replace(dynamicProduct, "sources: [{provider: p}]", key+"sources: "+sources, 1))
			if p := load(t).Catalog.Products[0]; p.OwnMoneyOnly != want || p.MinTier != "" || p.FairUse != 0 {
				t.Errorf("%s%s: %+v", key, sources, p)
			}
		}
	}
}

// A fixed address of this host is scarce: outside development mode trial credit buys one only where the file
// asks for it.
func TestTrialCreditBuysNoFixedAddress(t *testing.T) {
	const product = `
products:
  - {code: a, name: A, type: static, durations: [{days: 30, price: 1}], countries: [DE], %ssources: [{provider: embedded}]}
`
	for dev, kept := range map[string]bool{"true": false, "false": true} {
		for key, want := range map[string]bool{"": kept, "trial_credit: true, ": false, "trial_credit: false, ": true} {
			write(t, fmt.Sprintf(product, key))
			t.Setenv("AGENTPROXY_DEV", dev)
			t.Setenv("AGENTPROXY_EXITS", "203.0.113.7@DE")
			if p := load(t).Catalog.Products[0]; p.OwnMoneyOnly != want {
				t.Errorf("dev %s, %q: own money alone is %t", dev, key, p.OwnMoneyOnly)
			}
		}
	}
}

// Whether orders may cost more than agents pay is a property of every source of a product.
func TestALossIsAllowedByTheProduct(t *testing.T) {
	for key, want := range map[string]bool{"": false, "allow_below_cost: true, ": true, "allow_below_cost: false, ": false} {
		write(t, strings.Replace(dynamicProduct, "sources: [{provider: p}]", key+"sources: [{provider: p}]", 1))
		for _, from := range load(t).Catalog.Products[0].Sources {
			if from.BelowCost != want {
				t.Errorf("%q: %+v", key, from)
			}
		}
	}
}

func TestWhoMayBuyAProduct(t *testing.T) {
	write(t, strings.Replace(dynamicProduct, "price: 2", "price: 2, min_tier: verified", 1)+
		"  - {code: sta, name: Static, type: static, durations: [{days: 30, price: 3}], countries: [NO], fair_use_gb: 500.5, sources: [{provider: embedded}]}\n")
	s := load(t)
	if p := s.Catalog.Products[0]; p.MinTier != account.VerifiedTier {
		t.Errorf("the product is %+v", p)
	}
	if p := s.Catalog.Products[1]; p.FairUse != 500_500_000_000 {
		t.Errorf("the static product is %+v", p)
	}
}

func TestAnEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "\ufeffproviders:\nproducts: []\n"} {
		write(t, text)
		if s := load(t); s.Catalog.WithoutEmbedded || len(s.Catalog.Providers) != 0 || s.TrialDays != 14 {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestSettingsOfTheFileAreReadAsTheyAreWritten(t *testing.T) {
	write(t, "trial_balance: 10.10\nregister_limit_per_minute: 0\ndev: false\ndevchain_block_ms: 20\nexits:\n  - 127.0.0.5\n  - 127.0.0.6\n")
	os.Unsetenv("AGENTPROXY_EXITS")
	s := load(t)
	if s.TrialBalance != 10_100_000 || s.RegisterLimit != 0 || s.Dev || s.Payments.DevchainBlock != 20*time.Millisecond || len(s.Exits) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestAFileOfASecretIsLookedForBesideTheConfiguration(t *testing.T) {
	write(t, "providers:\n  - {name: p, kind: proxyssx, secrets: {key: {file: p.key}}}\n")
	if err := os.WriteFile("p.key", []byte("key654\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTPROXY_CONFIG", filepath.Join(dir, "config.yaml"))
	t.Chdir(t.TempDir())
	if secret := load(t).Catalog.Providers[0].Secrets["key"]; secret != "key654" {
		t.Errorf("got %q", string(secret))
	}
}

// A file that every user of the host can read is accepted with a warning.
func TestAFileOfASecretThatOthersCanReadIsWarnedOf(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1, 0o604: 1} {
		write(t, "providers:\n  - {name: p, kind: proxyssx, secrets: {key: {file: p.key}}, "+
			"sourcing: {statement: s, url: 'https://example.com', reviewed: 2026-01-01}}\n")
		if err := os.WriteFile("p.key", []byte("key654"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod("p.key", mode); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, w := range load(t).Warnings {
			if w.Line == 2 && w.Path == "providers[0].secrets.key.file" && strings.Contains(w.Text, "chmod 600") {
				n++
			}
			if strings.Contains(w.Error(), "key654") {
				t.Error("the secret is printed")
			}
		}
		if n != want {
			t.Errorf("mode %04o: %d warnings, want %d", mode, n, want)
		}
	}
}

// A direct product is sold in the units of its providers' caps from the start.
func TestTheBoundsOfADirectProduct(t *testing.T) {
	write(t, strings.Replace(dynamicProduct, "price: 2,", "price: 2, direct: true,", 1))
	p := load(t).Catalog.Products[0]
	if p.StepBytes != billing.GB || p.MinBytes != billing.GB || p.MaxBytes != 1000*billing.GB {
		t.Errorf("it has %d to %d bytes in steps of %d", p.MinBytes, p.MaxBytes, p.StepBytes)
	}
	if p := catalogOf(t, dynamicProduct); p.StepBytes != 0 {
		t.Errorf("behind the gateway it has steps of %d", p.StepBytes)
	}
}

func catalogOf(t *testing.T, text string) catalog.Product {
	t.Helper()
	rewrite(t, text)
	return load(t).Catalog.Products[0]
}
