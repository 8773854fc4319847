package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/connect"
	"agentproxy/domain/session"
)

// text is an answer of an operation that has no envelope when it succeeds.
type text string

const textType = "text/plain; charset=utf-8"

type revealInput struct {
	Token string `path:"token" doc:"From the link."`
	As    string `query:"as" enum:"env,url,json" doc:"env: lines that a shell evaluates; url: one address a line; json: an object with proxies[]. url is the default."`
}

// declareReveal declares what shows the credentials of a session to a program.
func (s *Server) declareReveal() {
	op(s, operation{
		ID:      "reveal-credentials",
		Method:  http.MethodGet,
		Path:    "/reveal/{token}",
		Tag:     "sessions",
		Open:    true,
		Once:    true,
		Summary: "The credentials of a session, once",
		Doc: "The link comes from the tool connect of POST /mcp. It works once, within 5 minutes, for any holder; " +
			"the session's events list it. A program fetches it, so that the password does not pass a model.",
		OK:      []reply{{Status: ok, Doc: "Plain text in the asked form, without envelope.", Data: text("")}},
		Refuses: refusals(reveals.ErrUnknown, reveals.ErrUsed, session.ErrOver, account.ErrRateLimited),
	}, func(ctx context.Context, in *revealInput) (int, text, error) {
		v, err := s.redeem(callIn(ctx), in.Token)
		if err != nil {
			return 0, "", err
		}
		t, err := revealed(s.proxies(v), cmp.Or(in.As, "url"))
		return ok, t, err
	})
}

// redeem looks a link up, unless the client tried too many that do not exist.
func (s *Server) redeem(c *call, token string) (sessions.View, error) {
	if d := s.Limits.WrongKeys().Left(s.clientAddr(c.gin.Request)); !d.Allowed {
		return sessions.View{}, account.ErrRateLimited.Msgf(
			"too many wrong links or keys from this address; wait for the seconds in Retry-After").After(d.RetryAfter)
	}
	v, err := s.Reveals.Redeem(c, token)
	if errors.Is(err, reveals.ErrUnknown) {
		s.Limits.WrongKeys().Record(s.clientAddr(c.gin.Request))
	}
	return v, err
}

// revealed writes proxies in a form.
func revealed(list []connect.Proxy, form string) (text, error) {
	switch form {
	case "env":
		return text(connect.Env(list)), nil
	case "json":
		type one struct {
			connect.Proxy
			URL string `json:"url"`
		}
		b, err := json.Marshal(map[string]any{"proxies": each(list, func(p connect.Proxy) one { return one{p, p.URL()} })})
		return text(append(b, '\n')), err
	}
	return text(connect.URLs(list)), nil
}

// proxies returns the proxies of an active session: one, or one for each IP.
func (s *Server) proxies(v sessions.View) []connect.Proxy {
	r := s.toSession(v)
	if v.Type == session.Static {
		return each(r.IPList, func(i ipListReply) connect.Proxy { return toConnect(i.ProxyFields) })
	}
	if r.Proxy == nil {
		return nil
	}
	return []connect.Proxy{toConnect(*r.Proxy)}
}

func toConnect(p proxyReply) connect.Proxy {
	return connect.Proxy{Protocol: string(p.Protocol), Host: p.Host, Port: p.Port,
		Username: p.Username, Password: p.Password}
}

// showText answers plain text.
func (s *Server) showText(c *call, status int, t text) {
	w := c.gin.Writer
	h := w.Header()
	h["Content-Type"] = []string{textType}
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	_, _ = w.WriteString(string(t)) // an error means that the client is gone
}

// textResponse documents an answer that is plain text.
func textResponse(o *operation, r reply) *huma.Response {
	return &huma.Response{Description: r.Doc, Headers: responseHeaders(o, r.Status),
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}
