package upstream

import (
	"cmp"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/iproyal"
	"agentproxy/adapters/upstream/list"
	"agentproxy/adapters/upstream/proxycheap"
	"agentproxy/adapters/upstream/proxyseller"
	"agentproxy/adapters/upstream/proxyssx"
	"agentproxy/adapters/upstream/webshare"
	"agentproxy/ports"
)

// made returns a provider or an error. It keeps a nil pointer out of the interface.
func made[P ports.Provider](p P, err error) (ports.Provider, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

func makeGateway(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(gateway.New(gateway.Config{Name: s.Name, Profile: o["profile"], BaseURL: s.BaseURL,
		Login: gateway.Login{Username: o["username"], Password: s.Secrets["password"], Zone: o["zone"], Package: o["package"],
			Network: o["network"], Numbers: o["numbers"], Host: o["host"], Port: o["port"], Protocol: o["protocol"],
			State: o["state"], ASN: o["asn"], TLS: o["tls"], Strict: o["strict"], Places: s.Locations},
		Custom: gateway.Custom{HTTPPort: o["http_port"], SOCKS5Port: o["socks5_port"], User: o["user_template"],
			Password: o["password_template"], CountryCase: o["country_case"], CityGap: o["city_gap"],
			Separators: o["separators"], TokenAlphabet: o["token_alphabet"], TokenLength: o["token_length"],
			TTLUnit: o["ttl_unit"], TTLMin: o["ttl_min"], TTLMax: o["ttl_max"]}}, log))
}

func makeProxySSX(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxyssx.New(proxyssx.Config{Name: s.Name, BaseURL: s.BaseURL, APIKey: s.Secrets["api_key"],
		Username: o["username"], Network: o["network"], Tier: o["tier"], Host: o["host"], Port: o["port"],
		Protocol: o["protocol"], Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeList(s Spec, log *slog.Logger) (ports.Provider, error) {
	c, err := pool(s, log)
	c.File, c.URL, c.Dir = s.Options["file"], s.Secrets["url"], s.Dir
	p, err2 := list.New(c)
	if s.BaseURL != "" {
		err2 = errors.Join(err2, errors.New("base_url: the kind has no API"))
	}
	return made(p, errors.Join(err, err2))
}

func makeWebshare(s Spec, log *slog.Logger) (ports.Provider, error) {
	c, err := pool(s, log)
	p, err2 := webshare.New(webshare.Config{BaseURL: s.BaseURL, Key: s.Secrets["key"], Plan: s.Options["plan"],
		Replace: s.Options["replace"], PerSecond: s.PerSecond, Timeout: s.Timeout, List: c})
	return made(p, errors.Join(err, err2))
}

// pool returns how a list is sold.
func pool(s Spec, log *slog.Logger) (c list.Config, err error) {
	o := s.Options
	reload, err1 := minutes("reload_minutes", o)
	recheck, err2 := minutes("probe_minutes", o)
	if len(s.Locations) > 0 {
		err = errors.New("locations: the kind has no ids of places")
	}
	c = list.Config{Name: s.Name, SoldAs: o["sold_as"], Protocol: o["protocol"], Country: o["country"],
		Echo: cmp.Or(o["echo"], s.EchoURL), Reload: reload, Recheck: recheck, Store: s.Store, Log: log}
	return c, errors.Join(err1, err2, err)
}

// minutes returns the time of an option, 0 if it is absent.
func minutes(name string, options map[string]string) (time.Duration, error) {
	text := options[name]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1440 {
		return 0, errors.New("options." + name + " must be 1 to 1440")
	}
	return time.Duration(n) * time.Minute, nil
}

func makeIPRoyal(s Spec, log *slog.Logger) (ports.Provider, error) {
	return made(iproyal.New(iproyal.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"],
		ResidentialKey: s.Secrets["residential_key"], Gateway: s.Options["gateway"], Answers: s.Options["answers"],
		Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeProxySeller(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxyseller.New(proxyseller.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"],
		Section: o["section"], Purpose: o["purpose"], Host: o["host"], Port: o["port"], Locations: s.Locations,
		PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeProxyCheap(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxycheap.New(proxycheap.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"],
		Secret: s.Secrets["secret"], CallbackSecret: s.Secrets["callback_secret"], Service: o["service"], Plan: o["plan"],
		ISP: o["isp"], BalanceUnit: o["balance_unit"], Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout},
		log))
}
