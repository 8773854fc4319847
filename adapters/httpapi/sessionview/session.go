// Package sessionview shows a session to its agent: the record, its proxies, and how a call names it. The
// families of operations on sessions share it.
package sessionview

import (
	"net/netip"
	"time"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
)

// Session is the record of a session.
type Session struct {
	SessionID    string             `json:"session_id" doc:"Never changes, whatever is rotated."`
	Type         session.Type       `json:"type" doc:"What kind it is."`
	Status       session.Status     `json:"status" doc:"Its state."`
	StatusReason value.MaybeText    `json:"status_reason" doc:"Why it ended: agent_request, traffic_exhausted, time_expired, provider_failed, provider_lost, account_disabled or operator_request. null while it lives."`
	ProductNo    string             `json:"product_no" doc:"As GET /products lists it."`
	Quantity     int                `json:"quantity" doc:"IPs; 1 for a dynamic session."`
	DurationDays value.MaybeInt     `json:"duration_days" doc:"null for a dynamic session."`
	TrafficGB    value.MaybeGB      `json:"traffic_gb" doc:"The traffic bought. null for a static session."`
	Proxy        *Proxy             `json:"proxy" doc:"How to connect; null unless the session is active."`
	Location     Location           `json:"location" doc:"Where the exits are."`
	Rotation     rotationReply      `json:"rotation" doc:"When the exit changes."`
	Health       workersHealthReply `json:"health" doc:"A short form of GET /sessions/{session_id}/health."`
	Usage        Usage              `json:"usage" doc:"A short form of GET /sessions/{session_id}/usage."`
	Cost         costReply          `json:"cost" doc:"What was charged, is held, and was given back."`
	ExpiresAt    value.MaybeStamp   `json:"expires_at" doc:"When a static session ends. null for a dynamic one and before activation."`
	IPList       []ipListReply      `json:"ip_list" doc:"The IPs of an active static session; empty otherwise."`
	Failure      *failureReply      `json:"failure" doc:"Why the session failed; null if it did not."`
	Labels       value.Labels       `json:"labels" doc:"Your own words for the session."`
	AllowedIPs   []string           `json:"allowed_ips" doc:"Networks that clients may connect from; empty: any."`
	AutoTopUp    *autoTopUpReply    `json:"auto_top_up" doc:"What a dynamic session buys by itself; null: nothing."`
	BoughtBy     *buyerReply        `json:"bought_by" doc:"The key that bought it, for whose budget its cost counts; null: not known."`
	CreatedAt    value.Stamp        `json:"created_at" doc:"When it was made."`
	ActivatedAt  value.MaybeStamp   `json:"activated_at" doc:"When the proxy was ready for use; null before."`
	EndedAt      value.MaybeStamp   `json:"ended_at" doc:"When the session ended; null while it lives."`
}

func toBuyer(b session.Buyer) *buyerReply {
	if b.KeyID == "" {
		return nil
	}
	return &buyerReply{b.KeyID, b.Name}
}

type buyerReply struct {
	KeyID string `json:"key_id" doc:"Names the key; it may have ended."`
	Name  string `json:"name" doc:"As it was then."`
}

// Proxy is an address that traffic is routed through, with its credential.
type Proxy struct {
	Protocol  session.Protocol `json:"protocol" doc:"What full_url begins with. Both work on the same port."`
	Host      string           `json:"host" doc:"The host name or address."`
	Port      int              `json:"port" minimum:"1" maximum:"65535" doc:"The port of the gateway or of the upstream."`
	Username  string           `json:"username" doc:"Letters and digits only at the gateway."`
	Password  string           `json:"password" doc:"At the gateway letters and digits only, and the same for the session's whole life."`
	FullURL   string           `json:"full_url" doc:"The address to route traffic through."`
	HTTPURL   string           `json:"http_url" doc:"The proxy's URL for HTTP clients, credential included."`
	SOCKS5URL string           `json:"socks5_url" doc:"The proxy's URL for SOCKS5 clients, credential included."`
	HTTPSURL  value.MaybeText  `json:"https_url" doc:"http_url with TLS to the proxy; null: it has none."`
}

type ipListReply struct {
	IP      string          `json:"ip" doc:"The address that targets see."`
	Country value.MaybeText `json:"country" doc:"An ISO 3166-1 alpha-2 code."`
	City    value.MaybeText `json:"city" doc:"null when none was asked for."`
	Proxy
	Exit *ExitFacts `json:"exit" doc:"null: not measured yet."`
}

// Location is where an exit is.
type Location struct {
	Country value.MaybeText `json:"country" doc:"ISO 3166-1 alpha-2; null: any."`
	City    value.MaybeText `json:"city" doc:"null: any."`
}

