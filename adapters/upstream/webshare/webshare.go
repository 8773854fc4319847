// Package webshare sells the proxies of a plan at Webshare, as the account lists them. The
// plan is bought by hand: ordering over the API needs a captcha.
//
// https://apidocs.webshare.io: lists are {count,next,previous,results}, errors {detail,code};
// 60 calls a minute for lists and 240 for the others; after a 429 a minute must pass.
package webshare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const (
	apiURL        = "https://proxy.webshare.io/api"
	listPerSecond = 1 // of 60 a minute; the other calls may be 4
	rateLimitRest = time.Minute
	pageSize      = 100
	maxPages      = list.MaxLines / pageSize
	replacedPages = 5 // of the newest replacements
)

// Config is an account as the operator writes it, and how its proxies are sold.
type Config struct {
	kind.Common
	Key     string        `secret:"key" required:"true" help:"the API key of the account"`
	Plan    string        `option:"plan" help:"the number of the plan, of an account with several; default: its default"`
	Replace bool          `option:"replace" help:"true: as often as the plan allows, the seller replaces sold proxies that fail, and those that agents want replaced while no other is free"`
	Reload  time.Duration `option:"reload_minutes" help:"how often the list is read, 1 to 1440; default 10"`
	list.Pool
	Now   func() time.Time
	Probe func(context.Context, list.Line) (list.Probe, error) // nil: through the Echo
}

// Kind is the kind of these providers.
var Kind = kind.Of("webshare", New)

// New returns a provider, or an error that names every invalid setting.
func New(c Config) (ports.Provider, error) {
	var faults []error
	if _, err := strconv.ParseUint(c.Plan, 10, 63); c.Plan != "" && err != nil {
		faults = append(faults, errors.New("options.plan must be the number of a plan"))
	}
	now := c.Now
	if now == nil {
		now = time.Now
	}
	s := &source{plan: c.Plan, now: now, every: cmp.Or(c.Reload, 10*time.Minute), log: c.Log,
		moved: map[string]string{}, asked: map[string]time.Time{}}
	api := kind.API(&c, apiURL)
	api.Header, api.Explain = http.Header{"Authorization": {"Token " + c.Key}}, explain
	api.PerSecond = cmp.Or(c.PerSecond, listPerSecond)
	s.api = rest.New(api)
	sold := list.Config{Common: c.Common, Pool: c.Pool, Source: s, Now: c.Now, Probe: c.Probe}
	if c.Replace {
		sold.Source = replacing{s}
	}
	p, err := list.New(sold)
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	return p, nil
}

// explain classifies the errors that the seller documents.
func explain(status int, header http.Header, body []byte) *procurement.Error {
	var e struct{ Detail, Code string }
	if status < 400 || json.Unmarshal(body, &e) != nil || e.Detail == "" {
		if status == http.StatusTooManyRequests {
			return &procurement.Error{Class: procurement.RateLimited, Reason: "too many calls", RetryAfter: rateLimitRest}
		}
		return nil
	}
	reason := rest.OneLine(e.Code + ": " + e.Detail)
	class := map[int]procurement.Class{http.StatusUnauthorized: procurement.Auth, http.StatusForbidden: procurement.Auth,
		http.StatusNotFound: procurement.NotFound, http.StatusTooManyRequests: procurement.RateLimited,
		http.StatusBadRequest: procurement.Invalid}[status]
	switch e.Code {
	case "not_enough_replacements_in_subscription", "proxies_removed_doesnt_match_added":
		class = procurement.OutOfStock
	case "active_replacement":
		class = procurement.Conflict
	}
	if class == "" {
		return nil
	}
	err := procurement.Refuse(class, reason)
	if class == procurement.RateLimited {
		err.RetryAfter = rateLimitRest
	}
	return err
}

