package list

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Config is a list as the operator writes it.
type Config struct {
	kind.Common
	// URL is the address of the list, which may hold a credential. Source replaces it and the file.
	URL    string        `secret:"url" help:"the address of the list, in place of options.file; https"`
	File   string        `option:"file" help:"the file with the list, one proxy a line; a relative path is beside the configuration file"`
	Reload time.Duration `option:"reload_minutes" help:"how often the list of secrets.url is loaded again, 1 to 1440; default 10"`
	Pool
	Source Source
	// Trusted is set if the operator named the hosts; those of a download are checked.
	Trusted bool
	Now     func() time.Time
	Probe   func(context.Context, Line) (Probe, error) // nil: through the Echo
}

// Pool is how proxies of a list are sold, whatever lists them.
type Pool struct {
	SoldAs   string        `option:"sold_as" required:"true" help:"static (each proxy to one agent, for a time) or dynamic (their traffic, rotating)"`
	Protocol string        `option:"protocol" help:"http (default) or socks5, of proxies listed without a scheme"`
	Country  string        `option:"country" help:"the country of proxies listed without one"`
	Echo     string        `option:"echo" help:"URL that answers with the caller's address, and perhaps country; default: the service's own /v1/ip"`
	Recheck  time.Duration `option:"probe_minutes" help:"how often each proxy is tried, 1 to 1440; default 10"`
}

// Kind is the kind of lists of a file or a download.
var Kind = kind.Of("list", func(c Config) (ports.Provider, error) {
	p, err := New(c)
	if c.BaseURL != "" {
		err = errors.Join(err, errors.New("base_url: the kind has no API"))
	}
	return p, err
})

const defaultPeriod = 10 * time.Minute

// Validate returns an error that names every invalid setting.
func (c Config) Validate() error {
	_, err := c.seller()
	return err
}

// New returns a provider of addresses or of traffic, or the error of Validate. A file is
// read at once, so that its faults are known; a URL is called at the first use.
func New(c Config) (ports.Provider, error) {
	s, err := c.seller()
	if err != nil {
		return nil, err
	}
	if c.SoldAs == "dynamic" {
		return &Dynamic{s}, nil
	}
	return &Static{s}, nil
}

func (c Config) seller() (*seller, error) {
	s := &seller{name: c.Name, source: c.Source, trusted: c.Trusted,
		protocol: session.Protocol(cmp.Or(c.Protocol, "http")), country: strings.ToUpper(c.Country),
		recheck: cmp.Or(c.Recheck, defaultPeriod), now: c.Now, log: c.Log, probe: c.Probe}
	if s.now == nil {
		s.now = func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) } // as it is stored
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var faults []error
	fault := func(bad bool, text string) {
		if bad {
			faults = append(faults, errors.New(text))
		}
	}
	fault(c.SoldAs != "static" && c.SoldAs != "dynamic", "options.sold_as must be static or dynamic")
	fault(s.protocol != session.HTTP && s.protocol != session.SOCKS5, "options.protocol must be http or socks5")
	fault(s.country != "" && !country.Known(s.country), "options.country must be an ISO 3166-1 code such as US")
	fault(len(c.Locations) > 0, "locations: the kind has no ids of places")
	echo := cmp.Or(c.Echo, c.EchoURL)
	if echo != "" {
		_, err := newRemote(echo, 0, s.now)
		fault(err != nil && !strings.HasPrefix(echo, "http://"), "options.echo must be an http or https URL")
	}
	if c.Source == nil {
		faults = append(faults, c.open(s))
	}
	if s.probe == nil {
		s.probe = prober{echo: echo, protocol: s.protocol, trusted: s.trusted}.probe
	}
	if c.Store != nil {
		s.store = ports.Narrow(c.Store, func(tx ports.Tx) repos { return tx })
		s.stored = true
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}

// open creates the source of the configured place.
func (c Config) open(s *seller) error {
	switch {
	case (c.File == "") == (c.URL == ""):
		return errors.New("options.file is missing: name a file, or the address of the list in secrets.url, and not both")
	case c.File != "":
		path := c.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		s.trusted, s.source = true, &file{path: path}
		lines, _, err := s.source.Load(context.Background())
		if err == nil {
			s.pool.replace(s.withDefaults(lines))
		}
		return err
	}
	r, err := newRemote(c.URL, cmp.Or(c.Reload, defaultPeriod), s.now)
	if err == nil {
		s.source, s.trusted = r, r.loopback()
	}
	return err
}

// repos is the repositories that a list uses.
type repos interface {
	Claims() ports.Claims
}

// seller is what both kinds of providers have in common.
type seller struct {
	name     string
	source   Source
	trusted  bool
	protocol session.Protocol
	country  string
	recheck  time.Duration
	now      func() time.Time
	log      *slog.Logger
	probe    func(context.Context, Line) (Probe, error)
	store    ports.Unit[repos]
	stored   bool

	pool    pool
	loading sync.Mutex // one load at a time
	failed  atomic.Bool
	missing sync.Map // since when sold lines are not in the list: time.Time by key
	report  report
}

// Name returns the name that the operator chose.
func (s *seller) Name() string { return s.name }