type rotationReply struct {
	Mode            session.RotationMode `json:"mode" doc:"When the exit changes."`
	IntervalSeconds value.MaybeInt       `json:"interval_seconds" doc:"null unless the mode is timed."`
	NextRotationAt  value.MaybeStamp     `json:"next_rotation_at" doc:"null unless the mode is timed."`
	LastRotatedAt   value.MaybeStamp     `json:"last_rotated_at" doc:"When it last rotated; null before the first time."`
	Count           int                  `json:"count" minimum:"0" doc:"How often it has rotated."`
}

// SessionHealthBrief is a health verdict in short.
type SessionHealthBrief struct {
	HealthScore    int                   `json:"health_score" minimum:"0" maximum:"100" doc:"100 is best. docs/health.md has the formula."`
	SuccessRate    value.Ratio           `json:"success_rate" doc:"The weighted part of events that were good."`
	RiskLevel      health.Risk           `json:"risk_level" doc:"The health score in words."`
	Recommendation health.Recommendation `json:"recommendation" doc:"What to do with the session."`
}

// workersHealthReply is the health of a session that may have workers.
type workersHealthReply struct {
	SessionHealthBrief
	Workers *WorkerCount `json:"workers" doc:"null without workers."`
}

// WorkerCount counts the workers of a session.
type WorkerCount struct {
	Total  int `json:"total" doc:"How many there are."`
	AtRisk int `json:"at_risk" doc:"Whose risk_level is high or critical."`
}

// ToWorkerCount writes how the workers of a session fare; nil if it has none.
func ToWorkerCount(c health.WorkerCount) *WorkerCount {
	if c.Total == 0 {
		return nil
	}
	return &WorkerCount{c.Total, c.AtRisk}
}

// Usage is what a session used and has left.
type Usage struct {
	Traffic     trafficReply `json:"traffic" doc:"Bytes that were used and are left."`
	Connections int64        `json:"connections" minimum:"0" doc:"Connections that are open now."`
	Time        timeReply    `json:"time" doc:"When it began and ends."`
	Cost        costReply    `json:"cost" doc:"What was charged, is held, and was given back."`
	AsOf        value.Stamp  `json:"as_of" doc:"At most two seconds old."`
}

type trafficReply struct {
	LimitGB        value.MaybeGB   `json:"limit_gb" doc:"null for a static session, like every limit."`
	UsedGB         value.Gigabytes `json:"used_gb" doc:"What was used, in GB of 1,000,000,000 bytes."`
	RemainingGB    value.MaybeGB   `json:"remaining_gb" doc:"What is left of the limit; null without one."`
	LimitBytes     value.MaybeInt  `json:"limit_bytes" doc:"The limit in bytes; null without one."`
	FairUseGB      value.MaybeGB   `json:"fair_use_gb" doc:"Static: GB that it may transfer in all; null: no limit."`
	UsedBytes      int64           `json:"used_bytes" minimum:"0" doc:"What was used, in bytes."`
	UploadBytes    int64           `json:"upload_bytes" minimum:"0" doc:"From the agent to targets."`
	DownloadBytes  int64           `json:"download_bytes" minimum:"0" doc:"From targets to the agent."`
	RemainingBytes value.MaybeInt  `json:"remaining_bytes" doc:"What is left of the limit; null without one."`
	Percent        value.Percent   `json:"percent" doc:"Of the traffic bought, 0 to 100, with 2 decimals. null for a static session."`
}

type timeReply struct {
	StartedAt        value.MaybeStamp `json:"started_at" doc:"When the session became active; null before."`
	ExpiresAt        value.MaybeStamp `json:"expires_at" doc:"When the session ends; null if no date is set."`
	RemainingSeconds value.MaybeInt   `json:"remaining_seconds" doc:"null for a dynamic session and before activation."`
}

type costReply struct {
	Charged  value.Money `json:"charged" doc:"What was used so far costs."`
	Held     value.Money `json:"held" doc:"Kept for what may still be used."`
	Refunded value.Money `json:"refunded" doc:"What was given back, in US dollars."`
	// Forfeited is 0 while the session lives.
	Forfeited value.Money `json:"forfeited" doc:"What you gave up by ending fixed IPs before their time."`
	Currency  string      `json:"currency" enum:"USD" doc:"Of all amounts."`
}

type failureReply struct {
	Code    string `json:"code" doc:"For programs; it does not change."`
	Message string `json:"message" doc:"For people: what is wrong and what to do."`
}

