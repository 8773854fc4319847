package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake/seller"
)

// remote is a provider of the tests that calls a fake server over HTTP.
type remote struct {
	ports.Dynamic
	spec upstream.Spec
}

func (r remote) Name() string { return r.spec.Name }

func (r remote) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, KeepsOrderKey: true, Direct: true, CapUnit: 1}
}

func (r remote) get(ctx context.Context, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.spec.BaseURL+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", r.spec.Secrets["key"])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return procurement.Refuse(procurement.TimedOut, "no answer came in time")
		}
		return procurement.Refuse(procurement.Temporary, "no connection")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return procurement.Refuse(procurement.Auth, fmt.Sprint("status ", res.StatusCode))
	}
	return json.NewDecoder(res.Body).Decode(out)
}

func (r remote) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	var b struct{ Balance string }
	err := r.get(ctx, "/balance", &b)
	if err != nil {
		return procurement.ProviderBalance{}, err
	}
	return procurement.ProviderBalance{Amount: domain.MustMoney(b.Balance), Known: true}, nil
}

func (r remote) Offers(ctx context.Context) ([]procurement.Offer, error) {
	var codes []string
	err := r.get(ctx, "/offers", &codes)
	var list []procurement.Offer
	for _, c := range codes {
		list = append(list, procurement.Offer{SKU: "isp-" + c, Type: session.Static, Name: "ISP\x1b[2J", Location: session.Location{Country: c},
			Days: []int{30, 90}, Stock: procurement.StockYes, Count: 7, Cost: 2_400_000})
	}
	return list, err
}

// silent is a provider without balance and offers.
type silent struct {
	ports.Replacer
	name string
}

func (s silent) Name() string { return s.name }

func (s silent) Capabilities() procurement.Capabilities { return procurement.Capabilities{} }

func (s silent) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

func (s silent) Offers(context.Context) ([]procurement.Offer, error) {
	return nil, procurement.Refuse(procurement.Unsupported, "there is no list")
}

func makeRemote(s upstream.Spec, _ *slog.Logger) (ports.Provider, error) {
	switch s.Kind {
	case "remote":
		return remote{spec: s}, nil
	case "silent":
		return silent{name: s.Name}, nil
	}
	return nil, errors.New("kind must be remote or silent")
}

// started returns a fake server, and configures a provider that calls it. The
// database is in a folder that does not exist: the commands must not need it.
func started(t *testing.T) *seller.Server {
	t.Helper()
	s := seller.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "key654":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/balance":
			fmt.Fprint(w, `{"balance": "12.50"}`)
		default:
			fmt.Fprint(w, `["DE","US"]`)
		}
	}))
	s.Late = time.Minute
	configure(t, "providers:\n  - {name: shop, kind: remote, base_url: \""+s.URL+"\", secrets: {key: {env: SHOP_KEY}}, "+sourced()+
		"}\n  - {name: quiet, kind: silent, "+sourced()+"}\n")
	t.Setenv("SHOP_KEY", "key654")
	return s
}

// sourced is what keeps a provider from being warned of.
func sourced() string {
	return "sourcing: {statement: ours, url: 'https://example.com', reviewed: " + time.Now().UTC().Format(time.DateOnly) + "}"
}

func configure(t *testing.T, text string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AGENTPROXY_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AGENTPROXY_CONFIG", "config.yaml")
	t.Setenv("AGENTPROXY_EXITS", "127.0.0.5@DE,127.0.0.6@DE") // else it is warned of outside development mode
	t.Setenv("AGENTPROXY_DATABASE_URL", "sqlite://nowhere/at/all.db")
}

