package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentproxy/adapters/apiclient"
	"agentproxy/domain/connect"
)

// configured asks how a client is configured with the session, or with workers of it. An address that the session
// does not offer is empty.
func (o one) configured(
	ctx context.Context, service *service, in apiclient.ConnectSession,
) (json.RawMessage, apiclient.Connect, error) {
	var kept apiclient.Answer
	d, err := service.ConnectSession(ctx, o.Session, in, apiclient.Keep(&kept))
	if err == nil && len(d.Proxies) == 0 {
		err = errors.New("the service cannot read the proxy at the moment; try again")
	}
	return kept.Data(), d, err
}

// ofWorker returns the proxies of the session, or the one of a worker.
func (o one) ofWorker(ctx context.Context, service *service, worker string) ([]apiclient.Connected, error) {
	if worker != "" {
		worker = connect.WorkersText([]string{worker})
	}
	_, d, err := o.configured(ctx, service, apiclient.ConnectSession{Client: "env", Workers: worker})
	return d.Proxies, err
}

// proxyOf returns the proxy of an answer.
func proxyOf(p apiclient.Connected) connect.Proxy {
	return connect.Proxy{Protocol: string(p.Protocol), Host: p.Host, Port: p.Port, Username: p.Username,
		Password: p.Password}
}

// secureURL returns the address of a proxy with TLS, empty if it takes none.
func secureURL(p apiclient.Connected) string {
	if p.HTTPSURL == nil {
		return ""
	}
	return *p.HTTPSURL
}

type connectCommand struct {
	one
	Client  string `default:"curl" help:"curl, requests, httpx, aiohttp, undici, fetch, axios, playwright, puppeteer, selenium, go or env."`
	Workers string `help:"How many workers, or their names separated by commas."`
	Country string `help:"Of the exits; ISO 3166-1 alpha-2."`
	Reveal  bool   `help:"Show the password."`

	Passport bool `help:"A browser shows the time zone and the locale of its exit, as measured."`
}

// Run prints what to write so that a client uses the session.
func (o connectCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	in := apiclient.ConnectSession{Client: o.Client, Workers: o.Workers, Country: o.Country, Passport: o.Passport}
	data, d, err := o.configured(ctx, service, in)
	if err != nil {
		return err
	}
	if !o.Reveal {
		if data, err = masked(data); err != nil {
			return err
		}
		if err := json.Unmarshal(data, &d); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s.out, data)
	}
	fmt.Fprintln(s.out, d.Snippet)
	if !o.Reveal {
		fmt.Fprintln(s.err, "apx: the password is hidden as ***; --reveal shows it")
	}
	return nil
}

type envCommand struct {
	one
	Worker string `help:"The proxy of a worker."`
}

// Run prints what a shell evaluates.
func (o envCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	list, err := o.ofWorker(ctx, service, o.Worker)
	if err != nil {
		return err
	}
	proxies := make([]connect.Proxy, len(list))
	for i, p := range list {
		proxies[i] = proxyOf(p)
	}
	if c.JSON {
		return printJSON(s.out, map[string]any{"proxies": proxies})
	}
	_, err = io.WriteString(s.out, connect.Env(proxies))
	return err
}

type urlCommand struct {
	one
	Worker string `help:"The proxy of a worker."`
	SOCKS  bool   `name:"socks" xor:"kind" help:"The SOCKS5 address."`
	TLS    bool   `name:"tls" xor:"kind" help:"The address with TLS to the proxy, https://."`
}

// Run prints the address of the proxy, of a static session one a line.
func (o urlCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	list, err := o.ofWorker(ctx, service, o.Worker)
	if err != nil {
		return err
	}
	urls := make([]string, len(list))
	for i, p := range list {
		urls[i] = p.HTTPURL
		switch {
		case o.SOCKS:
			urls[i] = p.SOCKS5URL
		case o.TLS:
			urls[i] = secureURL(p)
		}
		if urls[i] == "" && o.TLS {
			return errors.New("the session's proxy takes no TLS; leave out --tls")
		}
		if urls[i] == "" {
			return errors.New("the session offers only the other protocol; add --socks or leave it out")
		}
	}
	if c.JSON {
		return printJSON(s.out, map[string]any{"urls": urls})
	}
	_, err = fmt.Fprintln(s.out, strings.Join(urls, "\n"))
	return err
}
