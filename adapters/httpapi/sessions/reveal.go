package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/connect"
	"agentproxy/domain/session"
)

type revealInput struct {
	Token string `path:"token" doc:"From the link."`
	As    string `query:"as" enum:"env,url,json" doc:"env: lines that a shell evaluates; url: one address a line; json: an object with proxies[]. url is the default."`
}

// declareReveal declares what shows the credentials of a session to a program.
func (s *service) declareReveal() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "reveal-credentials",
		Method:  http.MethodGet,
		Path:    "/reveal/{token}",
		Tag:     "sessions",
		Open:    true,
		Once:    true,
		Summary: "The credentials of a session, once",
		Doc: "The link comes from the tool connect of POST /mcp. It works once, within 5 minutes, for any holder; " +
			"the session's events list it. A program fetches it, so that the password does not pass a model.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "Plain text in the asked form, without envelope.",
			Data: endpoint.Text("")}},
		Refuses: endpoint.Refusals(reveals.ErrUnknown, reveals.ErrUsed, session.ErrOver, account.ErrRateLimited),
	}, func(ctx context.Context, in *revealInput) (int, endpoint.Text, error) {
		v, err := s.redeem(endpoint.CallIn(ctx), in.Token)
		if err != nil {
			return 0, "", err
		}
		t, err := revealed(s.Proxies(v), cmp.Or(in.As, "url"))
		return http.StatusOK, t, err
	})
}

// redeem looks a link up, unless the client tried too many that do not exist.
func (s *service) redeem(c *endpoint.Call, token string) (sessions.View, error) {
	if d := s.api.Limits.WrongKeys().Left(s.api.ClientAddr(c.Request())); !d.Allowed {
		return sessions.View{}, account.ErrRateLimited.Msgf(
			"too many wrong links or keys from this address; wait for the seconds in Retry-After").After(d.RetryAfter)
	}
	v, err := s.Reveals.Redeem(c, token)
	if errors.Is(err, reveals.ErrUnknown) {
		s.api.Limits.WrongKeys().Record(s.api.ClientAddr(c.Request()))
	}
	return v, err
}

// revealed writes proxies in a form.
func revealed(list []connect.Proxy, form string) (endpoint.Text, error) {
	switch form {
	case "env":
		return endpoint.Text(connect.Env(list)), nil
	case "json":
		type one struct {
			connect.Proxy
			URL string `json:"url"`
		}
		b, err := json.Marshal(map[string]any{"proxies": value.Each(list,
			func(p connect.Proxy) one { return one{p, p.URL()} })})
		return endpoint.Text(append(b, '\n')), err
	}
	return endpoint.Text(connect.URLs(list)), nil
}
