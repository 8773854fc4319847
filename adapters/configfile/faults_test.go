package configfile_test

import (
	"os"
	"strings"
	"testing"

	"agentproxy/adapters/configfile"
)

// head is a file without a fault that the cases go on from; it ends at line 9.
const head = `embedded: true
providers:
  - {name: p, kind: proxyssx}
  - {name: st, kind: proxyseller}
  - name: gw
    kind: gateway
    secrets: {password: {env: GW_PASSWORD}}
    options: {profile: brightdata}
products:
`

// good is a product of four lines without a fault.
const good = `  - {code: ok, name: OK, type: dynamic, price: 2,
     countries: [US],
     sources: [{provider: p, cost: 1}]
    }
`

func TestEveryFaultOfTheCatalogIsListedWithItsLine(t *testing.T) {
	for _, c := range []struct {
		claim, text string
		want        []string
	}{
		{"nothing is wrong", head + good, nil},
		{"an unknown kind", "providers:\n  - name: x\n    kind: brightdata\n",
			[]string{`config.yaml:3: providers[0].kind: must be one of [gateway proxyseller proxyssx], not "brightdata"`}},
		{"no kind and no name", "providers:\n  - per_second: 3\n",
			[]string{"config.yaml:2: providers[0].name: is missing: …", "config.yaml:2: providers[0].kind: is missing: …"}},
		{"a missing secret, an unknown one and an unknown option",
			"providers:\n  - name: x\n    kind: gateway\n    secrets:\n      pasword: {env: GW_PASSWORD}\n    options:\n      profile: brightdata\n      zome: resi\n",
			[]string{"config.yaml:4: providers[0].secrets.password: is missing: of the account",
				"config.yaml:5: providers[0].secrets.pasword: does not exist", "config.yaml:8: providers[0].options.zome: does not exist"}},
		{"a missing secret beside another one of a like name", "providers:\n  - name: x\n    kind: gateway\n    secrets:\n      password2: {env: NOT_SET}\n    options: {profile: brightdata}\n",
			[]string{"config.yaml:4: providers[0].secrets.password: is missing: of the account",
				"config.yaml:5: providers[0].secrets.password2.env: the environment variable of this line is not set, or empty"}},
		{"an option that the provider refuses", "providers:\n  - name: x\n    kind: gateway\n    secrets: {password: {env: GW_PASSWORD}}\n    options:\n      profile: oxy\n",
			[]string{`config.yaml:6: providers[0].options.profile: must be brightdata, not "oxy"`}},
		{"a literal secret", "providers:\n  - name: x\n    kind: gateway\n    secrets:\n      password: hunter2\n    options: {profile: brightdata}\n",
			[]string{"config.yaml:5: providers[0].secrets.password: must not be a secret itself; write {env: VARIABLE} or {file: PATH}"}},
		{"secrets that are a literal", "providers:\n  - name: x\n    kind: proxyssx\n    secrets: hunter2\n",
			[]string{"config.yaml:4: providers[0].secrets: must be a mapping, such as name: value"}},
		{"a secret of nowhere, and of two places", "providers:\n  - name: x\n    kind: proxyssx\n    secrets:\n      key: {}\n      password: {env: GW_PASSWORD, file: x}\n",
			[]string{"config.yaml:5: providers[0].secrets.key: must be either …", "config.yaml:6: providers[0].secrets.password: must be either …"}},
		{"a variable that is not set, is empty, or is no name", "providers:\n  - name: x\n    kind: proxyssx\n    secrets:\n      key: {env: NOT_SET}\n      password:\n        env: EMPTY\n      third: {env: hunter2!}\n",
			[]string{"config.yaml:5: providers[0].secrets.key.env: the environment variable of this line is not set, or empty",
				"config.yaml:7: providers[0].secrets.password.env: the environment variable of this line is not set, or empty",
				"config.yaml:8: providers[0].secrets.third.env: must be the name of an environment variable"}},
		{"a file that is not there, is empty, or has two lines", "providers:\n  - name: x\n    kind: proxyssx\n    secrets:\n      key: {file: hunter2}\n      password: {file: empty}\n  - {name: y, kind: proxyssx, secrets: {key: {file: two}}}\n",
			[]string{"config.yaml:5: providers[0].secrets.key.file: cannot read the file of this line: no such file or directory",
				"config.yaml:6: providers[0].secrets.password.file: the file of this line is empty, or longer than 16 KiB",
				"config.yaml:7: providers[1].secrets.key.file: the secret must be one line without control characters"}},
		{"a provider whose error repeats its secrets", "providers:\n  - name: x\n    kind: leaky\n    secrets: {password: {env: GW_PASSWORD}, key: {env: GW_PASSWORD}}\n",
			[]string{"config.yaml:2: providers[0].options.zone: [hidden] is not [hidden]"}},
		{"names that are used, reserved, or none", "providers:\n  - {name: x, kind: proxyssx}\n  - {name: x, kind: proxyssx}\n  - {name: embedded, kind: proxyssx}\n  - {name: My Provider, kind: proxyssx}\n",
			[]string{"config.yaml:3: providers[1].name: duplicate name: another provider has it too", "config.yaml:4: providers[2].name: is reserved for the embedded provider; choose another",
				"config.yaml:5: providers[3].name: must be 1 to 32 of a-z, 0-9, _ and -"}},
		{"an unknown resolution", "providers:\n  - name: x\n    kind: proxyssx\n    resolve: there\n",
			[]string{"config.yaml:4: providers[0].resolve: must be here or upstream"}},
		{"settings out of bounds", "providers:\n  - name: x\n    kind: proxyssx\n    base_url: https://user:pw@host\n    per_second: 0\n    timeout_seconds: 151\n    locations: {ZZ: 1, US/new york: 2, FR: }\n",
			[]string{"config.yaml:4: providers[0].base_url: must be an http or https URL without user info, query and fragment",
				"config.yaml:5: providers[0].per_second: must be a number above 0 and at most 1000", "config.yaml:6: providers[0].timeout_seconds: must be a whole number from 1 to 150",
				"config.yaml:7: providers[0].locations.ZZ: must be a country …", "config.yaml:7: providers[0].locations.US/new york: must be a country …",
				"config.yaml:7: providers[0].locations.FR: is missing: the provider's id of the place"}},

		{"a product without a price", head + "  - code: a\n    name: A\n    type: dynamic\n    sources: [{provider: p, cost: 1}]\n",
			[]string{"config.yaml:10: products[0].price: is missing: US dollars per GB, with at most 6 decimals"}},
		{"a static product without durations", head + "  - {code: a, name: A, type: static, countries: [US], sources: [{provider: st}]}\n",
			[]string{"config.yaml:10: products[0].durations: is missing: list of durations in days, each with the price of an IP address"}},
		{"prices that are none", head + "  - {code: a, name: A, type: dynamic, price: free, sources: [{provider: p, cost: -1}]}\n  - {code: b, name: B, type: dynamic, price: 1.0000001, sources: [{provider: p, cost: [1]}]}\n  - code: c\n    name: C\n    type: static\n    countries: [US]\n    durations:\n      - {days: 30, price: 0}\n      - {days: 0.5, price: 1}\n    sources: [{provider: st}]\n",
			[]string{"config.yaml:10: products[0].price: must be US dollars above 0 …", "config.yaml:10: products[0].sources[0].cost: must be US dollars above 0 …",
				"config.yaml:11: products[1].price: must be US dollars above 0 …", "config.yaml:11: products[1].sources[0].cost: must be a text or a number",
				"config.yaml:17: products[2].durations[0].price: must be US dollars above 0 …", "config.yaml:18: products[2].durations[1].days: must be a whole number …"}},
		{"two products of one code", head + good + strings.Replace(good, "OK", "other", 1),
			[]string{"config.yaml:14: products[1].code: duplicate code: the product on line 10 has it too"}},
		{"a code of the embedded catalogue", head + strings.Replace(good, "ok", "dyn_fast_1", 1),
			[]string{"config.yaml:10: products[0].code: is a code of the embedded catalog; choose another, or set embedded: false"}},
		{"a code of the embedded catalogue, which is not sold", strings.Replace(head, "true", "false", 1) + strings.Replace(good, "ok", "dyn_fast_1", 1), nil},
		{"a price below the cost", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 2.99\n    sources: [{provider: gw, cost: 3}, {provider: p, cost: 2}]\n",
			[]string{"config.yaml:13: products[0].price: 2.99 USD is below the cost of 3 USD of sources[0]; set allow_below_cost: true to sell at a loss"}},
		{"a price below the cost of a duration", head + "  - code: a\n    name: A\n    type: static\n    countries: [US]\n    durations:\n      - {days: 30, price: 3}\n      - {days: 90, price: 6}\n    sources: [{provider: st, costs: [{days: 30, cost: 3}, {days: 90, cost: 6.000001}]}]\n",
			[]string{"config.yaml:16: products[0].durations[1].price: 6 USD is below the cost of 6.000001 USD of sources[0]; set allow_below_cost: true to sell at a loss"}},
		{"a loss that is allowed", head + "  - {code: a, name: A, type: dynamic, price: 2.99, allow_below_cost: true, sources: [{provider: gw, cost: 3}]}\n", nil},
		{"an unknown provider, and none", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 1\n    sources:\n      - provider: unknown\n      - cost: 1\n",
			[]string{`config.yaml:15: products[0].sources[0].provider: no provider is named "unknown"`, "config.yaml:16: products[0].sources[1].provider: is missing: …"}},
		{"a provider that was faulted is not faulted again", "providers:\n  - {name: p, kind: nothing}\nproducts:\n  - {code: a, name: A, type: dynamic, price: 1, sources: [{provider: p}]}\n",
			[]string{"config.yaml:2: providers[0].kind: must be one of …"}},
		{"countries that do not exist", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 1\n    countries: [US, UK,\n      us]\n    sources: [{provider: p, countries: [ZZ, DE, DE]}]\n",
			[]string{`config.yaml:14: products[0].countries[1]: "UK" is not a country code (ISO 3166-1 alpha-2, upper case); similar codes: GB`,
				`config.yaml:15: products[0].countries[2]: "us" is not a country code …`, `config.yaml:16: products[0].sources[0].countries[0]: "ZZ" is not a country code …`,
				"config.yaml:16: products[0].sources[0].countries[2]: duplicate entry"}},
		{"a country that no source has", head + "  - {code: a, name: A, type: dynamic, price: 1,\n     countries: [US,\n       FR], sources: [{provider: p, countries: [US]}]}\n",
			[]string{`config.yaml:11: products[0].countries[0]: no source has the country "FR"`}},
		{"places that one source leaves open", head + "  - {code: a, name: A, type: dynamic, price: 1, sources: [{provider: p, countries: [US], cities: [x]}, {provider: gw}]}\n",
			[]string{"config.yaml:10: products[0].countries: is missing: sources[1] has no such list, …", "config.yaml:10: products[0].cities: is missing: sources[1] has no such list, …"}},
		{"cities in two countries", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 1\n    sources:\n      - provider: p\n        countries: [DE, US]\n        cities: [newyork]\n",
			[]string{"config.yaml:15: products[0].sources[0]: has cities in 2 countries; write one source for each country"}},
		{"cities that are none", head + "  - {code: a, name: A, type: dynamic, price: 1, countries: [US], cities: [new york, x, x], sources: [{provider: p}]}\n",
			[]string{"config.yaml:10: products[0].cities[0]: must be 1 to 64 of …", "config.yaml:10: products[0].cities[2]: duplicate entry"}},
		{"providers that do not sell the type", head + "  - {code: a, name: A, type: static, countries: [US], durations: [{days: 30, price: 1}], sources: [{provider: gw}]}\n  - {code: b, name: B, type: dynamic, price: 1, sources: [{provider: st}]}\n",
			[]string{`config.yaml:10: products[0].sources[0].provider: the provider "gw" (gateway) sells no IP addresses, so it cannot deliver a static product`,
				`config.yaml:11: products[1].sources[0].provider: the provider "st" (proxyseller) sells no traffic, so it cannot deliver a dynamic product`}},
		{"direct with a provider that is not", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 1\n    direct: true\n    sources:\n      - provider: p\n      - provider: gw\n      - provider: embedded\n",
			[]string{`config.yaml:17: products[0].sources[1].provider: the provider "gw" (gateway) cannot be used directly: …`,
				"config.yaml:18: products[0].sources[2].provider: the embedded provider cannot be used directly: …"}},
		{"direct traffic that is no multiple of the provider's caps", head + "  - code: a\n    name: A\n    type: dynamic\n    price: 1\n    direct: true\n    min_traffic_gb: 0.5\n    max_traffic_gb: 10\n    sources: [{provider: p}]\n  - code: b\n    name: B\n    type: dynamic\n    price: 1\n    direct: true\n    max_traffic_gb: 10.5\n    sources: [{provider: p}]\n",
			[]string{"config.yaml:15: products[0].min_traffic_gb: agents use the providers' own caps, which are multiples of 1 GB: 0.5 to 10 GB must be too",
				"config.yaml:23: products[1].max_traffic_gb: agents use the providers' own caps, which are multiples of 1 GB: 1 to 10.5 GB must be too"}},
		{"fields of the other type", head + "  - {code: a, name: A, type: dynamic, price: 1, durations: [], max_quantity: 3, sources: [{provider: p, costs: []}]}\n  - {code: b, name: B, type: static, price: 1, min_traffic_gb: 1, countries: [US], durations: [{days: 1, price: 1}], sources: [{provider: st, cost: 1}]}\n",
			[]string{"config.yaml:10: products[0].durations: does not apply to a dynamic product", "config.yaml:10: products[0].max_quantity: does not apply to a dynamic product",
				"config.yaml:10: products[0].sources[0].costs: does not apply to a dynamic product", "config.yaml:11: products[1].price: does not apply to a static product",
				"config.yaml:11: products[1].min_traffic_gb: does not apply to a static product", "config.yaml:11: products[1].sources[0].cost: does not apply to a static product"}},
		{"costs of what is not sold", head + "  - code: a\n    name: A\n    type: static\n    countries: [US]\n    durations: [{days: 30, price: 5}]\n    sources:\n      - provider: st\n        costs:\n          - {days: 30, cost: 1}\n          - {days: 60, cost: 2}\n          - {days: 30, cost: 3}\n",
			[]string{"config.yaml:19: products[0].sources[0].costs[1].days: the product has no duration of 60 days", "config.yaml:20: products[0].sources[0].costs[2].days: duplicate duration"}},
		{"what the catalogue refuses", head + "  - code: a b\n    name: \"\"\n    type: dynamic\n    price: 1\n    min_traffic_gb: 5\n    max_traffic_gb: 4\n    sources: [{provider: p}]\n",
			[]string{"config.yaml:10: products[0].code: the code must be 1 to 64 of A-Z, a-z, 0-9, _ and -", "config.yaml:11: products[0].name: the name is missing",
				"config.yaml:14: products[0].min_traffic_gb: the traffic must be bounded …"}},
		{"what the catalogue refuses of a static product", head + "  - code: a\n    name: A\n    type: static\n    durations:\n      - {days: 30, price: 1}\n      - {days: 7, price: 1}\n    min_quantity: 5\n    max_quantity: 4\n    sources: [{provider: st}]\n",
			[]string{"config.yaml:10: products[0].countries: the countries are missing: a static session needs one",
				"config.yaml:15: products[0].durations[1].days: the durations must be …", "config.yaml:16: products[0].min_quantity: the quantity must be bounded …"}},
		{"no type, another type and no sources", head + "  - {code: a, name: A, sources: [{provider: p}]}\n  - {code: b, name: B, type: Static, sources: [{provider: p}]}\n  - {code: c, name: C, type: dynamic, price: 1, sources: []}\n  - {code: d, name: D, type: dynamic, price: 1}\n",
			[]string{"config.yaml:10: products[0].type: is missing: dynamic (sold by the GB) or static (IP addresses for a time)", "config.yaml:11: products[1].type: must be dynamic or static",
				"config.yaml:12: products[2].sources: must not be empty", "config.yaml:13: products[3].sources: is missing: …"}},
		{"a tier that there is not, fair use of traffic, and trial credit that is neither", head + "  - {code: a, name: A, type: dynamic, price: 4, min_tier: gold, fair_use_gb: 5, trial_credit: maybe, sources: [{provider: gw, cost: 3}]}\n",
			[]string{"config.yaml:10: products[0].fair_use_gb: does not apply to a dynamic product",
				"config.yaml:10: products[0].trial_credit: must be true or false", "config.yaml:10: products[0].min_tier: must be trial, funded or verified"}},
		{"one file of two providers", "providers:\n  - {name: a, kind: proxyssx, options: {file: ./x/../l.txt}}\n" +
			"  - {name: b, kind: proxyssx, options: {file: l.txt}}\n  - {name: c, kind: proxyssx, options: {file: m.txt}}\n",
			[]string{"config.yaml:2: providers[0].options.file: does not exist",
				"config.yaml:3: providers[1].options.file: is the file of the provider a too, so that each would sell what …",
				"config.yaml:4: providers[2].options.file: does not exist"}},
		{"provisioning that is neither", head + "  - {code: a, name: A, type: dynamic, price: 1, provisioning: later, direct: yes, sources: [{provider: p}]}\n",
			[]string{"config.yaml:10: products[0].direct: must be true or false", "config.yaml:10: products[0].provisioning: must be sync or async"}},

		{"unknown fields, at every depth", "imbedded: true\n" + strings.Replace(head, "kind: proxyssx", "kind: proxyssx, url: x", 1) + "  - {code: a, name: A, type: dynamic, prise: 1, price: 1, sources: [{provider: p, prefer: 1}]}\n",
			[]string{"config.yaml:1: imbedded: unknown key", "config.yaml:4: providers[0].url: unknown key",
				"config.yaml:11: products[0].prise: unknown key", "config.yaml:11: products[0].sources[0].prefer: unknown key"}},
		{"a key twice", "trial_days: 3\ntrial_days: 4\n", []string{"config.yaml:2: trial_days: duplicate key"}},
		{"what is no list and no mapping", "providers: {name: x}\nproducts:\n  - dyn\n",
			[]string{"config.yaml:1: providers: must be a list", "config.yaml:3: products[0]: must be a mapping, such as name: value"}},
		{"bad YAML", "providers:\n  - name: [x\n    kind: proxyssx\n", []string{"config.yaml:3: ',' or ']' must be specified"}},
		{"a second document", "trial_days: 3\n---\ntrial_days: 4\n", []string{"config.yaml:3: starts a second YAML document; the file must have one"}},
		{"an alias of nothing", "trial_days: *days\n", []string{"config.yaml:1: trial_days: must be a text or a number"}},
		{"settings of the service", "trial_days: 0\nsession_limit: many\nexits: 127.0.0.2\nlog_level: loud\n",
			[]string{"config.yaml:1: trial_days: must be 1 or more", "config.yaml:2: session_limit: must be a whole number",
				"config.yaml:3: exits: must be a list", "config.yaml:4: log_level: must be one of debug, info, warn, error"}},
		{"the root secret", "secret: hunter2\n", []string{"config.yaml:1: secret: unknown key"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			write(t, c.text)
			t.Setenv("GW_PASSWORD", "pass6543")
			t.Setenv("EMPTY", "")
			for name, text := range map[string]string{"empty": "\n", "two": "hunter2\nhunter2\n"} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := configfile.Load(rules())
			wantFaults(t, err, c.want...)
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "pass6543")) {
				t.Error("the error shows a secret")
			}
		})
	}
}

