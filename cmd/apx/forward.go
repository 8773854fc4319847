package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
)

type forwardCommand struct {
	one
	Worker string `help:"The exit of a worker."`
	Listen string `default:"127.0.0.1:0" help:"Where; port 0 takes a free one. Who reaches it uses the session: on loopback every user and program of this host. Another host than loopback has to be named."`
}

// Run serves until the program is interrupted.
func (o forwardCommand) Run(ctx context.Context, c *options, s streams, service *service) error {
	list, err := o.ofWorker(ctx, service, o.Worker)
	if err != nil {
		return err
	}
	proxy, err := url.Parse(cmp.Or(secureURL(list[0]), list[0].HTTPURL, list[0].SOCKS5URL))
	if err != nil {
		return errors.New("the service returned no proxy address")
	}
	f := newForwarder(proxy)
	if err := f.untrusted(ctx); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("%w: --listen takes HOST:PORT", errMisuse)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	at := l.Addr().String()
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		fmt.Fprintf(s.err, "apx: anyone who reaches %s uses the session without a password\n", at)
	}
	if c.JSON {
		err = printJSON(s.out, map[string]string{"listen": at, "http_proxy": "http://" + at,
			"socks_proxy": "socks5h://" + at})
	} else {
		_, err = fmt.Fprintf(s.out, "set the proxy http://%s or socks5h://%s, without a password; end with Ctrl-C\n", at, at)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return f.serve(ctx, l)
}
