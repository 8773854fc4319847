package chain

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
)

// TronConfig selects the network and its source. Empty fields have defaults.
type TronConfig struct {
	Network  string // tron-mainnet, tron-shasta or tron-nile
	BaseURL  string // of TronGrid, or of what serves /jsonrpc
	JSONRPC  bool   // a plain node: JSON-RPC is all that is used of it
	APIKey   string // of TronGrid
	Contract string // of the token, base58check; of 6 decimals
	// WitnessURL is of a second node that serves /jsonrpc; it must have every transfer
	// above WitnessAbove too before that is final, and smaller ones beyond ten times that an hour. Empty: there is none.
	WitnessURL   string
	WitnessAbove domain.Money
	Client       *http.Client  // redirects are never followed
	PerSecond    float64       // calls; 8 with a key and 2 without
	PerDay       float64       // calls in the long run; 40,000
	Burst        int           // calls above that, after a pause; 4,000
	Pause        time.Duration // after a first failure, 1 s; doubles up to a minute
	Suspended    time.Duration // after 403, 429 and 503 without a time; 30 s
	Logger       *slog.Logger
}

// tronNetworks are the public networks, their hosts and their USDT contracts.
var tronNetworks = map[string]struct{ host, contract string }{
	"tron-mainnet": {"api.trongrid.io", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
	"tron-shasta":  {"api.shasta.trongrid.io", "TG3XXyExBkPp9nzdajDZsozEu4BkaSJozs"},
	"tron-nile":    {"nile.trongrid.io", "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"},
}

// LogValue omits the key, and the path of the URL, in which some node vendors
// put a key.
func (c TronConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

// GoString omits the same from %#v.
func (c TronConfig) GoString() string { return c.String() }

// String omits the same.
func (c TronConfig) String() string {
	host := ""
	if u, err := url.Parse(c.BaseURL); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("%s at %q, contract %s, key set: %t", c.Network, host, c.Contract, c.APIKey != "")
}

// complete sets the defaults and refuses a configuration that would read other
// money than intended: the main network has one USDT, and no network is read
// from another's host. No message repeats the URL or the key.
func (c TronConfig) complete() (TronConfig, [20]byte, error) {
	known, ok := tronNetworks[c.Network]
	if !ok {
		return c, [20]byte{}, fmt.Errorf("network %q is none of tron-mainnet, tron-shasta and tron-nile", c.Network)
	}
	if c.BaseURL == "" {
		c.BaseURL = "https://" + known.host
	}
	if c.Contract == "" {
		c.Contract = known.contract
	}
	if c.Network == "tron-mainnet" && c.Contract != known.contract {
		return c, [20]byte{}, fmt.Errorf("contract %s is not USDT on %s; that is %s", c.Contract, c.Network, known.contract)
	}
	contract, err := decodeAddress(c.Contract)
	if err != nil {
		return c, contract, fmt.Errorf("contract %q: %w", c.Contract, err)
	}
	u, err := c.checkURL()
	if err != nil {
		return c, contract, err
	}
	host := strings.TrimSuffix(u.Hostname(), ".") // of the root, by which it is the same host
	for name, other := range tronNetworks {
		if name != c.Network && strings.EqualFold(host, other.host) {
			return c, contract, fmt.Errorf("%s is the host of %s, not of %s", other.host, name, c.Network)
		}
	}
	c.BaseURL = strings.TrimRight(u.String(), "/")
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, contract, errors.New("the API key has characters that are not allowed in a header")
	}
	switch {
	case c.PerSecond == 0 && c.APIKey != "":
		c.PerSecond = 8
	case c.PerSecond == 0:
		c.PerSecond = 2
	case !(c.PerSecond > 0) || math.IsInf(c.PerSecond, 0):
		return c, contract, fmt.Errorf("%v calls per second are none", c.PerSecond)
	}
	if c.PerDay <= 0 {
		c.PerDay = 40_000
	}
	if c.Burst <= 0 {
		c.Burst = 4_000
	}
	if c.Pause <= 0 {
		c.Pause = time.Second
	}
	if c.Suspended <= 0 {
		c.Suspended = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, contract, nil
}

var errBaseURL = errors.New("the base URL is not http or https with a host and nothing but a path behind it")

var errPlainHTTP = errors.New("the source of payments must be https: anyone who can change an answer on the way " +
	"credits money that was never paid; http is accepted for a loopback address alone")

// checkURL refuses http to another host.
func (c TronConfig) checkURL() (*url.URL, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errBaseURL
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, errPlainHTTP
	}
	return u, nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// newTronClient returns a client for calls to one host, few at a time.
func newTronClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: callTimeout,
	}}
}
