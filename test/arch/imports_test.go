package arch_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// rule names the packages of this module that a package may import. "domain/..."
// is a package with those below it, "..." is every package.
type rule struct{ from, may string }

// imports is the map of the packages, from the core outwards. The first rule that
// matches a package is its own. A rule of one package that allows more than it imports
// fails the test, too. Tests and examples may import everything, and nothing else may
// import them.
var imports = []rule{
	{"domain", ""},
	{"domain/account", "domain"},
	{"domain/audit", "domain"},
	{"domain/billing", "domain domain/account"},
	{"domain/catalog", "domain domain/account domain/billing domain/country domain/procurement domain/session domain/spelling"},
	{"domain/connect", ""},
	{"domain/country", ""},
	{"domain/diagnose", ""},
	{"domain/egress", "domain"},
	{"domain/eventlog", ""},
	{"domain/exit", "domain domain/country"},
	{"domain/exitlog", "domain/egress"},
	{"domain/fair", ""},
	{"domain/health", "domain"},
	{"domain/policy", "domain domain/egress"},
	{"domain/procurement", "domain domain/fair domain/session"},
	{"domain/ratelimit", ""},
	{"domain/recharge", "domain"},
	{"domain/replacement", "domain domain/exit domain/procurement domain/session"},
	{"domain/session", "domain domain/billing domain/country domain/exit"},
	{"domain/spelling", ""},
	{"domain/traffic", "domain/health domain/policy domain/procurement domain/session domain/worker"},
	{"domain/webhook", "domain domain/account"},
	{"domain/worker", "domain domain/session"},

	{"ports", "domain/..."},

	{"app/accounts", "domain/... ports app/cache app/changes app/idempotency app/notify app/ordering app/throttle app/sessions"},
	{"app/cache", ""},
	{"app/catalogs", "domain/... ports"},
	{"app/changes", "ports"},
	{"app/exitgate", "domain/... ports"},
	{"app/exitlogs", "domain/... ports"},
	{"app/fairqueue", "domain/... ports"},
	{"app/fulfilment", "domain/... ports app/catalogs"},
	{"app/idempotency", "domain ports"},
	{"app/ledger", "domain/... ports app/notify"},
	{"app/maintenance", "domain/... ports app/catalogs app/changes app/idempotency app/ledger app/throttle app/sessions app/settlement app/metering"},
	{"app/notify", "domain/... ports"},
	{"app/operator", "domain/... ports app/catalogs app/changes app/ledger app/ordering app/sessions"},
	{"app/overview", "domain/... ports app/telemetry"},
	{"app/payaddress", "domain/... ports"},
	{"app/playmoney", "domain/... ports app/notify"},
	{"app/crediting", "domain/... ports app/notify"},
	{"app/payments", "domain/... ports app/crediting app/idempotency app/ledger app/payaddress"},
	{"app/policies", "domain/... ports app/changes"},
	{"app/ordering", "domain/... ports app/catalogs app/changes app/exitgate app/fairqueue app/fulfilment app/idempotency app/ledger app/notify app/settlement app/slots"},
	{"app/throttle", "domain/... ports app/cache"},
	{"app/reconcile", "domain/... ports app/catalogs app/ordering"},
	{"app/feed", "domain/... ports"},
	{"app/replacements", "app/catalogs app/changes app/fulfilment app/idempotency app/ledger app/notify app/ordering app/sessions domain/... ports"},
	{"app/reveals", "domain/... ports app/accounts app/idempotency app/sessions"},
	{"app/sessions", "domain/... ports app/catalogs app/changes app/fulfilment app/idempotency app/ledger app/notify app/ordering app/settlement"},
	{"app/settlement", "domain/... ports app/catalogs app/fulfilment app/idempotency app/ledger app/notify"},
	{"app/slots", "domain/fair"},
	{"app/telemetry", "domain/... ports app/notify"},
	{"app/metering", "domain/... ports app/changes app/exitgate app/fulfilment app/ledger app/notify app/ordering app/sessions"},
	{"app/webhooks", "domain/... ports app/changes app/idempotency app/notify"},
	{"app/workers", "domain/... ports app/catalogs app/changes app/exitgate app/fulfilment app/idempotency app/notify"},

	{"adapters/admin", "adapters/admin/signin adapters/conns"},
	{"adapters/admin/console", "domain/... ports app/... adapters/admin/signin adapters/console/ui"},
	{"adapters/admin/signin", "domain/... ports adapters/conns adapters/console/ui"},
	{"adapters/apiclient", ""},
	{"adapters/certificate", "ports adapters/conns"},
	{"adapters/chain", "domain/... ports app/cache"},
	{"adapters/configfile", "domain/... ports"},
	{"adapters/conns", ""},
	{"adapters/console", "domain/... ports app/... adapters/conns adapters/console/ui"},
	{"adapters/console/ui", "domain"},
	{"adapters/exitfacts", "domain/... ports app/cache"},
	{"adapters/gateway", "domain/... adapters/conns adapters/gateway/client adapters/gateway/dial adapters/gateway/h2 adapters/gateway/hostport adapters/gateway/http1 adapters/gateway/lease adapters/gateway/monotime adapters/gateway/quota adapters/gateway/refusal adapters/gateway/relay adapters/gateway/route adapters/gateway/secure adapters/gateway/socket adapters/gateway/socks5"},
	{"adapters/gateway/client", "domain/policy adapters/conns adapters/gateway/lease adapters/gateway/monotime adapters/gateway/quota adapters/gateway/route adapters/gateway/socket"},
	{"adapters/gateway/dial", "domain/... adapters/gateway/hostport adapters/gateway/http1 adapters/gateway/monotime adapters/gateway/refusal adapters/gateway/socks5"},
	{"adapters/gateway/h2", ""},
	{"adapters/gateway/hostport", ""},
	{"adapters/gateway/http1", "adapters/gateway/hostport"},
	{"adapters/gateway/lease", "domain/traffic adapters/gateway/monotime"},
	{"adapters/gateway/monotime", ""},
	{"adapters/gateway/quota", "domain/..."},
	{"adapters/gateway/refusal", "domain/... adapters/gateway/http1 adapters/gateway/socks5"},
	{"adapters/gateway/relay", "adapters/gateway/client adapters/gateway/lease adapters/gateway/monotime adapters/gateway/socket"},
	{"adapters/gateway/route", "domain/... adapters/gateway/lease adapters/gateway/monotime"},
	{"adapters/gateway/secure", ""},
	{"adapters/gateway/socket", ""},
	{"adapters/gateway/socks5", "adapters/gateway/hostport"},
	{"adapters/httpapi", "domain/... ports app/accounts app/catalogs app/feed app/ledger app/payments app/policies app/ordering app/throttle app/replacements app/reveals app/sessions app/telemetry app/webhooks app/workers adapters/conns adapters/httpapi/accounts adapters/httpapi/billing adapters/httpapi/binding adapters/httpapi/endpoint adapters/httpapi/events adapters/httpapi/format adapters/httpapi/openapi adapters/httpapi/pages adapters/httpapi/products adapters/httpapi/sessions adapters/httpapi/sessionview adapters/httpapi/telemetry adapters/httpapi/webhooks adapters/httpapi/workers"},
	{"adapters/httpapi/accounts", "domain/... app/accounts adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/strictjson adapters/httpapi/value"},
	{"adapters/httpapi/billing", "domain/... ports app/ledger app/payments adapters/httpapi/accounts adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/strictjson adapters/httpapi/value"},
	{"adapters/httpapi/binding", "domain/... adapters/httpapi/strictjson"},
	{"adapters/httpapi/events", "domain/... app/accounts app/feed adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/value adapters/httpapi/webhooks"},
	{"adapters/httpapi/endpoint", "domain/... ports app/accounts app/idempotency app/ledger app/throttle adapters/conns adapters/httpapi/binding adapters/httpapi/format adapters/httpapi/openapi adapters/httpapi/strictjson adapters/httpapi/value adapters/lograte"},
	{"adapters/httpapi/format", "adapters/httpapi/openapi adapters/httpapi/strictjson"},
	{"adapters/httpapi/msgpack", ""},
	{"adapters/httpapi/openapi", "domain/... app/accounts adapters/httpapi/value"},
	{"adapters/httpapi/pages", "domain/..."},
	{"adapters/httpapi/products", "domain/... app/catalogs adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/value"},
	{"adapters/httpapi/sessions", "domain/... ports app/policies app/replacements app/reveals app/sessions adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/sessionview adapters/httpapi/value"},
	{"adapters/httpapi/sessionview", "domain/... app/fulfilment app/sessions adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/value"},
	{"adapters/httpapi/strictjson", ""},
	{"adapters/httpapi/telemetry", "domain/... app/telemetry adapters/httpapi/binding adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/sessionview adapters/httpapi/strictjson adapters/httpapi/value"},
	{"adapters/httpapi/value", "domain domain/session adapters/httpapi/strictjson"},
	{"adapters/httpapi/webhooks", "domain/... app/webhooks adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/strictjson adapters/httpapi/value"},
	{"adapters/httpapi/workers", "domain/... ports app/sessions app/workers adapters/httpapi/endpoint adapters/httpapi/openapi adapters/httpapi/sessionview adapters/httpapi/value"},
	{"adapters/lograte", ""},
	{"adapters/mcp", "domain domain/connect domain/diagnose"},
	{"adapters/mcp/rest", "domain/connect adapters/apiclient adapters/mcp"},
	{"adapters/nats", "domain/... ports"},
	{"adapters/queue", "domain/... ports adapters/lograte"},
	{"adapters/redis", "domain/... ports"},
	{"adapters/storage", "domain/... ports adapters/storage/..."},
	{"adapters/storage/accounts", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/rows adapters/storage/work"},
	{"adapters/storage/batch", "domain/... ports adapters/storage/accounts adapters/storage/calls adapters/storage/engine adapters/storage/ledger adapters/storage/rows adapters/storage/sessions adapters/storage/webhooks adapters/storage/workers"},
	{"adapters/storage/calls", "ports adapters/storage/column adapters/storage/engine adapters/storage/rows adapters/storage/work"},
	{"adapters/storage/certificate", "ports adapters/storage/work"},
	{"adapters/storage/codec", "domain/... adapters/storage/column"},
	{"adapters/storage/column", ""},
	{"adapters/storage/commit", "domain/... ports adapters/storage/engine"},
	{"adapters/storage/engine", "domain"},
	{"adapters/storage/evidence", "domain/... ports adapters/storage/codec adapters/storage/column adapters/storage/engine adapters/storage/work"},
	{"adapters/storage/ledger", "domain/... ports adapters/storage/accounts adapters/storage/codec adapters/storage/column adapters/storage/engine adapters/storage/margins adapters/storage/rows adapters/storage/sessions adapters/storage/usage adapters/storage/work"},
	{"adapters/storage/margins", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/proof adapters/storage/work"},
	{"adapters/storage/overview", "domain/... ports adapters/storage/accounts adapters/storage/column adapters/storage/engine adapters/storage/ledger adapters/storage/margins adapters/storage/sessions adapters/storage/work"},
	{"adapters/storage/payments", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/work"},
	{"adapters/storage/postgres", "domain/... ports adapters/storage/engine"},
	{"adapters/storage/procurement", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/proof adapters/storage/work"},
	{"adapters/storage/proof", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/work"},
	{"adapters/storage/rows", "adapters/storage/column adapters/storage/engine"},
	{"adapters/storage/sessions", "domain/... ports adapters/storage/codec adapters/storage/column adapters/storage/engine adapters/storage/rows adapters/storage/usage adapters/storage/work"},
	{"adapters/storage/sqlite", "domain ports adapters/storage/engine adapters/storage/sqlite/needscgo"},
	{"adapters/storage/sqlite/needscgo", ""},
	{"adapters/storage/usage", "domain/... ports adapters/storage/column adapters/storage/rows adapters/storage/work"},
	{"adapters/storage/webhooks", "domain/... ports adapters/storage/column adapters/storage/engine adapters/storage/rows adapters/storage/work"},
	{"adapters/storage/work", "domain/... adapters/storage/column adapters/storage/engine adapters/storage/rows"},
	{"adapters/storage/workers", "domain/... ports adapters/storage/codec adapters/storage/column adapters/storage/engine adapters/storage/rows adapters/storage/sessions adapters/storage/work"},
	{"adapters/system", "domain/... ports"},
	{"adapters/tracing", "domain/... ports"},
	{"adapters/upstream", "ports adapters/upstream/..."},
	{"adapters/upstream/embedded", "domain/... ports"},
	{"adapters/upstream/gateway", "domain/... ports adapters/upstream/kind"},
	{"adapters/upstream/iproyal", "domain/... ports adapters/upstream/gateway adapters/upstream/kind adapters/upstream/rest"},
	{"adapters/upstream/kind", "ports adapters/upstream/rest"},
	{"adapters/upstream/list", "domain/... ports adapters/upstream/kind"},
	{"adapters/upstream/proxycheap", "domain/... ports adapters/upstream/kind adapters/upstream/rest"},
	{"adapters/upstream/proxyseller", "domain/... ports adapters/upstream/gateway adapters/upstream/kind adapters/upstream/rest"},
	{"adapters/upstream/proxyssx", "domain/... ports adapters/upstream/gateway adapters/upstream/kind adapters/upstream/rest"},
	{"adapters/upstream/rest", "domain/... ports"},
	{"adapters/upstream/webshare", "domain/... ports adapters/upstream/kind adapters/upstream/list adapters/upstream/rest"},
	{"adapters/webhook", "domain/... ports"},

	{"cmd/agentproxy", "domain/... ports app/... adapters/... cmd/internal/..."},
	{"cmd/apx", "domain/connect domain/diagnose adapters/apiclient adapters/gateway/hostport adapters/gateway/socks5 adapters/mcp adapters/mcp/rest cmd/internal/version"},
	{"cmd/internal/...", "..."},
}

// covers reports whether a rule allows a package.
func covers(may, to string) bool {
	for pattern := range strings.FieldsSeq(may) {
		prefix, below := strings.CutSuffix(pattern, "...")
		if pattern == to || below && (prefix == "" || to+"/" == prefix || strings.HasPrefix(to, prefix)) {
			return true
		}
	}
	return false
}

// ruleOf returns the rule of a package.
func ruleOf(path string) (found rule, known bool) {
	for _, r := range imports {
		if covers(r.from, path) {
			return r, true
		}
	}
	return rule{}, false
}

func TestImportsFollowTheMap(t *testing.T) {
	found := packages(t)
	for _, r := range imports {
		exists := false
		for path := range found {
			exists = exists || covers(r.from, path)
		}
		if !exists {
			t.Errorf("the map has a rule for %s, which does not exist", r.from)
		}
	}
	for path, p := range found {
		if strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "examples/") || len(p.GoFiles) == 0 {
			continue
		}
		var own []string
		for _, imported := range p.Imports {
			if to, ok := strings.CutPrefix(imported, module+"/"); ok {
				own = append(own, to)
			}
		}
		r, known := ruleOf(path)
		if !known {
			t.Errorf("the map in imports_test.go has no rule for %s: add\n\t{%q, %q},\nand run make generate", path, path, suggest(path, own))
			continue
		}
		for _, to := range own {
			if !covers(r.may, to) {
				t.Errorf("%s imports %s, which its rule does not allow", path, to)
			}
			if strings.HasPrefix(to, "test/") {
				t.Errorf("%s imports %s, which is for tests", path, to)
			}
		}
		for pattern := range strings.FieldsSeq(r.may) {
			if r.from == path && !slices.ContainsFunc(own, func(to string) bool { return covers(pattern, to) }) {
				t.Errorf("the rule of %s allows %s, which it does not import", path, pattern)
			}
		}
	}
}

// suggest returns the rule of a package as it is.
func suggest(path string, imports []string) string {
	var may []string
	for _, to := range imports {
		if strings.HasPrefix(to+"/", "domain/") && !strings.HasPrefix(path+"/", "domain/") {
			to = "domain/..."
		}
		if !slices.Contains(may, to) {
			may = append(may, to)
		}
	}
	return strings.Join(may, " ")
}

const page = root + "/docs/architecture.md"

var update = flag.Bool("update", false, "rewrite the map of imports in docs/architecture.md")

// TestTheArchitecturePageShowsTheMap compares the page with the rules.
func TestTheArchitecturePageShowsTheMap(t *testing.T) {
	const begin, end = "<!-- imports: written by make generate -->\n", "<!-- end of imports -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, opened := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		t.Fatalf("%s has no section between %q and %q", page, begin, end)
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(begin + "\n| package | may import |\n|---|---|\n")
	for _, r := range imports {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.from, listed(r.may))
	}
	b.WriteString("\n" + end)
	b.Write(tail)
	if bytes.Equal(b.Bytes(), text) {
		return
	}
	if !*update {
		t.Fatal("docs/architecture.md is stale: run make generate")
	}
	if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func listed(may string) string {
	switch may {
	case "":
		return "nothing of this module"
	case "...":
		return "everything"
	}
	return "`" + strings.Join(strings.Fields(may), "`, `") + "`"
}
