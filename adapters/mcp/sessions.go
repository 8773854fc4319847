package mcp

import (
	"context"
	"encoding/json"
	"net/url"

	"agentproxy/domain/connect"
)

func createSession(ctx context.Context, a *api, in purchase) (reply, error) {
	body, sold, err := a.wanted(ctx, in)
	var s sessionData
	if err == nil {
		err = a.post(ctx, "/sessions", in.PurchaseID, body, &s)
	}
	if err != nil {
		return reply{}, withNearest(err, sold, in)
	}
	a.note(s)
	next := "Call connect with this session_id."
	if s.Status != "active" {
		next = "Call get_session until the status is active, then connect."
	}
	return reply{data: map[string]any{"session_id": s.SessionID, "type": s.Type, "status": s.Status,
		"cost": sum(s.Cost.Charged, s.Cost.Held), "held": s.Cost.Held, "charged": s.Cost.Charged,
		"currency": s.Cost.Currency, "expires_at": s.ExpiresAt}, next: next}, nil
}

func listSessions(ctx context.Context, a *api, in struct {
	Status string      `json:"status"`
	Type   string      `json:"type"`
	Page   json.Number `json:"page"`
}) (reply, error) {
	query := url.Values{"page_size": {"20"}, "view": {"summary"}}
	for name, value := range map[string]string{"status": in.Status, "type": in.Type, "page": in.Page.String()} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var list struct {
		Items      []sessionData `json:"items"`
		Pagination struct {
			Page  int `json:"page"`
			Total int `json:"total"`
			Pages int `json:"total_pages"`
		} `json:"pagination"`
	}
	if err := a.get(ctx, "/sessions", query, &list); err != nil {
		return reply{}, err
	}
	type row struct {
		ID      string     `json:"session_id"`
		Product string     `json:"product_no"`
		Type    string     `json:"type"`
		Status  string     `json:"status"`
		Country *string    `json:"country"`
		Left    leftAnswer `json:"left"`
		Health  int        `json:"health_score"`
		Risk    string     `json:"risk_level"`
	}
	rows := make([]row, len(list.Items))
	for i, s := range list.Items {
		a.note(s)
		rows[i] = row{s.SessionID, s.ProductNo, s.Type, s.Status, s.Location.Country, s.left(),
			s.Health.HealthScore, s.Health.RiskLevel}
	}
	next := "Call get_session or connect with a session_id."
	if len(rows) == 0 {
		next = "There is none: call find_products."
	}
	return reply{data: map[string]any{"sessions": rows, "page": list.Pagination.Page, "pages": list.Pagination.Pages,
		"total": list.Pagination.Total}, next: next}, nil
}

func rotate(ctx context.Context, a *api, in turning) (reply, error) {
	if in.Worker != "" {
		return rotateWorker(ctx, a, in)
	}
	var s sessionData
	if err := a.post(ctx, pathOf(in.SessionID, "/rotate"), in.RequestID, in.body(), &s); err != nil {
		return reply{}, err
	}
	a.note(s)
	events, err := a.events(ctx, in.SessionID)
	if err != nil {
		return reply{}, err
	}
	was, is := exits(events, "")
	return reply{data: map[string]any{"session_id": s.SessionID, "old_exit": was, "new_exit": is,
		"rotations": s.Rotation.Count}, next: afterRotation}, nil
}

func checkProxy(ctx context.Context, a *api, in struct {
	SessionID string `json:"session_id"`
	Worker    string `json:"worker"`
	IP        string `json:"ip"`
	URL       string `json:"url"`
}) (reply, error) {
	var c struct {
		OK        bool    `json:"ok"`
		ExitIP    string  `json:"exit_ip"`
		Country   *string `json:"country"`
		Declared  *string `json:"declared_country"`
		LatencyMS int64   `json:"latency_ms"`
		// Exit is passed on as it is: what is not known stays null.
		Exit json.RawMessage `json:"exit"`
	}
	exit := map[string]any{"worker": in.Worker, "ip": in.IP}
	if err := a.post(ctx, pathOf(in.SessionID, "/check"), "", exit, &c); err != nil {
		return reply{}, err
	}
	if in.URL == "" {
		return reply{data: c, next: "The exit works: call connect, or report what your requests meet."}, nil
	}
	proxy, err := proxyOf(ctx, a, in.SessionID, in.IP)
	if err != nil {
		return reply{}, err
	}
	a.secrets.add(proxy.Password)
	through := connect.Use{Proxy: proxy}
	if in.Worker != "" {
		through.Workers = []string{in.Worker}
	}
	page, err := Fetch(ctx, through.Proxies()[0].URL(), in.URL)
	if err != nil {
		return reply{}, err
	}
	next := "The page answers through this exit: call connect."
	if page.LooksBlocked {
		next = "The page looks blocked: call rotate, then check_proxy again."
	}
	return reply{data: map[string]any{"exit_ip": c.ExitIP, "country": c.Country, "declared_country": c.Declared,
		"latency_ms": c.LatencyMS, "exit": c.Exit, "page": page},
		next: next}, nil
}

func renewSession(ctx context.Context, a *api, in struct {
	SessionID  string      `json:"session_id"`
	Days       json.Number `json:"duration_days"`
	MaxCost    json.Number `json:"max_cost"`
	PurchaseID string      `json:"purchase_id"`
}) (reply, error) {
	body := map[string]any{"max_cost": in.MaxCost}
	if in.Days != "" {
		body["duration_days"] = in.Days
	}
	var s sessionData
	if err := a.post(ctx, pathOf(in.SessionID, "/renew"), in.PurchaseID, body, &s); err != nil {
		return reply{}, err
	}
	a.note(s)
	return reply{data: map[string]any{"session_id": s.SessionID, "status": s.Status, "expires_at": s.ExpiresAt,
		"cost": s.Cost},
		next: "Call get_session to see the time that is left."}, nil
}

func endSession(ctx context.Context, a *api, in ofSession) (reply, error) {
	var s sessionData
	if err := a.post(ctx, pathOf(in.SessionID, "/terminate"), "", nil, &s); err != nil {
		return reply{}, err
	}
	next := "Call get_account to see the balance."
	if s.Cost.Forfeited != "" && s.Cost.Forfeited != "0" {
		next = "What was paid for the time left of these fixed IPs did not come back: it is forfeited. " + next
	}
	return reply{data: map[string]any{"session_id": s.SessionID, "status": s.Status, "status_reason": s.StatusReason,
		"forfeited": s.Cost.Forfeited, "cost": s.Cost}, next: next}, nil
}
