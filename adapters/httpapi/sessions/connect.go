package sessions

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"golang.org/x/text/language"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/connect"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

type connectInput struct {
	sessionview.OneSession
	Client   openapi.ClientName `query:"client" doc:"curl is the default."`
	Workers  string             `query:"workers" maxLength:"33000" doc:"How many, named w1 and so on, or names separated by commas."`
	Passport string             `query:"passport" enum:"true,false" doc:"A browser shows the time zone and locale of its exit."`

	Country string `query:"country" pattern:"^[A-Za-z]{2}$" doc:"Of the exits; ISO 3166-1 alpha-2."`
}

type connectReply struct {
	SessionID string           `json:"session_id" doc:"The session."`
	Client    string           `json:"client" doc:"As asked."`
	Language  string           `json:"language" doc:"Of the snippet: sh, python, javascript or go."`
	Snippet   string           `json:"snippet" doc:"With the password."`
	Proxies   []connectedReply `json:"proxies" doc:"One for each worker, or for each IP."`
}

type connectedReply struct {
	Worker value.MaybeText `json:"worker" doc:"null: the session's own exit."`
	sessionview.Proxy
}

// declareConnect declares how programs are configured with a session.
func (s *service) declareConnect() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "connect-session",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/connect",
		Tag:     "sessions",
		Summary: "How a client is configured",
		Doc:     "What to write so that a client uses the session, and a proxy for each worker.",
		Scope:   account.SessionsRead,
		Refuses: endpoint.And(sessionview.OfLive, account.ErrRateLimited, worker.ErrNotFound, ports.ErrProvider,
			ports.ErrTimeout),
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The configuration.",
			Data: connectReply{openapi.ExampleID, "curl", "sh",
				"curl --noproxy '' -x '" + sessionview.ExampleProxy.FullURL + "' https://example.com/",
				[]connectedReply{{"", sessionview.ExampleProxy}}}}},
	}, s.connect)
}

func (s *service) connect(ctx context.Context, in *connectInput) (int, connectReply, error) {
	workers, err := connect.ParseWorkers(in.Workers)
	if err != nil {
		return 0, connectReply{}, domain.InvalidFields(domain.FieldIssue{Field: "workers", Issue: err.Error()})
	}
	v, err := s.Sessions.Read(ctx, endpoint.Caller(ctx), in.SessionID)
	endpoint.ChargeWorkers(ctx, v.Workers.Total)
	switch {
	case err != nil:
		return 0, connectReply{}, err
	case v.Status == session.Creating:
		return 0, connectReply{}, session.ErrNotReady
	case v.Status.Over():
		return 0, connectReply{}, session.ErrOver.Msgf("the session is %s; create a new one", v.Status)
	case workers != nil && !steered(v):
		return 0, connectReply{}, errNotSteered("workers")
	case in.Country != "" && !steered(v):
		return 0, connectReply{}, errNotSteered("country")
	}
	client, _ := connect.Find(string(cmp.Or(in.Client, "curl"))) // the enum has the same names
	use := connect.Use{Session: in.SessionID, Country: in.Country, Workers: workers}
	if in.Passport == "true" {
		if use.Passport, err = s.passport(ctx, client, use); err != nil {
			return 0, connectReply{}, err
		}
	}
	data, err := s.toConnected(v, client, use)
	return http.StatusOK, data, err
}

// passport returns the place of the one exit that a browser uses.
func (s *service) passport(ctx context.Context, client connect.Client, u connect.Use) (*connect.Passport, error) {
	name := ""
	switch {
	case !client.Browser():
		return nil, domain.InvalidField("passport", "is for playwright, puppeteer and selenium; leave it out")
	case len(u.Workers) > 1 || u.Country != "" && u.Workers == nil:
		return nil, domain.InvalidField("passport", "is of one exit; name one worker")
	case u.Workers != nil:
		name = u.Workers[0]
	}
	m, err := s.Checks.Exit(ctx, endpoint.Caller(ctx), u.Session, name, func() error { return s.mayCheck(ctx) })
	return &connect.Passport{Timezone: m.Timezone, Locale: localeOf(m.Country)}, err
}

// localeOf returns the locale of most people of a country, by the data of Unicode's CLDR; empty for none.
func localeOf(country string) string {
	region, err := language.ParseRegion(country)
	if err != nil {
		return ""
	}
	tag, err := language.Compose(region)
	if err != nil {
		return ""
	}
	base, _ := tag.Base()
	return base.String() + "-" + region.String()
}

// steered reports whether the user name of a session chooses its exit.
func steered(v sessions.View) bool { return v.Type == session.Dynamic && v.Direct == nil }

func errNotSteered(field string) error {
	return domain.InvalidFields(domain.FieldIssue{Field: field,
		Issue: "is for dynamic sessions whose traffic passes the gateway; leave it out"})
}

// errNoProxy is for a provider that does not return its credentials at the moment.
var errNoProxy = domain.ErrUnavailable.Msgf("the proxy is not known at the moment; try again shortly")

// toConnected writes the configuration of a client with an active session.
func (s *service) toConnected(v sessions.View, client connect.Client, u connect.Use) (connectReply, error) {
	shown := s.ToSession(v)
	if shown.Proxy == nil {
		return connectReply{}, errNoProxy
	}
	var err error
	if u.Proxy, err = client.Adapt(sessionview.ToConnect(*shown.Proxy), shown.Proxy.HTTPURL); err != nil {
		return connectReply{}, domain.InvalidFields(domain.FieldIssue{Field: "client", Issue: err.Error()})
	}
	if secure := string(shown.Proxy.HTTPSURL); secure != "" && s.OnlyTLS {
		client, u.Proxy = client.OnlyTLS(u.Proxy)
	} else {
		u.Proxy = client.ByTLS(u.Proxy, secure)
	}
	r := connectReply{SessionID: v.ID, Client: client.Name, Language: client.Language, Snippet: client.Snippet(u)}
	if v.Type == session.Static {
		for _, ip := range shown.IPList {
			r.Proxies = append(r.Proxies, connectedReply{"", ip.Proxy})
		}
		return r, nil
	}
	for i, p := range u.Proxies() {
		one := connectedReply{"", *shown.Proxy}
		one.rename(p.Username)
		if u.Workers != nil {
			one.Worker = value.MaybeText(u.Workers[i])
		}
		r.Proxies = append(r.Proxies, one)
	}
	return r, nil
}

// rename gives the proxy another user name of the gateway, which needs no escapes.
func (r *connectedReply) rename(user string) {
	old := "://" + r.Username + ":"
	named := func(address string) string { return strings.Replace(address, old, "://"+user+":", 1) }
	for _, address := range []*string{&r.FullURL, &r.HTTPURL, &r.SOCKS5URL} {
		*address = named(*address)
	}
	r.HTTPSURL = value.MaybeText(named(string(r.HTTPSURL)))
	r.Username = user
}
