package connect

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Client is a program or library that is configured with a proxy.
type Client struct {
	Name     string
	Language string
	// NoSOCKS explains why the client takes no SOCKS5 proxy with a password; empty: it does. The
	// proxies of the gateway take HTTP on the same port.
	NoSOCKS string
	// NoTLS explains why the client, or every version of it, does not reach a proxy by TLS; empty: it does.
	NoTLS string
	one   string // for one proxy
	many  string // for many workers
}

// Names returns the names of the clients, in the order of the documentation.
func Names() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.Name
	}
	return names
}

// Find returns a client by its name.
func Find(name string) (Client, bool) {
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return clients[i], true
}

// Adapt returns the proxy as the client can use it: one that takes no SOCKS5 gets the proxy's HTTP
// address, which is empty where the proxy offers SOCKS5 alone.
func (c Client) Adapt(p Proxy, httpURL string) (Proxy, error) {
	if c.NoSOCKS == "" || p.Protocol != "socks5" {
		return p, nil
	}
	u, err := url.Parse(httpURL)
	if err != nil || u.Host == "" {
		return Proxy{}, errors.New("cannot use this session, which offers SOCKS5 alone: " + c.NoSOCKS)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return Proxy{}, errors.New("cannot use this session: its address has no port")
	}
	password, _ := u.User.Password()
	return Proxy{u.Scheme, u.Hostname(), port, u.User.Username(), password}, nil
}

// ByTLS returns an HTTP proxy as one that is reached by TLS, if it has an address for that and the client can. The
// address has the same credentials, host and port.
func (c Client) ByTLS(p Proxy, httpsURL string) Proxy {
	if c.NoTLS == "" && httpsURL != "" && p.Protocol == "http" {
		p.Protocol = "https"
	}
	return p
}

// OnlyTLS returns the client and the proxy for a gateway that refuses what is not TLS: the address is that by TLS, and
// a snippet that not every version can use begins with the reason.
func (c Client) OnlyTLS(p Proxy) (Client, Proxy) {
	if c.NoTLS != "" && c.NoTLS != byForward {
		note := "# " + c.NoTLS + "\n"
		c.one, c.many, c.NoTLS = note+c.one, note+c.many, ""
	}
	p.Protocol = "https"
	return c, p
}

// Snippet returns the configuration of the client. The password is written as it is, so that a
// masked proxy gives a masked text.
func (c Client) Snippet(u Use) string {
	list := u.Proxies()
	p := list[0]
	text := c.one
	if len(list) > 1 {
		text = c.many
	}
	base := u.base() + workerWord
	before, after, _ := strings.Cut(Proxy{p.Protocol, p.Host, p.Port, base + "\x00", p.Password}.URL(), "%00")
	names := make([]string, len(u.Workers))
	for i, name := range u.Workers {
		names[i] = quoted(name)
	}
	return strings.NewReplacer("{URL}", p.URL(), "{SERVER}", p.Protocol+"://"+p.Address(), "{HOSTPORT}", p.Address(),
		"{USER}", quoted(p.Username), "{PASSWORD}", quoted(p.Password), "{BASE}", quoted(base), "{BEFORE}", before,
		"{AFTER}", after, "{WORDS}", strings.Join(u.Workers, " "), "{LIST}", strings.Join(names, ", "),
		"{SESSION}", u.Session, "{PASSPORT}", c.passport(u.Passport)).Replace(text)
}

// quoted writes a text as JSON, without the escapes for HTML.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""` // not for a string
	}
	return strings.TrimSuffix(b.String(), "\n")
}
