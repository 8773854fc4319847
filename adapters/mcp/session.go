package mcp

import (
	"context"
	"encoding/json"
	"net/url"

	"agentproxy/domain/connect"
)

// sessionData is what the tools read of a session.
type sessionData struct {
	SessionID    string       `json:"session_id"`
	Type         string       `json:"type"`
	Status       string       `json:"status"`
	StatusReason *string      `json:"status_reason"`
	ProductNo    string       `json:"product_no"`
	Quantity     int          `json:"quantity"`
	Location     locationData `json:"location"`
	Proxy        *proxyData   `json:"proxy"`
	IPs          []ipData     `json:"ip_list"`
	Rotation     struct {
		Mode           string  `json:"mode"`
		NextRotationAt *string `json:"next_rotation_at"`
		Count          int     `json:"count"`
	} `json:"rotation"`
	Health    healthBrief `json:"health"`
	Usage     usageData   `json:"usage"`
	Cost      costData    `json:"cost"`
	ExpiresAt *string     `json:"expires_at"`
	Failure   *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"failure"`
	CreatedAt string `json:"created_at"`
}

type locationData struct {
	Country *string `json:"country"`
	City    *string `json:"city"`
}

// proxyData is a proxy and its HTTP addresses: http_url is empty where it takes SOCKS5 alone, https_url where it takes
// no TLS.
type proxyData struct {
	connect.Proxy
	HTTPURL  string `json:"http_url"`
	HTTPSURL string `json:"https_url"`
}

type ipData struct {
	IP string `json:"ip"`
	connect.Proxy
}

type healthBrief struct {
	HealthScore    int    `json:"health_score"`
	RiskLevel      string `json:"risk_level"`
	Recommendation string `json:"recommendation"`
}

type usageData struct {
	Traffic struct {
		LimitGB     *json.Number `json:"limit_gb"`
		UsedGB      json.Number  `json:"used_gb"`
		RemainingGB *json.Number `json:"remaining_gb"`
	} `json:"traffic"`
	Connections int64 `json:"connections"`
	Time        struct {
		RemainingSeconds *int64 `json:"remaining_seconds"`
	} `json:"time"`
}

type costData struct {
	Charged  json.Number `json:"charged"`
	Held     json.Number `json:"held"`
	Refunded json.Number `json:"refunded"`
	// Forfeited is what the end of a static session gave up.
	Forfeited json.Number `json:"forfeited"`
	Currency  string      `json:"currency"`
}

// ofSession is the argument of a tool that takes a session alone.
type ofSession struct {
	SessionID string `json:"session_id"`
}

// pathOf returns the path of an operation on a session.
func pathOf(id, operation string) string { return "/sessions/" + url.PathEscape(id) + operation }

// session reads a session, and notes its passwords so that no answer repeats them.
func (a *api) session(ctx context.Context, id string) (s sessionData, err error) {
	err = a.get(ctx, pathOf(id, ""), nil, &s)
	a.note(s)
	return s, err
}

func (a *api) note(s sessionData) {
	if s.Proxy != nil {
		a.secrets.add(s.Proxy.Password)
	}
	for _, ip := range s.IPs {
		a.secrets.add(ip.Password)
	}
}

// left is what remains of a session.
type leftAnswer struct {
	GB      *json.Number `json:"gb,omitempty"`
	Seconds *int64       `json:"seconds,omitempty"`
}

func (s sessionData) left() leftAnswer {
	return leftAnswer{s.Usage.Traffic.RemainingGB, s.Usage.Time.RemainingSeconds}
}

type turning struct {
	SessionID string `json:"session_id"`
	Worker    string `json:"worker"`
	Reason    string `json:"reason"`
	RequestID string `json:"request_id"`
}

// body returns the body of the operation.
func (t turning) body() map[string]any {
	if t.Reason == "" {
		return map[string]any{}
	}
	return map[string]any{"reason": t.Reason}
}

const afterRotation = "Open new connections with the same credentials, and call report with what they meet."
