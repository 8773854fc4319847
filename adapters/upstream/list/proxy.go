package list

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"agentproxy/domain/session"
)

var (
	errForm       = errors.New("must be host:port, host:port:user:password, user:password@host:port or a URL")
	errScheme     = errors.New("the scheme must be http, https, socks5 or socks5h")
	errPath       = errors.New("a URL of a proxy has no path, query or fragment")
	errEscape     = errors.New("the user info of the URL has a wrong percent escape")
	errAmbiguous  = errors.New("both sides of @ may be host:port; write a URL such as http://user:password@host:port")
	errPassword   = errors.New("has a user name without a password")
	errCredential = errors.New("user name and password must be 1 to 255 bytes each")
)

// hostName is a DNS name, with the underscores that some have.
var hostName = regexp.MustCompile(
	`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)

// maxCredential is the longest user name or password that SOCKS5 can carry (RFC 1929).
const maxCredential = 255

var schemes = map[string]session.Protocol{
	"http": session.HTTP, "https": session.HTTP, "socks5": session.SOCKS5, "socks5h": session.SOCKS5,
}

// parseProxy reads the first word of a line.
func parseProxy(word string) (l Line, err error) {
	scheme, rest, isURL := strings.Cut(word, "://")
	if !isURL {
		rest = word
	} else if l.Protocol = schemes[strings.ToLower(scheme)]; l.Protocol == "" {
		return l, errScheme
	}
	if isURL {
		if rest = strings.TrimSuffix(rest, "/"); strings.ContainsAny(rest, "/?#") && !strings.Contains(rest, "@") {
			return l, errPath
		}
	}
	if !strings.ContainsAny(rest, ":@") { // the same forms with another separator
		for _, sep := range []string{"|", ","} {
			if strings.Contains(rest, sep) {
				rest = strings.ReplaceAll(rest, sep, ":")
				break
			}
		}
	}
	c, err := split(rest, isURL)
	if err != nil {
		return l, err
	}
	user, password := c.user, c.password
	if isURL && strings.Contains(rest, "@") {
		var err1, err2 error
		user, err1 = url.PathUnescape(user)
		password, err2 = url.PathUnescape(password)
		if errors.Join(err1, err2) != nil {
			return l, errEscape
		}
	}
	l.Host, l.Port, l.User, l.Password = c.host, c.port, user, password
	switch {
	case (user == "") != (password == "") && user != "":
		return l, errPassword
	case (user == "") != (password == ""), len(user) > maxCredential, len(password) > maxCredential:
		return l, errCredential
	case !visible(user), !visible(password), strings.Contains(user, ":"):
		return l, errControl
	}
	return l, nil
}

// address is a host and a port. rank is how much the host looks like one: 3 an IP
// address, 2 localhost or a name with dots, 1 any other name, 0 none at all.
type address struct {
	host string
	port uint16
	rank int
}

// split separates address and credential, by which of the parts are host and port.
func split(text string, isURL bool) (c candidate, err error) {
	usual, other := addressFirst(text), addressLast(text)
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		first := strings.IndexByte(text, '@')
		usual, other = besides(text[at+1:], text[:at]), besides(text[:first], text[first+1:])
		if isURL {
			other = candidate{}
		}
	}
	switch {
	case usual.rank == 0 && other.rank == 0:
		return c, errForm
	case other.rank > usual.rank:
		return other, nil
	case other.rank == usual.rank && usual.rank > 1:
		return c, errAmbiguous
	}
	return usual, nil
}

// candidate is one way to read a proxy; rank 0 if it cannot be read so.
type candidate struct {
	address
	user, password string
}

// besides reads host:port, and user:password on the other side of the "@".
func besides(addr, credential string) candidate {
	a, rest, ok := cutAddress(addr)
	if !ok || rest != "" {
		return candidate{}
	}
	user, password, _ := strings.Cut(credential, ":")
	return candidate{a, user, password}
}

// addressFirst reads host:port and host:port:user:password.
func addressFirst(text string) candidate {
	a, rest, ok := cutAddress(text)
	if !ok {
		return candidate{}
	}
	user, password, _ := strings.Cut(rest, ":")
	return candidate{a, user, password}
}

// addressLast reads user:password:host:port.
func addressLast(text string) candidate {
	user, rest, ok := strings.Cut(text, ":")
	if !ok {
		return candidate{}
	}
	port := strings.LastIndexByte(rest, ':')
	if port < 0 {
		return candidate{}
	}
	host := strings.LastIndexByte(rest[:port], ':')
	if strings.HasSuffix(rest[:port], "]") {
		host = strings.LastIndexByte(rest[:port], '[') - 1
	}
	if host < 0 || rest[host] != ':' {
		return candidate{}
	}
	a, more, ok := cutAddress(rest[host+1:])
	if !ok || more != "" || user == "" {
		return candidate{}
	}
	return candidate{a, user, rest[:host]}
}

// cutAddress reads host:port at the beginning of a text, and returns what follows after
// another colon.
func cutAddress(text string) (a address, rest string, ok bool) {
	host, after, found := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		host, after, found = strings.Cut(text[1:], "]:")
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() || ip.Zone() != "" {
			return a, "", false
		}
	}
	if !found {
		return a, "", false
	}
	port, rest, _ := strings.Cut(after, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' {
		return a, "", false
	}
	a = address{host: host, port: uint16(n), rank: rank(host)}
	return a, rest, a.rank > 0
}

func rank(host string) int {
	switch _, err := netip.ParseAddr(host); {
	case err == nil:
		return 3
	case len(host) > 253 || !hostName.MatchString(host):
		return 0
	case host == "localhost" || strings.Contains(host, ".") && strings.Trim(host, "0123456789.") != "":
		return 2
	}
	if strings.Trim(host, "0123456789.") == "" { // neither an address nor a name
		return 0
	}
	return 1
}