// ToSession returns the reply that shows a session to its agent.
func (g Gateway) ToSession(v sessions.View) Session {
	r := Session{
		SessionID: v.ID, Type: v.Type, Status: v.Status, StatusReason: value.MaybeText(v.Reason),
		ProductNo: v.ProductNo, Quantity: v.Quantity, DurationDays: -1, TrafficGB: -1,
		Location: Location{value.MaybeText(v.Location.Country), value.MaybeText(v.Location.City)},
		Rotation: rotationReply{Mode: v.Rotation.Mode, IntervalSeconds: -1,
			NextRotationAt: value.MaybeStamp(v.Rotation.NextAt), LastRotatedAt: value.MaybeStamp(v.Rotation.LastAt),
			Count: v.Rotation.Count},
		Health: workersHealthReply{ToHealthBrief(v.Verdict), ToWorkerCount(v.Workers)},
		Usage:  ToUsage(v), Cost: toCost(v.Cost),
		ExpiresAt: value.MaybeStamp(v.ExpiresAt), IPList: []ipListReply{},
		BoughtBy: toBuyer(v.BoughtBy), CreatedAt: value.Stamp(v.CreatedAt), ActivatedAt: value.MaybeStamp(v.ActivatedAt),
		EndedAt: value.MaybeStamp(v.EndedAt),
		Labels:  value.Labels(v.Labels), AllowedIPs: value.Each(v.AllowedIPs, netip.Prefix.String),
		AutoTopUp: toAutoTopUp(v.Session),
	}
	if v.Type == session.Static {
		r.DurationDays = value.MaybeInt(v.Days)
	} else {
		r.TrafficGB = value.MaybeGB(v.Bytes)
	}
	if v.Rotation.Mode == session.Timed {
		r.Rotation.IntervalSeconds = value.MaybeInt(v.Rotation.Interval / time.Second)
	}
	if v.Status.Over() {
		r.Rotation.NextRotationAt = value.MaybeStamp{}
	}
	if v.Failure.Code != "" {
		r.Failure = &failureReply{v.Failure.Code, v.Failure.Message}
	}
	if v.Status == session.Active {
		g.showProxy(&r, v)
	}
	return r
}

// WithoutAccess returns the session without its proxies, and so without a password.
func (r Session) WithoutAccess() Session {
	r.Proxy, r.IPList = nil, []ipListReply{}
	return r
}

// ToHealthBrief returns the reply that shows a verdict in short.
func ToHealthBrief(v health.Verdict) SessionHealthBrief {
	return SessionHealthBrief{v.HealthScore, value.Ratio(v.SuccessRate), v.RiskLevel, v.Recommendation}
}

func toCost(c sessions.Cost) costReply {
	return costReply{value.Money(c.Charged), value.Money(c.Held), value.Money(c.Refunded), value.Money(c.Forfeited),
		domain.Currency}
}

// ToUsage returns the reply that shows what a session used and has left.
func ToUsage(v sessions.View) Usage {
	u := v.Usage
	r := Usage{
		Traffic: trafficReply{LimitGB: -1, UsedGB: value.Gigabytes(u.Used()), RemainingGB: -1, LimitBytes: -1,
			UsedBytes: u.Used(), UploadBytes: u.Up, DownloadBytes: u.Down, RemainingBytes: -1, Percent: -1,
			FairUseGB: -1},
		Connections: u.Connections,
		Time:        timeReply{value.MaybeStamp(v.ActivatedAt), value.MaybeStamp(v.ExpiresAt), -1},
		Cost:        toCost(v.Cost),
		AsOf:        value.Stamp(v.AsOf),
	}
	if v.Type == session.Dynamic {
		left := max(v.Bytes-u.Used(), 0)
		r.Traffic.LimitGB, r.Traffic.LimitBytes = value.MaybeGB(v.Bytes), value.MaybeInt(v.Bytes)
		r.Traffic.RemainingGB, r.Traffic.RemainingBytes = value.MaybeGB(left), value.MaybeInt(left)
		r.Traffic.Percent = value.Percent(domain.MulDiv(min(u.Used(), v.Bytes), 10_000, max(v.Bytes, 1)))
	}
	if v.FairUse > 0 {
		r.Traffic.FairUseGB = value.MaybeGB(v.FairUse)
	}
	if !v.ExpiresAt.IsZero() {
		end := v.AsOf
		if !v.EndedAt.IsZero() {
			end = v.ExpiresAt
		}
		r.Time.RemainingSeconds = value.MaybeInt(max(v.ExpiresAt.Sub(end), 0) / time.Second)
	}
	return r
}

// autoTopUpReply is what a session buys by itself, and why it did not when it last tried.
type autoTopUpReply struct {
	BelowPercent int             `json:"below_percent" doc:"Of the traffic."`
	AddGB        value.Gigabytes `json:"add_gb" doc:"Of each purchase."`
	MaxPerDay    int             `json:"max_per_day" doc:"Purchases on a UTC day."`
	MaxPrice     value.Money     `json:"max_price_per_gb" doc:"The most that auto_top_up pays; default: the session's price."`
	Refused      value.MaybeText `json:"refused" doc:"The code for which the last purchase was refused; it is tried every minute. null: it was not."`
}

func toAutoTopUp(s session.Session) *autoTopUpReply {
	t := s.TopUps
	if t.Auto == (session.AutoTopUp{}) {
		return nil
	}
	return &autoTopUpReply{t.Auto.BelowPercent, value.Gigabytes(t.Auto.Bytes), t.Auto.MaxPerDay,
		value.Money(s.MaxTopUpPrice()), value.MaybeText(t.Failed)}
}