// source is the list of the account.
type source struct {
	api   *rest.Client
	plan  string
	now   func() time.Time
	every time.Duration
	log   *slog.Logger
	turn  sync.Mutex // one exchange at a time

	mu      sync.Mutex
	next    time.Time
	hosts   map[string]string // keys of the lines that were listed, with their address
	moved   map[string]string // keys of lines, with that of the line in their place
	report  map[string]int
	openKey string               // of the line that it replaces
	open    int64                // id of the replacement that is under way; 0: none
	asked   map[string]time.Time // when a line was, by its key
	refused time.Time            // when a replacement was refused last
}

// query returns the parameters of a call, the plan included.
func (s *source) query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if s.plan != "" {
		q.Set("plan_id", s.plan)
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Due reports whether the period, or the pause after a failure, is over.
func (s *source) Due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.next)
}

// proxy is a proxy of the account. The address is null on plans of residential exits.
type proxy struct {
	ID       string  `json:"id"`
	Username string  `json:"username"`
	Password string  `json:"password"`
	Address  *string `json:"proxy_address"`
	Port     uint16  `json:"port"`
	Country  string  `json:"country_code"`
}

// page is one page of a list.
type page[T any] struct {
	Count   int     `json:"count"`
	Next    *string `json:"next"`
	Results []T     `json:"results"`
}

// all reads the pages of a list up to a number of pages.
func all[T any](ctx context.Context, s *source, path string, pages int, pairs ...string) (list []T, err error) {
	for n := 1; n <= pages; n++ {
		var p page[T]
		q := s.query(append(pairs, "page", strconv.Itoa(n), "page_size", strconv.Itoa(pageSize))...)
		if err := s.api.Call(ctx, rest.Safely, http.MethodGet, path+q, nil, &p); err != nil {
			return nil, err
		}
		list = append(list, p.Results...)
		if p.Next == nil || len(p.Results) == 0 {
			return list, nil
		}
	}
	return list, nil
}

// Load reads the list of the account, what was replaced, the plan and its usage.
func (s *source) Load(ctx context.Context) ([]list.Line, bool, error) {
	s.rest(time.Minute)
	found, err := all[proxy](ctx, s, "/v2/proxy/list/", maxPages, "mode", "direct")
	if err != nil {
		return nil, false, s.failed(err)
	}
	lines, err := linesOf(found)
	if err != nil {
		return nil, false, err
	}
	replaced, err := all[replacement](ctx, s, "/v2/proxy/list/replaced/", replacedPages, "ordering", "-created_at")
	if err != nil {
		return nil, false, s.failed(err)
	}
	s.follow(lines, replaced)
	if err := s.account(ctx); err != nil {
		return nil, false, s.failed(err)
	}
	s.rest(s.every)
	return lines, true, nil
}

// rest sets when the next load is due.
func (s *source) rest(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = s.now().Add(d)
}

// failed keeps the pause that the seller asks for.
func (s *source) failed(err error) error {
	if e, ok := errors.AsType[*procurement.Error](err); ok && e.RetryAfter > 0 {
		s.rest(e.RetryAfter)
	}
	return err
}

// linesOf returns the proxies as lines, in the order of the account.
func linesOf(found []proxy) (lines []list.Line, err error) {
	for i, p := range found {
		if p.Address == nil {
			return nil, procurement.Refuse(procurement.Unsupported,
				"the plan has residential proxies, which are not listed; use the gateway profile webshare")
		}
		ip, err := netip.ParseAddr(*p.Address)
		if err != nil || p.Port == 0 || p.Username == "" || p.Password == "" {
			return nil, procurement.Refuse(procurement.Temporary, "a proxy of the list is not of a shape that is known")
		}
		lines = append(lines, list.Line{No: i + 1, Protocol: session.HTTP, Host: ip.String(), Port: p.Port,
			User: p.Username, Password: p.Password, Country: countryOf(p.Country)})
	}
	if len(lines) == 0 {
		return nil, procurement.Refuse(procurement.Temporary, "the plan has no proxies at the moment")
	}
	return lines, nil
}

// countryOf returns a code, or nothing for ZZ, which the seller uses for any.
func countryOf(code string) string {
	if code == "ZZ" {
		return ""
	}
	return code
}
