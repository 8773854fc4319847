package httpapi

import (
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// sessionReply is the record of a session.
type sessionReply struct {
	SessionID    string             `json:"session_id" doc:"Never changes, whatever is rotated."`
	Type         session.Type       `json:"type"`
	Status       session.Status     `json:"status"`
	StatusReason maybeText          `json:"status_reason" doc:"Why it ended: agent_request, traffic_exhausted, time_expired, provider_failed, provider_lost, account_disabled or operator_request. null while it lives."`
	ProductNo    string             `json:"product_no"`
	Quantity     int                `json:"quantity" doc:"IPs; 1 for a dynamic session."`
	DurationDays maybeInt           `json:"duration_days" doc:"null for a dynamic session."`
	TrafficGB    maybeGB            `json:"traffic_gb" doc:"The traffic bought. null for a static session."`
	Proxy        *proxyReply        `json:"proxy"`
	Location     locationReply      `json:"location"`
	Rotation     rotationReply      `json:"rotation"`
	Health       workersHealthReply `json:"health"`
	Usage        usageReply         `json:"usage"`
	Cost         costReply          `json:"cost"`
	ExpiresAt    maybeStamp         `json:"expires_at" doc:"When a static session ends. null for a dynamic one and before activation."`
	IPList       []ipListReply      `json:"ip_list" doc:"The IPs of an active static session; empty otherwise."`
	Failure      *failureReply      `json:"failure"`
	Labels       labels             `json:"labels" doc:"Your own words for the session."`
	AllowedIPs   []string           `json:"allowed_ips" doc:"Networks that clients may connect from; empty: any."`
	AutoTopUp    *autoTopUpReply    `json:"auto_top_up" doc:"What a dynamic session buys by itself; null: nothing."`
	CreatedAt    stamp              `json:"created_at"`
	ActivatedAt  maybeStamp         `json:"activated_at"`
	EndedAt      maybeStamp         `json:"ended_at"`
}

// SessionFields is sessionReply under an exported name, by which huma reads it where it is embedded.
type SessionFields = sessionReply

// TransformSchema lets the objects that may be missing be null.
func (sessionReply) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable(s, "proxy", "failure", "auto_top_up")
}

type proxyReply struct {
	Protocol  session.Protocol `json:"protocol" doc:"What full_url begins with. Both work on the same port."`
	Host      string           `json:"host"`
	Port      int              `json:"port" minimum:"1" maximum:"65535"`
	Username  string           `json:"username" doc:"Letters and digits only at the gateway."`
	Password  string           `json:"password" doc:"At the gateway letters and digits only, and the same for the session's whole life."`
	FullURL   string           `json:"full_url" doc:"The address to route traffic through."`
	HTTPURL   string           `json:"http_url"`
	SOCKS5URL string           `json:"socks5_url"`
}

// ProxyFields is proxyReply under an exported name, by which huma reads it where it is embedded.
type ProxyFields = proxyReply

type ipListReply struct {
	IP      string    `json:"ip"`
	Country maybeText `json:"country"`
	City    maybeText `json:"city" doc:"null when none was asked for."`
	ProxyFields
}

type locationReply struct {
	Country maybeText `json:"country" doc:"ISO 3166-1 alpha-2; null: any."`
	City    maybeText `json:"city" doc:"null: any."`
}

type rotationReply struct {
	Mode            session.RotationMode `json:"mode"`
	IntervalSeconds maybeInt             `json:"interval_seconds" doc:"null unless the mode is timed."`
	NextRotationAt  maybeStamp           `json:"next_rotation_at" doc:"null unless the mode is timed."`
	LastRotatedAt   maybeStamp           `json:"last_rotated_at"`
	Count           int                  `json:"count" minimum:"0"`
}

type sessionHealthBrief struct {
	HealthScore    int                   `json:"health_score" minimum:"0" maximum:"100"`
	SuccessRate    ratio                 `json:"success_rate"`
	RiskLevel      health.Risk           `json:"risk_level"`
	Recommendation health.Recommendation `json:"recommendation"`
}

// HealthFields is sessionHealthBrief under an exported name, by which huma reads it where it is embedded.
type HealthFields = sessionHealthBrief

// workersHealthReply is the health of a session that may have workers.
type workersHealthReply struct {
	HealthFields
	Workers *workerCountReply `json:"workers" doc:"null without workers."`
}

// TransformSchema lets the workers be null.
func (workersHealthReply) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable(s, "workers")
}

// workerCountReply counts the workers of a session.
type workerCountReply struct {
	Total  int `json:"total" doc:"How many there are."`
	AtRisk int `json:"at_risk" doc:"Whose risk_level is high or critical."`
}

// toWorkerCount writes how the workers of a session fare; nil if it has none.
func toWorkerCount(c health.WorkerCount) *workerCountReply {
	if c.Total == 0 {
		return nil
	}
	return &workerCountReply{c.Total, c.AtRisk}
}

type usageReply struct {
	Traffic     trafficReply `json:"traffic"`
	Connections int64        `json:"connections" minimum:"0"`
	Time        timeReply    `json:"time"`
	Cost        costReply    `json:"cost"`
	AsOf        stamp        `json:"as_of" doc:"At most two seconds old."`
}

type trafficReply struct {
	LimitGB        maybeGB   `json:"limit_gb" doc:"null for a static session, like every limit."`
	UsedGB         gigabytes `json:"used_gb"`
	RemainingGB    maybeGB   `json:"remaining_gb"`
	LimitBytes     maybeInt  `json:"limit_bytes"`
	FairUseGB      maybeGB   `json:"fair_use_gb" doc:"Static: GB that it may transfer in all; null: no limit."`
	UsedBytes      int64     `json:"used_bytes" minimum:"0"`
	UploadBytes    int64     `json:"upload_bytes" minimum:"0"`
	DownloadBytes  int64     `json:"download_bytes" minimum:"0"`
	RemainingBytes maybeInt  `json:"remaining_bytes"`
	Percent        percent   `json:"percent" doc:"Of the traffic bought, 0 to 100, with 2 decimals. null for a static session."`
}