func TestFaultsOfTheFileAndOfVariablesAreListedTogether(t *testing.T) {
	write(t, "trial_days: 0\nsession_limit: -1\nproviders:\n  - {name: x, kind: nothing}\n")
	t.Setenv("AGENTPROXY_TRIAL_DAYS", "-3")
	t.Setenv("AGENTPROXY_RATE_LIMIT_PER_MINUTE", "many")
	_, err := configfile.Load(rules())
	wantFaults(t, err, "config.yaml:2: session_limit: must be 0 or more", "config.yaml:4: providers[0].kind: must be one of …",
		"AGENTPROXY_RATE_LIMIT_PER_MINUTE: must be a whole number", "AGENTPROXY_TRIAL_DAYS: must be 1 or more")
	faults := configfile.FaultsOf(err)
	if len(faults) != 4 || faults[1] != (configfile.Fault{File: "config.yaml", Line: 4, Path: "providers[0].kind", Text: faults[1].Text}) || faults[3].Path != "AGENTPROXY_TRIAL_DAYS" {
		t.Errorf("taken apart they are %+v", faults)
	}
}

func TestAFileThatIsNotThereIsAFault(t *testing.T) {
	clean(t)
	t.Setenv("AGENTPROXY_CONFIG", "/nowhere/config.yaml")
	t.Setenv("AGENTPROXY_TRIAL_DAYS", "0")
	_, err := configfile.Load(rules())
	wantFaults(t, err, "AGENTPROXY_CONFIG: open /nowhere/config.yaml: no such file or directory", "AGENTPROXY_TRIAL_DAYS: must be 1 or more")
}
