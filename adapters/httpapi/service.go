package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

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
	op(s, operation{
		ID:      "get-health",
		Method:  http.MethodGet,
		Path:    "/health",
		Tag:     "service",
		Open:    true,
		Summary: "Whether the service can answer",
		Doc:     "For load balancers: 200 while the database answers.",
		OK:      []reply{{Status: http.StatusOK, Doc: "It can.", Data: healthReply{"ok", "1.0.0"}}},
	}, func(ctx context.Context, _ *struct{}) (int, healthReply, error) {
		if err := s.Store.Ping(ctx); err != nil {
			return 0, healthReply{}, domain.ErrUnavailable.Msgf("the store does not answer; try again shortly")
		}
		return http.StatusOK, healthReply{"ok", s.cfg.Version}, nil
	})
	op(s, operation{
		ID:      "get-ip",
		Method:  http.MethodGet,
		Path:    "/ip",
		Tag:     "service",
		Open:    true,
		Summary: "The address that the request came from",
		Doc:     "Through a proxy session it is the exit, so a call shows whether the session works.",
		OK:      []reply{{Status: http.StatusOK, Doc: "The caller's address.", Data: ipReply{"203.0.113.7"}}},
	}, func(ctx context.Context, _ *struct{}) (int, ipReply, error) {
		addr := s.clientAddr(callIn(ctx).gin.Request)
		return http.StatusOK, ipReply{addr.String()}, nil
	})
	s.declareDocument()
}

// declareDocument declares the document itself, the one answer without envelope.
func (s *Server) declareDocument() {
	const path = "/openapi.json"
	s.api.OpenAPI().AddOperation(&huma.Operation{OperationID: "get-openapi", Method: http.MethodGet, Path: path,
		Tags: []string{"service"}, Summary: "This document", Description: "It is the same at /openapi.json, " +
			"and has an ETag.", Security: []map[string][]string{},
		Responses: map[string]*huma.Response{"200": {
			Description: "The OpenAPI 3.1 document, without envelope.",
			Content: map[string]*huma.MediaType{jsonType: {
				Schema: &huma.Schema{
					Type:                 huma.TypeObject,
					Required:             []string{"openapi", "info", "paths"},
					AdditionalProperties: true,
					Properties: map[string]*huma.Schema{
						"openapi": {Type: huma.TypeString, Description: "The version of the specification."},
						"info":    {Type: huma.TypeObject, Description: "Title, version and description."},
						"paths":   {Type: huma.TypeObject, Description: "The operations."},
					},
				},
				Example: map[string]any{"openapi": "3.1.0", "info": map[string]any{}, "paths": map[string]any{}},
			}},
		}, "421": s.errorResponse(&operation{Open: true}, http.StatusMisdirectedRequest, refusals(errMisdirected))}})
}
