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

// MaskIn masks the password in a text that was written for the proxy: as it is, as an address and as JSON has it.
func (p Proxy) MaskIn(text string) string {
	_, escaped, _ := strings.Cut(url.UserPassword("", p.Password).String(), ":")
	return strings.NewReplacer(escaped, Mask, strings.Trim(quoted(p.Password), `"`), Mask, p.Password, Mask).Replace(text)
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

// Variable is a variable of the environment.
type Variable struct{ Name, Value string }

// Variables returns what programs read of their environment to go through a proxy, for every target: what excludes
// hosts from it is empty.
func Variables(p Proxy) []Variable {
	var list []Variable
	for _, name := range []string{"PROXY_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "all_proxy"} {
		list = append(list, Variable{name, p.URL()})
	}
	return append(list, Variable{"NO_PROXY", ""}, Variable{"no_proxy", ""}, Variable{"NODE_USE_ENV_PROXY", "1"},
		Variable{"PROXY_SERVER", p.Protocol + "://" + p.Address()}, Variable{"PROXY_HOST", p.Host},
		Variable{"PROXY_PORT", strconv.Itoa(p.Port)}, Variable{"PROXY_USERNAME", p.Username},
		Variable{"PROXY_PASSWORD", p.Password})
}

// Env returns what a POSIX shell evaluates to set the Variables of the first proxy, and the addresses of all of
// them in PROXY_URLS, separated by spaces.
func Env(list []Proxy) string {
	if len(list) == 0 {
		return ""
	}
	set := Variables(list[0])
	if len(list) > 1 {
		set = append(set, Variable{"PROXY_URLS", strings.TrimSpace(strings.ReplaceAll(URLs(list), "\n", " "))})
	}
	var b strings.Builder
	for _, v := range set {
		b.WriteString("export " + v.Name + "=" + Quote(v.Value) + "\n")
	}
	return b.String()
}

// Quote returns a text as a word of a POSIX shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
