package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream"
	"agentproxy/cmd/internal/wire"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

type providerCmd struct {
	Kinds     providerKindsCmd     `cmd:"" help:"List the kinds of providers and the settings of each."`
	List      providerListCmd      `cmd:"" help:"List the providers and their capabilities; calls none of them."`
	Check     providerCheckCmd     `cmd:"" help:"Ask providers for balance and stock, and open a tunnel through gateways; exits with 1 if one fails."`
	Catalogue providerCatalogueCmd `cmd:"" help:"List what a provider sells at the moment."`
}

// providers returns the configured providers, or the one of a name. It needs no
// database, and the products may have faults.
func (k *kit) providers(name string) (configfile.Settings, wire.Providers, error) {
	settings, err := k.loader.LoadProviders()
	if err != nil {
		return configfile.Settings{}, nil, err
	}
	// Failures are in the table.
	list, err := k.loader.Providers(settings.Catalog, upstream.Env{EchoURL: wire.EchoURL(settings)},
		slog.New(slog.DiscardHandler))
	if err != nil || name == "" {
		return settings, list, err
	}
	list = slices.DeleteFunc(list, func(p ports.Provider) bool { return p.Name() != name })
	if len(list) == 0 {
		return settings, nil, fmt.Errorf("the configuration has no provider %q", name)
	}
	return settings, list, nil
}

// words are a list in JSON, and one cell of a text table.
type words []string

// String joins the words.
func (w words) String() string { return strings.Join(w, ", ") }

type providerKindsCmd struct{}

// Run lists the kinds; it needs no configuration.
func (providerKindsCmd) Run(k *kit) error {
	t := table{columns: []string{"kind", "setting", "required", "help"}}
	for _, k := range upstream.Kinds() {
		for _, s := range k.Settings {
			t.add(k.Name, s.String(), s.Required, s.Help)
		}
	}
	return t.print(k)
}

type providerListCmd struct{}

// Run lists the providers.
func (providerListCmd) Run(k *kit) error {
	settings, list, err := k.providers("")
	if err != nil {
		return err
	}
	t := table{columns: []string{"name", "kind", "sells", "capabilities"}}
	for _, p := range list {
		t.add(p.Name(), settings.Catalog.Kind(p.Name()), sells(p), words(ports.Can(p)))
	}
	return t.print(k)
}

func sells(p ports.Provider) words {
	w := words{}
	if _, ok := p.(ports.Dynamic); ok {
		w = append(w, "dynamic")
	}
	if _, ok := p.(ports.Static); ok {
		w = append(w, "static")
	}
	return w
}

type providerCheckCmd struct {
	Name    string        `arg:"" optional:"" name:"NAME" help:"Only this provider."`
	Timeout time.Duration `default:"20s" help:"How long each call may take."`
	Target  string        `default:"${tunnel_target}" placeholder:"HOST:PORT" help:"Where a tunnel through a gateway leads to; nothing is sent through it."`
}

// answer is the result of asking a provider.
type answer struct {
	funds   procurement.ProviderBalance
	offers  []procurement.Offer
	tunnel  bool          // one was opened
	latency time.Duration // of the first call
	err     error
}

// reachable returns yes, no, or unknown for a provider that nothing was received from.
func (a answer) reachable() string {
	switch {
	case a.err != nil:
		return "no"
	case !a.funds.Known && len(a.offers) == 0 && !a.tunnel:
		return "unknown"
	}
	return "yes"
}

// Run asks the providers, all at once.
func (c providerCheckCmd) Run(k *kit) error {
	if c.Timeout <= 0 {
		return errors.New("timeout must be above 0")
	}
	settings, list, err := k.providers(c.Name)
	if err != nil {
		return err
	}
	answers := make([]answer, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { answers[i] = testCalls(k.ctx, settings, p, c.Target, c.Timeout) })
	}
	wg.Wait()
	failed := 0
	t := table{columns: []string{"name", "kind", "reachable", "balance", "offers", "latency_ms", "error", "reason"}}
	for i, p := range list {
		a := answers[i]
		balance := ""
		if a.funds.Known {
			balance = a.funds.Amount.String()
		}
		if a.err != nil {
			failed++
		}
		t.add(p.Name(), settings.Catalog.Kind(p.Name()), a.reachable(), balance, len(a.offers), a.latency.Milliseconds(),
			string(procurement.ClassOf(a.err)), procurement.ReasonOf(a.err))
	}
	if err := t.print(k); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %s failed", failed, count(len(list), "provider"))
}

// testCalls makes the calls that buy nothing. A call that the provider does not support
// is not a failure. A gateway has no API, so a tunnel to a target is opened through it.
func testCalls(ctx context.Context, s configfile.Settings, p ports.Provider, target string,
	timeout time.Duration) (a answer) {
	if proxy, ok := gatewayOf(p); ok {
		began := time.Now()
		a.err = wire.OpenTunnel(ctx, s, proxy, target, timeout)
		a.tunnel, a.latency = a.err == nil, time.Since(began)
		return a
	}
	call := func(f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := f(ctx); procurement.ClassOf(err) != procurement.Unsupported {
			return err
		}
		return nil
	}
	began := time.Now()
	errBalance := call(func(ctx context.Context) (err error) {
		a.funds, err = p.Balance(ctx)
		return err
	})
	a.latency = time.Since(began)
	errOffers := call(func(ctx context.Context) (err error) {
		a.offers, err = p.Offers(ctx)
		return err
	})
	if a.err = errBalance; a.err == nil {
		a.err = errOffers
	}
	return a
}

// tunnelTarget is what a tunnel through a gateway leads to unless another target is named: a name that
// RFC 2606 reserves, which every seller may reach.
const tunnelTarget = "example.com:443"

// gatewayOf returns the proxy of a provider that has a proxy and no API, with a credential for some
// exit.
func gatewayOf(p ports.Provider) (procurement.Endpoint, bool) {
	can := p.Capabilities()
	seller, dynamic := p.(ports.Dynamic)
	if !dynamic || !can.InProcess || !can.ViaUpstream {
		return procurement.Endpoint{}, false
	}
	token := procurement.Token(strconv.FormatInt(time.Now().UnixNano(), 36), 0)
	proxy, err := seller.Endpoint(procurement.Access{}, procurement.Target{Token: token})
	return proxy, err == nil
}

type providerCatalogueCmd struct {
	Name    string        `arg:"" name:"NAME" help:"The name of a provider."`
	Timeout time.Duration `default:"60s" help:"How long the call may take."`
}

// Run lists what a provider sells.
func (c providerCatalogueCmd) Run(k *kit) error {
	_, list, err := k.providers(c.Name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.ctx, c.Timeout)
	defer cancel()
	offers, err := list[0].Offers(ctx)
	if err != nil && procurement.ClassOf(err) != procurement.Unsupported {
		return err
	}
	t := table{columns: []string{"sku", "type", "name", "country", "city", "days", "stock", "count", "cost"}}
	for _, o := range offers {
		days := words{}
		for _, d := range o.Days {
			days = append(days, fmt.Sprint(d))
		}
		cost := ""
		if o.Cost > 0 {
			cost = o.Cost.String()
		}
		t.add(o.SKU, o.Type, o.Name, o.Location.Country, o.Location.City, days, o.Stock, o.Count, cost)
	}
	return t.print(k)
}
