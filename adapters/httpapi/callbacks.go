package httpapi

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// callbackLimit is the most that a provider's call may hold.
const callbackLimit = 64 << 10

type callbackInput struct {
	Provider string `path:"provider" pattern:"^[a-z0-9_-]{1,32}$" patternDescription:"the name of a provider" doc:"The name that the operator gave it."`
}

type callbackReply struct {
	Accepted bool `json:"accepted" doc:"Whether the call was taken."`
}

// declareCallbacks declares what providers call.
func (s *Server) declareCallbacks() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "provider-callback",
		Method:    http.MethodPost,
		Path:      "/providers/{provider}/callback",
		Tag:       "service",
		Summary:   "A provider reports that an order changed",
		Open:      true,
		OwnBody:   map[string]any{},
		BodyLimit: callbackLimit,
		Doc: "For providers, not for agents. The call is signed by the provider, and means only that the order is to " +
			"be read again.",
		Refuses: []*domain.Error{domain.ErrInvalid, ordering.ErrNoCallback, account.ErrRateLimited},
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The orders are read soon.", Data: callbackReply{true}}},
		Example: map[string]any{"event": "proxy.status.changed"},
	}, func(ctx context.Context, in *callbackInput) (int, callbackReply, error) {
		c := endpoint.CallIn(ctx)
		if d := s.Limits.TakeCallback(in.Provider, s.api.ClientAddr(c.Request())); !d.Allowed {
			return 0, callbackReply{}, account.ErrRateLimited.Msgf(
				"too many calls for this provider; wait for the seconds in Retry-After").After(d.RetryAfter)
		}
		err := s.Callbacks.Receive(ctx, in.Provider, c.Request().Header, c.Body)
		return http.StatusOK, callbackReply{err == nil}, err
	})
}