// command runs a command on the kinds of these tests.
func command(args ...string) (status int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	status = runWith(wire.Loader{New: makeRemote}, args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func rows(t *testing.T, out string) []map[string]any {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return list
}

func TestProvidersList(t *testing.T) {
	s := started(t)
	status, out, _ := command("providers", "list")
	if status != 0 || !strings.Contains(out, "shop   remote  dynamic  uses the seller's proxy, finds lost orders, sells direct access, caps traffic") || !strings.Contains(out, "quiet  silent  static   replaces") {
		t.Errorf("%d:\n%s", status, out)
	}
	status, out, _ = command("--json", "providers", "list")
	list := rows(t, out)
	if status != 0 || len(list) != 2 || list[0]["name"] != "shop" || fmt.Sprint(list[0]["capabilities"]) != "[uses the seller's proxy finds lost orders sells direct access caps traffic]" ||
		fmt.Sprint(list[1]["sells"]) != "[static]" {
		t.Errorf("%d: %s", status, out)
	}
	if n := s.Calls(""); n != 0 {
		t.Errorf("the list called the seller %d times", n)
	}
}

func TestProvidersCheck(t *testing.T) {
	s := started(t)
	status, out, errOut := command("--json", "providers", "check")
	list := rows(t, out)
	if status != 0 || errOut != "" || len(list) != 2 {
		t.Fatalf("%d: %s%s", status, out, errOut)
	}
	if r := list[0]; r["reachable"] != "yes" || r["balance"] != "12.5" || r["offers"] != 2.0 || r["error"] != "" {
		t.Errorf("shop is %v", r)
	}
	if r := list[1]; r["reachable"] != "unknown" || r["balance"] != "" || r["error"] != "" {
		t.Errorf("quiet is %v", r)
	}

	for claim, c := range map[string]struct{ fault, class string }{
		"balance": {"/balance", "auth"}, "offers": {"/offers", "auth"},
	} {
		t.Run("one of the two calls fails: "+claim, func(t *testing.T) {
			s.Next(c.fault, seller.Expired)
			status, out, errOut := command("providers", "check")
			if status != 1 || !strings.Contains(out, c.class) || !strings.Contains(out, "status 401") || !strings.Contains(errOut, "1 of 2 providers failed") {
				t.Errorf("%d:\n%s%s", status, out, errOut)
			}
		})
	}
	t.Run("a provider that failed does not matter to the check of another", func(t *testing.T) {
		s.Next("/balance", seller.Expired)
		if status, out, errOut := command("providers", "check", "quiet"); status != 0 || strings.Contains(out, "shop") {
			t.Errorf("%d:\n%s%s", status, out, errOut)
		}
		if status, _, _ := command("providers", "check", "shop"); status != 1 {
			t.Errorf("the failing one has status %d", status)
		}
	})
	t.Run("one that does not answer is waited for no longer than the limit", func(t *testing.T) {
		s.Next("/offers", seller.Delay)
		status, out, _ := command("--json", "providers", "check", "shop", "--timeout", "50ms")
		if list := rows(t, out); status != 1 || list[0]["error"] != "timed_out" || list[0]["reachable"] != "no" {
			t.Errorf("%d: %s", status, out)
		}
	})
}

func TestProvidersCatalogue(t *testing.T) {
	s := started(t)
	status, out, _ := command("providers", "catalogue", "shop")
	if status != 0 || !strings.Contains(out, "isp-DE  static  ISP?[2J  DE             30, 90  yes    7      2.4") {
		t.Errorf("%d:\n%q", status, out)
	}
	status, out, _ = command("--json", "providers", "catalogue", "shop")
	if list := rows(t, out); status != 0 || len(list) != 2 || list[1]["sku"] != "isp-US" || fmt.Sprint(list[1]["days"]) != "[30 90]" || list[1]["cost"] != "2.4" {
		t.Errorf("%d: %s", status, out)
	}
	if status, out, _ = command("--json", "providers", "catalogue", "quiet"); status != 0 || len(rows(t, out)) != 0 {
		t.Errorf("one without a list: %d: %s", status, out)
	}
	s.Next("/offers", seller.Expired)
	if status, _, errOut := command("providers", "catalogue", "shop"); status != 1 || !strings.Contains(errOut, "provider: auth: status 401") {
		t.Errorf("%d: %s", status, errOut)
	}
}

func TestWrongUseOfTheProviderCommands(t *testing.T) {
	started(t)
	for _, c := range []struct {
		status int
		args   []string
	}{
		{1, []string{"providers", "check", "unknown"}}, {1, []string{"providers", "catalogue", "unknown"}},
		{2, []string{"providers", "catalogue"}}, {2, []string{"providers"}}, {2, []string{"providers", "check", "--timeout", "soon"}},
		{2, []string{"config"}}, {0, []string{"providers", "check", "--help"}}, {0, []string{"config", "check", "--help"}},
	} {
		if status, out, errOut := command(c.args...); status != c.status {
			t.Errorf("%v ends with %d, want %d:\n%s%s", c.args, status, c.status, out, errOut)
		}
	}
	configure(t, "providers:\n  - {name: shop, kind: none}\n")
	for _, args := range [][]string{{"providers", "list"}, {"providers", "check"}, {"providers", "catalogue", "shop"}} {
		if status, _, errOut := command(args...); status != 1 || !strings.Contains(errOut, "config.yaml:2: providers[0].kind: ") {
			t.Errorf("with a faulty file %v ends with %d: %s", args, status, errOut)
		}
	}
}

// Every kind and every setting that can be written is listed, and none that can
// not.
func TestProvidersKinds(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"providers", "kinds", "--json"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var list []struct {
		Kind, Setting, Help string
		Required            bool
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, k := range upstream.Kinds() {
		want += len(k.Settings)
	}
	seen := map[string]bool{}
	for _, x := range list {
		seen[x.Kind] = true
		if x.Help == "" || !strings.HasPrefix(x.Setting, "secrets.") && !strings.HasPrefix(x.Setting, "options.") {
			t.Errorf("%+v", x)
		}
	}
	if len(list) != want || len(seen) != len(upstream.Kinds()) {
		t.Errorf("%d settings of %d kinds are listed, want %d of %d", len(list), len(seen), want, len(upstream.Kinds()))
	}
}
