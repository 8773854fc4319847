package httpapi

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/domain"
)

type healthReply struct {
	Status  string `json:"status" enum:"ok" doc:"Always ok; a service that cannot answer returns 503."`
	Version string `json:"version" doc:"The version of the service."`
}

type ipReply struct {
	IP string `json:"ip" doc:"The address that the request came from. Through a proxy session it is the exit."`
}

// declareService declares what needs no credential and sells nothing.
func (s *Server) declareService() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-health",
		Method:  http.MethodGet,
		Path:    "/health",
		Tag:     "service",
		Open:    true,
		Summary: "Whether the service can answer",
		Doc:     "For load balancers: 200 while the database answers.",
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "It can.", Data: healthReply{"ok", "1.0.0"}}},
	}, func(ctx context.Context, _ *struct{}) (int, healthReply, error) {
		if err := s.Store.Ping(ctx); err != nil {
			return 0, healthReply{}, domain.ErrUnavailable.Msgf("the store does not answer; try again shortly")
		}
		return http.StatusOK, healthReply{"ok", s.cfg.Version}, nil
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-ip",
		Method:  http.MethodGet,
		Path:    "/ip",
		Tag:     "service",
		Open:    true,
		Summary: "The address that the request came from",
		Doc:     "Through a proxy session it is the exit, so a call shows whether the session works.",
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "The caller's address.", Data: ipReply{"203.0.113.7"}}},
	}, func(ctx context.Context, _ *struct{}) (int, ipReply, error) {
		addr := s.api.ClientAddr(endpoint.CallIn(ctx).Request())
		return http.StatusOK, ipReply{addr.String()}, nil
	})
}
