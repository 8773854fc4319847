package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/reveals"
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
		Refuses: endpoint.Refusals(reveals.ErrUnknown, reveals.ErrUsed, session.ErrOver),
	}, func(ctx context.Context, in *revealInput) (int, endpoint.Text, error) {
		v, err := s.Reveals.Redeem(endpoint.CallIn(ctx), in.Token)
		if err != nil {
			return 0, "", err
		}
		t, err := revealed(s.Proxies(v), cmp.Or(in.As, "url"))
		return http.StatusOK, t, err
	})
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
