package mcp

import (
	"context"
	"net/url"
	"time"

	"agentproxy/domain/connect"
)

type connected struct {
	SessionID string       `json:"session_id"`
	Protocol  string       `json:"protocol"`
	Host      string       `json:"host"`
	Port      int          `json:"port"`
	Username  string       `json:"username"`
	Password  string       `json:"password"`
	IPs       []ipAnswer   `json:"ips,omitempty"`
	MoreIPs   int          `json:"more_ips,omitempty"`
	HTTPSURL  string       `json:"https_url,omitempty"`
	Client    string       `json:"client"`
	Snippet   string       `json:"snippet"`
	Secret    secretAnswer `json:"secret"`
}

type ipAnswer struct {
	IP       string `json:"ip"`
	Username string `json:"username"`
}

// secretAnswer names the place from which a program reads the password.
type secretAnswer struct {
	Link      string     `json:"link,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	File      string     `json:"file,omitempty"`
	Use       string     `json:"use"`
}

var unknownProxy = &refusal{Code: "SERVICE_UNAVAILABLE", Retryable: true,
	Message: "the proxy is not known at the moment"}

// mostIPs bounds the addresses that connect lists; all of them are behind the link.
const mostIPs = 20

// mostWorkers bounds the workers of one answer.
const mostWorkers = 100

type connecting struct {
	SessionID string `json:"session_id"`
	Client    string `json:"client"`
	Workers   string `json:"workers"`
	Country   string `json:"country"`
	Reveal    bool   `json:"reveal"`
}

// configuration is what the API answers about a client.
type configuration struct {
	Client  string `json:"client"`
	Snippet string `json:"snippet"`
	Proxies []struct {
		Worker *string `json:"worker"`
		connect.Proxy
	} `json:"proxies"`
}

func connectSession(ctx context.Context, a *api, in connecting) (reply, error) {
	s, err := a.session(ctx, in.SessionID)
	if err != nil {
		return reply{}, err
	}
	var c configuration
	query := url.Values{}
	for name, value := range map[string]string{"client": in.Client, "workers": in.Workers, "country": in.Country} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if err := a.get(ctx, pathOf(in.SessionID, "/connect"), query, &c); err != nil {
		return reply{}, err
	}
	if len(c.Proxies) == 0 || s.Proxy == nil {
		return reply{}, unknownProxy
	}
	if len(c.Proxies) > mostWorkers && c.Proxies[0].Worker != nil {
		return reply{}, invalid("workers", "are too many for one answer; ask for at most %d at a time", mostWorkers)
	}
	var where secretAnswer
	if in.Reveal {
		where, err = a.reveal(ctx, in.SessionID)
	} else {
		where, err = a.place(ctx, in.SessionID)
	}
	if err != nil {
		return reply{}, err
	}
	out, err := a.connected(s, c, in)
	if err != nil {
		return reply{}, err
	}
	out.Secret = where
	return reply{data: out, next: "Let the program get the password as secret.use shows, then call check_proxy, " +
		"or send a request and report it."}, nil
}

// connected returns the configuration with the password masked, unless the answer may show it.
func (a *api) connected(s sessionData, c configuration, in connecting) (connected, error) {
	shown := c.Proxies[0].Proxy
	if !a.secrets.revealed() {
		c.Snippet = shown.MaskIn(c.Snippet) // of all workers, which have one password
		shown = shown.Masked()
	}
	out := connected{SessionID: s.SessionID, Protocol: shown.Protocol, Host: shown.Host, Port: shown.Port,
		Username: shown.Username, Password: shown.Password, Client: c.Client, Snippet: c.Snippet}
	if s.Proxy.HTTPSURL != "" {
		secure := shown
		secure.Protocol = "https"
		out.HTTPSURL = secure.URL()
	}
	if len(s.IPs) > 1 {
		for _, ip := range s.IPs[:min(len(s.IPs), mostIPs)] {
			out.IPs = append(out.IPs, ipAnswer{ip.IP, ip.Username})
		}
		out.MoreIPs = len(s.IPs) - len(out.IPs)
	}
	return out, nil
}

// variables are those that a program is most likely to read.
const variables = "PROXY_URL, HTTP_PROXY, HTTPS_PROXY, PROXY_PASSWORD"

// place puts the credentials where a program finds them.
func (a *api) place(ctx context.Context, id string) (secretAnswer, error) {
	where, until, err := a.StoreCredentials(ctx, id)
	if err != nil {
		return secretAnswer{}, err
	}
	if until.IsZero() {
		return secretAnswer{File: where, Use: ". " + connect.Quote(where) + "  # sets " + variables}, nil
	}
	until = until.UTC().Truncate(time.Second)
	return secretAnswer{Link: where, ExpiresAt: &until,
		Use: `eval "$(curl -fsS '` + where + `?as=env')"  # works once; sets ` + variables + `; also ?as=url, ?as=json`}, nil
}

// reveal lets the answer hold the credentials, if the operator allows that.
func (a *api) reveal(ctx context.Context, id string) (secretAnswer, error) {
	list, allowed, err := a.Reveal(ctx, id)
	switch {
	case err != nil:
		return secretAnswer{}, err
	case !allowed:
		return secretAnswer{}, &refusal{Code: "REVEAL_NOT_ALLOWED",
			Message:  "the operator does not allow credentials in an answer",
			HowToFix: "Call connect without reveal: it gives your program the credentials."}
	case len(list) == 0:
		return secretAnswer{}, unknownProxy
	}
	a.secrets.reveal()
	return secretAnswer{Use: "The password is in this answer, as asked."}, nil
}

// proxyOf returns the proxy of an address of a session; of the first one if ip is empty.
func proxyOf(ctx context.Context, a *api, id, ip string) (connect.Proxy, error) {
	if ip == "" {
		list, err := Proxies(ctx, a.Backend, id)
		return append(list, connect.Proxy{})[0], err
	}
	s, err := a.session(ctx, id)
	if err != nil {
		return connect.Proxy{}, err
	}
	for _, one := range s.IPs {
		if one.IP == ip {
			return one.Proxy, nil
		}
	}
	return connect.Proxy{}, &refusal{Code: "INVALID_REQUEST", Message: "ip: is no address of this session"}
}

// Proxies returns the proxies of an active session with their credentials, for a Backend that hands
// them over by itself.
func Proxies(ctx context.Context, b Backend, id string) ([]connect.Proxy, error) {
	a := &api{Backend: b, secrets: &secrets{}}
	s, err := a.session(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.Status != "active" || s.Proxy == nil {
		return nil, &refusal{Code: "SESSION_NOT_READY", Message: "the session is " + s.Status + " and has no proxy"}
	}
	if len(s.IPs) == 0 {
		return []connect.Proxy{s.Proxy.Proxy}, nil
	}
	list := make([]connect.Proxy, len(s.IPs))
	for i, ip := range s.IPs {
		list[i] = ip.Proxy
	}
	return list, nil
}