// Ready returns false while no list could be loaded.
func (s *seller) Ready() bool { return !s.failed.Load() || s.pool.isLoaded() }

// Balance returns an unknown balance.
func (s *seller) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// withDefaults completes lines by what the operator states of all.
func (s *seller) withDefaults(lines []Line) []Line {
	for i := range lines {
		lines[i].Protocol = cmp.Or(lines[i].Protocol, s.protocol)
		lines[i].Country = cmp.Or(lines[i].Country, s.country)
	}
	return lines
}

// load takes over the list if it has changed. After an error the last good one stays.
func (s *seller) load(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.pool.isLoaded() && !s.source.Due(s.now()) {
		return nil
	}
	lines, changed, err := s.source.Load(ctx)
	if s.failed.Store(err != nil); err != nil || !changed {
		return err
	}
	added, removed := s.pool.replace(s.withDefaults(lines))
	s.log.Info("a list of proxies was loaded", "provider", s.name, "lines", len(lines), "added", added, "removed", removed)
	return nil
}

// firstProbes bounds the time that a call waits for lines that were never probed.
const firstProbes = 10 * time.Second

var errNotLoaded = procurement.Refuse(procurement.Temporary, "the list is not loaded")

// ready loads the list if there is none yet, and probes the lines that never were.
func (s *seller) ready(ctx context.Context) error {
	if !s.pool.isLoaded() {
		if err := s.load(ctx); err != nil {
			return refusal(err)
		}
	}
	if !s.pool.isLoaded() {
		return errNotLoaded
	}
	var fresh []*entry
	s.pool.view(func(lines []*entry, _ map[string]*entry) {
		for _, e := range lines {
			if e.probed.IsZero() {
				fresh = append(fresh, e)
			}
		}
	})
	if len(fresh) > 0 {
		bounded, cancel := context.WithTimeout(ctx, firstProbes)
		defer cancel()
		s.pool.probeAll(bounded, fresh, s.probe, s.now)
	}
	return ctx.Err()
}

// refusal returns an error of a source as one that proves that nothing was sold.
func refusal(err error) error {
	if e, ok := errors.AsType[*procurement.Error](err); ok {
		return e
	}
	return procurement.Refuse(procurement.Temporary, err.Error())
}

var errNoStore = procurement.Refuse(procurement.Temporary, "nothing can be sold without the service's database")

// all returns the claims on the lines; none without a store.
func (s *seller) all(ctx context.Context) (all []procurement.Claim, err error) {
	if !s.stored {
		return nil, nil
	}
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		all, err = tx.Claims().All(ctx, s.name)
		return err
	})
	return all, err
}

// update runs a unit of work on the claims.
func (s *seller) update(ctx context.Context, fn func(ctx context.Context, claims ports.Claims) error) error {
	if !s.stored {
		return errNoStore
	}
	return s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error { return fn(ctx, tx.Claims()) })
}

// reclaim runs a unit of work on the claims of an order. It gives change those of all orders and of this one, and
// stores what it returns in their place; nil leaves them. It returns what the order has then, NotFound for nothing.
func (s *seller) reclaim(ctx context.Context, order string,
	change func(all, own []procurement.Claim) ([]procurement.Claim, error),
) (own []procurement.Claim, err error) {
	err = s.update(ctx, func(ctx context.Context, claims ports.Claims) error {
		all, err := claims.All(ctx, s.name)
		if err != nil {
			return err
		}
		own = ofOrder(all, order)
		next, err := change(all, slices.Clone(own))
		if err != nil || next == nil {
			return err
		}
		if len(own) > 0 {
			if err := claims.Drop(ctx, s.name, order); err != nil {
				return err
			}
		}
		own = next
		return claims.Add(ctx, own)
	})
	if err == nil && len(own) == 0 {
		err = errNotSold
	}
	return own, err
}

var errNotSold = procurement.Refuse(procurement.NotFound, "no line is sold to this order")

// claimsOf returns the claims of an order, and NotFound if it has none. The list is loaded then.
func (s *seller) claimsOf(ctx context.Context, order string) (own []procurement.Claim, err error) {
	if !s.stored {
		return nil, errNoStore
	}
	err = s.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		own, err = tx.Claims().Of(ctx, s.name, order)
		return err
	})
	if err == nil && len(own) == 0 {
		err = errNotSold
	}
	if err != nil || s.pool.isLoaded() {
		return own, err
	}
	if err = s.load(ctx); err != nil {
		err = refusal(err)
	}
	return own, err
}

// found returns the order that Find looks for, none if it was not found.
func found(d procurement.Delivery, err error) ([]procurement.Delivery, error) {
	if procurement.ClassOf(err) == procurement.NotFound {
		return nil, nil
	}
	return []procurement.Delivery{d}, err
}

// Cancel gives the lines of an order back.
func (s *seller) Cancel(ctx context.Context, ref string) error {
	return s.update(ctx, func(ctx context.Context, claims ports.Claims) error { return claims.Drop(ctx, s.name, ref) })
}

// ofOrder returns the claims of one order among those of all.
func ofOrder(all []procurement.Claim, order string) (own []procurement.Claim) {
	for _, c := range all {
		if c.OrderID == order {
			own = append(own, c)
		}
	}
	return own
}
