package upstream

import (
	"log/slog"

	"agentproxy/adapters/upstream/gateway"
	"agentproxy/adapters/upstream/iproyal"
	"agentproxy/adapters/upstream/proxycheap"
	"agentproxy/adapters/upstream/proxyseller"
	"agentproxy/adapters/upstream/proxyssx"
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
			Places: s.Locations}}, log))
}

func makeProxySSX(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxyssx.New(proxyssx.Config{Name: s.Name, BaseURL: s.BaseURL, APIKey: s.Secrets["api_key"], Username: o["username"],
		Network: o["network"], Tier: o["tier"], Host: o["host"], Port: o["port"], Protocol: o["protocol"], Locations: s.Locations,
		PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeIPRoyal(s Spec, log *slog.Logger) (ports.Provider, error) {
	return made(iproyal.New(iproyal.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"],
		ResidentialKey: s.Secrets["residential_key"], Gateway: s.Options["gateway"], Answers: s.Options["answers"],
		Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeProxySeller(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxyseller.New(proxyseller.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"], Section: o["section"],
		Purpose: o["purpose"], Host: o["host"], Port: o["port"], Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}

func makeProxyCheap(s Spec, log *slog.Logger) (ports.Provider, error) {
	o := s.Options
	return made(proxycheap.New(proxycheap.Config{Name: s.Name, BaseURL: s.BaseURL, Key: s.Secrets["key"], Secret: s.Secrets["secret"],
		CallbackSecret: s.Secrets["callback_secret"], Service: o["service"], Plan: o["plan"], ISP: o["isp"],
		BalanceUnit: o["balance_unit"], Locations: s.Locations, PerSecond: s.PerSecond, Timeout: s.Timeout}, log))
}