type timeReply struct {
	StartedAt        maybeStamp `json:"started_at"`
	ExpiresAt        maybeStamp `json:"expires_at"`
	RemainingSeconds maybeInt   `json:"remaining_seconds" doc:"null for a dynamic session and before activation."`
}

type costReply struct {
	Charged  money  `json:"charged" doc:"What was used so far costs."`
	Held     money  `json:"held" doc:"Kept for what may still be used."`
	Refunded money  `json:"refunded"`
	Currency string `json:"currency" enum:"USD"`
}

type failureReply struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// toSession returns the reply that shows a session to its agent.
func (g gateway) toSession(v sessions.View) sessionReply {
	r := sessionReply{
		SessionID: v.ID, Type: v.Type, Status: v.Status, StatusReason: maybeText(v.Reason),
		ProductNo: v.ProductNo, Quantity: v.Quantity, DurationDays: -1, TrafficGB: -1,
		Location: locationReply{maybeText(v.Location.Country), maybeText(v.Location.City)},
		Rotation: rotationReply{Mode: v.Rotation.Mode, IntervalSeconds: -1,
			NextRotationAt: maybeStamp(
				v.Rotation.NextAt,
			), LastRotatedAt: maybeStamp(v.Rotation.LastAt), Count: v.Rotation.Count},
		Health: workersHealthReply{toHealthBrief(v.Verdict), toWorkerCount(v.Workers)},
		Usage:  toUsage(v), Cost: toCost(v.Cost),
		ExpiresAt: maybeStamp(v.ExpiresAt), IPList: []ipListReply{},
		CreatedAt: stamp(v.CreatedAt), ActivatedAt: maybeStamp(v.ActivatedAt), EndedAt: maybeStamp(v.EndedAt),
		Labels: labels(v.Labels), AllowedIPs: each(v.AllowedIPs, netip.Prefix.String),
		AutoTopUp: toAutoTopUp(v.TopUps),
	}
	if v.Type == session.Static {
		r.DurationDays = maybeInt(v.Days)
	} else {
		r.TrafficGB = maybeGB(v.Bytes)
	}
	if v.Rotation.Mode == session.Timed {
		r.Rotation.IntervalSeconds = maybeInt(v.Rotation.Interval / time.Second)
	}
	if v.Status.Over() {
		r.Rotation.NextRotationAt = maybeStamp{}
	}
	if v.Failure.Code != "" {
		r.Failure = &failureReply{v.Failure.Code, v.Failure.Message}
	}
	if v.Status == session.Active {
		g.showProxy(&r, v)
	}
	return r
}

func toHealthBrief(v health.Verdict) sessionHealthBrief {
	return sessionHealthBrief{v.HealthScore, ratio(v.SuccessRate), v.RiskLevel, v.Recommendation}
}

func toCost(c sessions.Cost) costReply {
	return costReply{money(c.Charged), money(c.Held), money(c.Refunded), domain.Currency}
}

func toUsage(v sessions.View) usageReply {
	u := v.Usage
	r := usageReply{
		Traffic: trafficReply{LimitGB: -1, UsedGB: gigabytes(u.Used()), RemainingGB: -1, LimitBytes: -1,
			UsedBytes: u.Used(), UploadBytes: u.Up, DownloadBytes: u.Down, RemainingBytes: -1, Percent: -1,
			FairUseGB: -1},
		Connections: u.Connections,
		Time:        timeReply{maybeStamp(v.ActivatedAt), maybeStamp(v.ExpiresAt), -1},
		Cost:        toCost(v.Cost),
		AsOf:        stamp(v.AsOf),
	}
	if v.Type == session.Dynamic {
		left := max(v.Bytes-u.Used(), 0)
		r.Traffic.LimitGB, r.Traffic.LimitBytes = maybeGB(v.Bytes), maybeInt(v.Bytes)
		r.Traffic.RemainingGB, r.Traffic.RemainingBytes = maybeGB(left), maybeInt(left)
		r.Traffic.Percent = percent(domain.MulDiv(min(u.Used(), v.Bytes), 10_000, max(v.Bytes, 1)))
	}
	if v.FairUse > 0 {
		r.Traffic.FairUseGB = maybeGB(v.FairUse)
	}
	if !v.ExpiresAt.IsZero() {
		end := v.AsOf
		if !v.EndedAt.IsZero() {
			end = v.ExpiresAt
		}
		r.Time.RemainingSeconds = maybeInt(max(v.ExpiresAt.Sub(end), 0) / time.Second)
	}
	return r
}

// autoTopUpReply is what a session buys by itself, and why it did not when it last tried.
type autoTopUpReply struct {
	BelowPercent int       `json:"below_percent" doc:"Of the traffic."`
	AddGB        gigabytes `json:"add_gb" doc:"Of each purchase."`
	MaxPerDay    int       `json:"max_per_day" doc:"Purchases on a UTC day."`
	Refused      maybeText `json:"refused" doc:"The code for which the last purchase was refused; it is tried every minute. null: it was not."`
}

func toAutoTopUp(t session.TopUps) *autoTopUpReply {
	if t.Auto == (session.AutoTopUp{}) {
		return nil
	}
	return &autoTopUpReply{t.Auto.BelowPercent, gigabytes(t.Auto.Bytes), t.Auto.MaxPerDay, maybeText(t.Failed)}
}
