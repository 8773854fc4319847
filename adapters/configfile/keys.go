package configfile

// key is a key of a mapping in the file, with its entry in
// docs/configuration.md.
type key struct {
	name    string
	absent  string // what leaving it out means; empty if the key is required
	meaning string
}

var catalogKeys = []key{
	{"embedded", "`true`", "whether the products of this host's own addresses are sold too"},
	{"providers", "none", "list of providers that products are bought from; a change needs a restart"},
	{"products", "none", "list of products; `kill -HUP` reloads it"},
	{"policy", "`denied_ports` alone", "which targets sessions may reach; `kill -HUP` reloads it, with its files"},
	{"exit_facts", "none", "list of what is known about addresses of exits, the first source that has a fact decides; " +
		"`kill -HUP` reloads it, with its files (docs/exits.md)"},
}

var exitFactKeys = []key{
	{"kind", "", "`mmdb`: a MaxMind database with the fields of GeoLite2 City or ASN; `ranges`: a text file with lines " +
		"`CIDR name=value …`; `dnsbl`: a list that is asked by DNS"},
	{"file", "`kind` is dnsbl", "database or text file; a relative path starts at the folder of the configuration file"},
	{"zone", "`kind` is a file", "zone of the list, such as `bl.example.net`; each address is asked about once an " +
		"hour at most"},
	{"label", "`kind` is a file", "name by which agents see the list in `listed`: 1 to 32 of a-z, 0-9, _, . and -"},
	{"resolver", "the system's", "address and port of the DNS server that the list is asked through"},
}

var policyKeys = append([]key{
	{"denied_ports", "22, 23, 25, 110, 143, 445, 465, 587, 993, 995, 3389 and 6660-6669",
		"ports and ranges that are denied beside those of `deny`; `[]` for none"},
}, productPolicyKeys...)

var productPolicyKeys = []key{
	{"deny", "none", "list of rules, each a host (`example.com`), a host with everything below it (`.example.com`), " +
		"a network (`192.0.2.0/24`), a port (`8333`) or a range (`6881-6889`); or `{file: PATH}`"},
	{"allow", "everything", "list of the same form. Where it has hosts or networks a target must match one of " +
		"them, and where it has ports one of these; `deny` wins"},
	{"ports", "every port", "the only ports and ranges that are allowed"},
}

var ruleFileKeys = []key{
	{"file", "", "file with a rule in each line, at most 1000000 in all files; a relative path starts at the " +
		"folder of the configuration file; lines that begin with # are passed over"},
}

var providerKeys = []key{
	{"name", "", "name that products refer to: 1 to 32 of a-z, 0-9, _ and -"},
	{"kind", "", "kind of provider, such as gateway; `agentproxy providers kinds` lists all with their settings"},
	{"base_url", "the provider's own", "address of the provider's API"},
	{"secrets", "none", "secrets of the kind by name, each as `{env: VARIABLE}` or `{file: PATH}`"},
	{"options", "none", "options of the kind by name"},
	{"locations", "none", "the provider's ids of places, by country (`US`) or country and city (`US/newyork`)"},
	{"resolve", "`here` for a proxy on a private address, else `upstream`", "`here` sends the address " +
		"that a target's name was resolved to and checked by, `upstream` sends the name"},
	{"per_second", "the kind's own", "calls of the provider's API per second, above 0 and at most 1000"},
	{"timeout_seconds", "the kind's own", "timeout of a call, 1 to 150"},
	{"sourcing", "a warning", "how the provider gets the consent of those whose addresses it sells, as you have " +
		"looked it up"},
}

var sourcingKeys = []key{
	{"statement", "", "what the provider states, in your words"},
	{"url", "", "https address of the provider's statement"},
	{"reviewed", "", "day on which you read it, as YYYY-MM-DD; a warning after a year"},
}

var secretKeys = []key{
	{"env", "`file` is given", "environment variable with the secret"},
	{"file", "`env` is given", "file with the secret in one line; a relative path starts at the folder of the " +
		"configuration file"},
}

var productKeys = []key{
	{"code", "", "code that agents order the product by: 1 to 64 of A-Z, a-z, 0-9, _ and -"},
	{"name", "", "name that agents read"},
	{"description", "none", "description that agents read"},
	{"type", "", "dynamic (sold by the GB) or static (IP addresses for a time)"},
	{"price", "required if dynamic", "US dollars per GB, with at most 6 decimals"},
	{"durations", "required if static", "list of durations in days, each with the price of an IP address"},
	{"countries", "those of the sources", "countries (ISO 3166-1 alpha-2, upper case)"},
	{"cities", "those of the sources", "cities"},
	{"min_traffic_gb", "`0.1`", "least traffic of an order in GB, with at most 3 decimals; dynamic products only; of a " +
		"direct one a multiple of the provider's unit, which is the default where it is more"},
	{"max_traffic_gb", "`1000`", "most traffic of an order in GB; dynamic products only"},
	{"min_quantity", "`1`", "least IP addresses of an order; static products only"},
	{"max_quantity", "`100`", "most IP addresses of an order; static products only"},
	{"provisioning", "`async` if a source delivers later", "`sync` or `async`: whether an order is answered before its " +
		"session is active"},
	{"direct", "`false`", "whether agents get the provider's own proxy in `full_url` instead of the gateway"},
	{"trial_credit", "`true` if the embedded provider is the only source, and outside development mode the product is " +
		"dynamic", "whether trial credit pays for the product; " +
		"what a delivery costs at a provider is then the operator's loss"},
	{"min_tier", "`trial`", "least tier of the accounts that may buy it: `trial`, `funded` or `verified`"},
	{"fair_use_gb", "none", "GB that an IP address may carry for each 30 days bought, then `FAIR_USE_REACHED` until it " +
		"is renewed; static products only"},
	{"policy", "none", "which targets sessions of the product may reach, beside the operator's `policy`"},
	{"allow_below_cost", "`false`", "whether a price below the cost of a source is accepted, and an order that costs " +
		"more than its agent pays"},
	{"sources", "", "list of the providers that the product is bought from"},
}

var durationKeys = []key{
	{"days", "", "duration in days, 1 to 3650"},
	{"price", "", "US dollars per IP address, with at most 6 decimals"},
}

var sourceKeys = []key{
	{"provider", "", "name of a provider, or `embedded`"},
	{"sku", "none", "the provider's code of the product"},
	{"preference", "`0`", "rank among the sources, 0 to 1000; lower ranks are tried first"},
	{"cost", "unknown", "cost of a GB in US dollars; dynamic products only"},
	{"costs", "unknown", "list of the costs of an IP address by duration; static products only"},
	{"countries", "those of the product", "countries that the source has"},
	{"cities", "those of the product", "cities that the source has; `[]` is none. A source with cities has one country"},
}

var costKeys = []key{
	{"days", "", "duration of the product, in days"},
	{"cost", "", "US dollars per IP address"},
}
