package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"go.uber.org/fx"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/system"
	"agentproxy/cmd/internal/version"
	"agentproxy/cmd/internal/wire"
)

type serveCmd struct{}

// ballast is memory that is allocated and never touched, so it takes an address range and no memory. The
// garbage collector counts it as live and lets the heap grow by as much more between two collections. A
// service of few agents has so small a heap that collecting it took an eighth of a call's processor time.
const ballast = 8 << 20

// Run serves until SIGINT or SIGTERM.
func (serveCmd) Run(k *kit) error {
	settings, err := k.loader.Load()
	if err != nil {
		return err
	}
	log := logger(k.errOut, settings)
	if err := system.NoCoreFiles(); err != nil {
		log.Warn("core files cannot be turned off; they would hold secrets", "err", err)
	}
	held := make([]byte, ballast)
	defer runtime.KeepAlive(held)
	var gate *signin.Gate
	app := fx.New(wire.Service(settings, log), fx.Populate(&gate))
	if err := app.Err(); err != nil {
		return err
	}
	if err := app.Start(k.ctx); err != nil {
		return taken(err, settings)
	}
	welcome(k.out, settings, gate.Link)
	<-k.ctx.Done()
	log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), app.StopTimeout())
	defer cancel()
	if err := app.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// taken adds to the error of a port in use the variable that sets the address.
func taken(err error, s configfile.Settings) error {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Addr == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	for _, l := range []struct{ addr, variable string }{
		{s.HTTPAddr, "AGENTPROXY_HTTP_ADDR"}, {s.GatewayAddr, "AGENTPROXY_GATEWAY_ADDR"},
		{s.AdminAddr, "AGENTPROXY_ADMIN_ADDR"}, {s.TLS.RedirectAddr, "AGENTPROXY_HTTP_REDIRECT_ADDR"},
	} {
		// The address in the error is resolved: localhost is 127.0.0.1 there.
		if a, wrong := net.ResolveTCPAddr("tcp", l.addr); wrong == nil && a.String() == op.Addr.String() {
			return fmt.Errorf("%w; stop what listens there, or choose another address with %s", err, l.variable)
		}
	}
	return err
}

// logger returns the service's logger: text on a terminal and JSON elsewhere,
// unless the settings choose one.
func logger(w io.Writer, s configfile.Settings) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo // Load has refused any other text
	}
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "text" || s.LogFormat == "auto" && terminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration { // as in text: a number alone has no unit
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const hello = `agentproxy {version} is ready

  API        {api}/v1
  reference  {api}/docs
  console    {api}/console (sign in with an API key)
  operator   {admin}
  gateway    {gateway} (HTTP proxy and SOCKS5)
  database   {database}
  payments   {payments}
  mode       {mode}

`

const (
	first = `Register, create a session, and reach a server through it:

`
	register = `  KEY=$(curl -s {api}/v1/account/register -d '{"name":"my first agent"}'` +
		` | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
  curl -s {api}/v1/products -H "X-API-Key: $KEY"
`
	browse = `  PROXY=$(curl -s {api}/v1/sessions -H "X-API-Key: $KEY" ` +
		`-d '{"type":"dynamic","config":{"product_no":"dyn_fast_1","traffic_gb":1}}' | sed 's/.*"full_url":"\([^"]*\)".*/\1/')
  curl -s -x "${PROXY:?}" {target}
`
)

// databaseOf names the database without its URL, which may hold a password.
func databaseOf(s configfile.Settings) string {
	if s.DatabasePath == "" {
		return "PostgreSQL"
	}
	return s.DatabasePath
}

// entry returns where the operator signs in, and by what. In development mode that is a link that signs in.
func entry(s configfile.Settings, link func() string) string {
	at := adminURL(s.AdminAddr)
	switch {
	case s.Dev:
		return at + link() + " (signs you in once, within 5 minutes; agentproxy admin token prints the token)"
	case s.AdminPassword != "":
		return at + " (as operator, with AGENTPROXY_ADMIN_PASSWORD)"
	case s.DatabasePath != "":
		return at + " (with the token in " + wire.AdminFile(s.DatabasePath) + ")"
	}
	return at + " (with the token that agentproxy admin token prints)"
}

// welcome prints the first commands to run, ready to be pasted. link makes a link that signs in.
func welcome(w io.Writer, s configfile.Settings, link func() string) {
	mode, target := "production: loopback and private targets are refused", "https://example.com/"
	if s.Dev {
		mode, target = "development: loopback targets are open", s.PublicURL+"/v1/ip"
	}
	if s.RegisterLimit == 0 {
		mode += ", registration is unlimited"
	}
	text := hello + first + register + browse + "\n"
	if s.Catalog.WithoutEmbedded { // the operator's own products need orders of their own
		text = hello + "Register, and see what is sold:\n\n" + register + "\n"
	}
	fmt.Fprint(w, strings.NewReplacer("{version}", version.String(), "{api}", s.PublicURL,
		"{admin}", entry(s, link), "{gateway}", net.JoinHostPort(s.PublicHost, strconv.Itoa(s.PublicPort)),
		"{database}", databaseOf(s),
		"{payments}", paymentsText(s), "{mode}", mode, "{target}", target).Replace(text))
}

// adminURL returns the address of the operator's pages for a browser on this host.
func adminURL(listens string) string {
	host, port, _ := net.SplitHostPort(listens)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// paymentsText describes where payments come from.
func paymentsText(s configfile.Settings) string {
	if s.Payments.Off {
		return "off: recharges are refused; set AGENTPROXY_TRON_XPUB to be paid in USDT"
	}
	if s.Payments.AccountKey == "" {
		return "development chain, no real money: agentproxy devchain send --to ADDRESS --amount 12.50"
	}
	return "USDT on " + s.Payments.Network
}
