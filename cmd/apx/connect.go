package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"agentproxy/domain/connect"
)

// configured is what the service answers about a client.
type configured struct {
	Client  string          `json:"client"`
	Snippet string          `json:"snippet"`
	Proxies []workerAddress `json:"proxies"`
}

// workerAddress is the proxy of a session or of a worker. An address that the session does not
// offer is empty.
type workerAddress struct {
	Worker *string `json:"worker"`
	HTTP   string  `json:"http_url"`
	SOCKS  string  `json:"socks5_url"`
	connect.Proxy
}

// configured asks how a client is configured with the session, or with workers of it.
func (o one) configured(ctx context.Context, client, workers, country string) (json.RawMessage, configured, error) {
	service, err := open()
	if err != nil {
		return nil, configured{}, err
	}
	query := url.Values{}
	for name, value := range map[string]string{"client": client, "workers": workers, "country": country} {
		if value != "" {
			query.Set(name, value)
		}
	}
	path := "/sessions/" + url.PathEscape(o.Session) + "/connect"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var d configured
	data, err := service.read(ctx, "GET", path, "", nil, &d)
	if err == nil && len(d.Proxies) == 0 {
		err = errors.New("the service cannot read the proxy at the moment; try again")
	}
	return data, d, err
}

// ofWorker returns the proxies of the session, or the one of a worker.
func (o one) ofWorker(ctx context.Context, worker string) ([]workerAddress, error) {
	if worker != "" {
		worker = connect.WorkersText([]string{worker})
	}
	_, d, err := o.configured(ctx, "env", worker, "")
	return d.Proxies, err
}

type connectCommand struct {
	one
	Client  string `default:"curl" help:"curl, requests, httpx, aiohttp, undici, fetch, axios, playwright, puppeteer, selenium, go or env."`
	Workers string `help:"How many workers, or their names separated by commas."`
	Country string `help:"Of the exits; ISO 3166-1 alpha-2."`
	Reveal  bool   `help:"Show the password."`
}

// Run prints what to write so that a client uses the session.
func (o connectCommand) Run(ctx context.Context, c *options, s streams) error {
	data, d, err := o.configured(ctx, o.Client, o.Workers, o.Country)
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
func (o envCommand) Run(ctx context.Context, c *options, s streams) error {
	list, err := o.ofWorker(ctx, o.Worker)
	if err != nil {
		return err
	}
	proxies := make([]connect.Proxy, len(list))
	for i, p := range list {
		proxies[i] = p.Proxy
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
	SOCKS  bool   `name:"socks" help:"The SOCKS5 address."`
}

// Run prints the address of the proxy, of a static session one a line.
func (o urlCommand) Run(ctx context.Context, c *options, s streams) error {
	list, err := o.ofWorker(ctx, o.Worker)
	if err != nil {
		return err
	}
	urls := make([]string, len(list))
	for i, p := range list {
		urls[i] = p.HTTP
		if o.SOCKS {
			urls[i] = p.SOCKS
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
