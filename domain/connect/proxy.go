// Package connect writes the proxies of a session in the forms that programs take: addresses,
// variables of a shell, and what clients are configured with. It does no IO.
package connect

import (
	"net/url"
	"strconv"
	"strings"
)

// Proxy is one proxy with its credentials.
type Proxy struct {
	Protocol string `json:"protocol"` // http or socks5
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// Mask is shown in place of a password.
const Mask = "***"

// Masked returns the proxy without its password.
func (p Proxy) Masked() Proxy {
	p.Password = Mask
	return p
}

// Address returns host:port, an IPv6 address in brackets.
func (p Proxy) Address() string {
	host := p.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(p.Port)
}

// URL returns the address with the credentials. Mask stays readable.
func (p Proxy) URL() string {
	user := url.UserPassword(p.Username, p.Password).String()
	if p.Password == Mask {
		user = url.User(p.Username).String() + ":" + Mask
	}
	return p.Protocol + "://" + user + "@" + p.Address()
}

// URLs returns the address of each proxy, one a line.
func URLs(list []Proxy) string {
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.URL())
		b.WriteByte('\n')
	}
	return b.String()
}

// Env returns what a POSIX shell evaluates to set the variables that clients read, for the first
// proxy, and the addresses of all of them in PROXY_URLS, separated by spaces.
func Env(list []Proxy) string {
	if len(list) == 0 {
		return ""
	}
	p := list[0]
	var b strings.Builder
	set := func(name, value string) {
		b.WriteString("export " + name + "=" + Quote(value) + "\n")
	}
	for _, name := range []string{"PROXY_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "all_proxy"} {
		set(name, p.URL())
	}
	set("PROXY_SERVER", p.Protocol+"://"+p.Address())
	set("PROXY_HOST", p.Host)
	set("PROXY_PORT", strconv.Itoa(p.Port))
	set("PROXY_USERNAME", p.Username)
	set("PROXY_PASSWORD", p.Password)
	if len(list) > 1 {
		set("PROXY_URLS", strings.TrimSpace(strings.ReplaceAll(URLs(list), "\n", " ")))
	}
	return b.String()
}

// Quote returns a text as a word of a POSIX shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
