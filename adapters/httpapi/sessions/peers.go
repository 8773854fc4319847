package sessions

import (
	"context"
	"net/http"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain/account"
	"agentproxy/domain/traffic"
)

type peersInput struct {
	endpoint.Paging
	sessionview.OneSession
}

type clientAddressReply struct {
	Address     value.MaybeText `json:"address" doc:"null: all others beyond the 256 that are listed."`
	FirstAt     value.Stamp     `json:"first_at" doc:"When it connected first."`
	LastAt      value.Stamp     `json:"last_at" doc:"When it connected last."`
	Connections int64           `json:"connections" doc:"Connections and plain requests, refused ones included."`
	UsedBytes   int64           `json:"used_bytes" doc:"What was used, in bytes."`
}

type clientsReply struct {
	Items      []clientAddressReply `json:"items" doc:"This page."`
	Pagination endpoint.Pagination  `json:"pagination" doc:"Where this page is in the list."`
}

type hostReply struct {
	Host        value.MaybeText `json:"host" doc:"null: all beyond the 512 a day that are listed apart."`
	Connections int64           `json:"connections" doc:"Connections and plain requests, failed ones included."`
	Failures    int64           `json:"failures" doc:"Of the connections."`
	UsedBytes   int64           `json:"used_bytes" doc:"What was used, in bytes."`
}

type hostsReply struct {
	Items      []hostReply         `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

// declarePeers declares who uses a session and for what.
func (s *service) declarePeers() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-session-clients",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/clients",
		Tag:     "sessions",
		Summary: "Which addresses a session is used from",
		Doc: "With the right password, the newest first; kept for 30 days. A connection counts when it ends, " +
			"and is listed within four seconds.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of addresses.", Data: clientsReply{[]clientAddressReply{
			{"192.0.2.7", value.Stamp(openapi.ExampleTime), value.Stamp(openapi.ExampleTime), 12, 48_213}},
			endpoint.ExamplePagination}}},
	}, func(ctx context.Context, in *peersInput) (int, clientsReply, error) {
		list, err := s.Sessions.Clients(ctx, endpoint.Caller(ctx), in.SessionID, in.Asked())
		items, pagination := endpoint.PageOf(list, func(c traffic.Client) clientAddressReply {
			return clientAddressReply{value.MaybeText(c.Address), value.Stamp(c.FirstAt), value.Stamp(c.LastAt), c.Connections,
				c.Bytes}
		})
		return http.StatusOK, clientsReply{items, pagination}, err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-session-hosts",
		Keys:    endpoint.OwnSession,
		Method:  http.MethodGet,
		Path:    "/sessions/{session_id}/hosts",
		Tag:     "sessions",
		Summary: "Where the bytes of a session went",
		Doc: "In the last 7 days, the most bytes first; a cursor skips hosts that outgrow it meanwhile. A connection " +
			"counts when it ends, and is listed within four seconds.",
		Scope:   account.SessionsRead,
		Refuses: sessionview.OfSession,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of hosts.", Data: hostsReply{[]hostReply{
			{"shop.example", 12, 1, 48_213}}, endpoint.ExamplePagination}}},
	}, func(ctx context.Context, in *peersInput) (int, hostsReply, error) {
		list, err := s.Sessions.Hosts(ctx, endpoint.Caller(ctx), in.SessionID, in.Asked())
		items, pagination := endpoint.PageOf(list, func(h traffic.Host) hostReply {
			return hostReply{value.MaybeText(h.Name), h.Connections, h.Failures, h.Bytes}
		})
		return http.StatusOK, hostsReply{items, pagination}, err
	})
}
