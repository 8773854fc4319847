// Code generated from the OpenAPI document by go generate; DO NOT EDIT.

package apiclient

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// AddTraffic is what AddTraffic of Client takes.
type AddTraffic struct {
	// US dollars with at most 6 decimals; a dearer addition is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// At most 3 decimals, within the product's bounds.
	TrafficGB json.Number `json:"traffic_gb"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// AddTraffic sends POST /v1/sessions/{session_id}/traffic: add traffic to a dynamic session.
//
// Held at today's price; what was bought before keeps its own. The address stays. What is left at the end comes
// back.
func (c *Client) AddTraffic(ctx context.Context, sessionID string, in AddTraffic, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/traffic", ids: []string{sessionID}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// AddTrafficDryRun sends POST /v1/sessions/{session_id}/traffic: add traffic to a dynamic session, as a dry
// run, which answers the cost and stores nothing.
func (c *Client) AddTrafficDryRun(ctx context.Context, sessionID string, in AddTraffic, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/traffic", ids: []string{sessionID}, query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// ChangeKey is what ChangeKey of Client takes.
type ChangeKey struct {
	// In US dollars above 0; null: no limit.
	Budget Optional[KeyBudgetRequest] `json:"budget,omitzero"`
	// Live ones at a time; null: no limit.
	MaxSessions Optional[int] `json:"max_sessions,omitzero"`
	// The only products that it buys; null: all.
	Products Optional[[]string] `json:"products,omitzero"`
	// own: sessions of other keys do not exist for it.
	Sessions Optional[KeyReach] `json:"sessions,omitzero"`
}

// ChangeKey sends PATCH /v1/account/keys/{key_id}: change what restricts an API key.
//
// A field that is left out stays; null removes a limit. A restricted key spends on sessions that it bought
// alone and changes nothing of the account. In force at once, on other replicas within a second.
func (c *Client) ChangeKey(ctx context.Context, keyID string, in ChangeKey, options ...Option) (out Key, err error) {
	err = c.call(ctx, request{method: "PATCH", path: "/account/keys/{key_id}", ids: []string{keyID}, body: in}, &out, options)
	return out, err
}

// ChangeSession is what ChangeSession of Client takes.
type ChangeSession struct {
	// Addresses and networks (CIDR) that clients may connect from; [] is anywhere.
	AllowedIPs []string `json:"allowed_ips,omitzero"`
	// null turns it off.
	AutoTopUp Optional[AutoTopUpRequest] `json:"auto_top_up,omitzero"`
	// Replaces all labels; {} removes them.
	Labels map[string]string `json:"labels,omitzero"`
}

// ChangeSession sends PATCH /v1/sessions/{session_id}: change the settings of a session.
//
// A field that is left out stays as it is.
func (c *Client) ChangeSession(ctx context.Context, sessionID string, in ChangeSession, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "PATCH", path: "/sessions/{session_id}", ids: []string{sessionID}, body: in}, &out, options)
	return out, err
}

// CheckSession is what CheckSession of Client takes.
type CheckSession struct {
	// An address of a static session in place of its first.
	IP string `json:"ip,omitzero"`
	// Its exit in place of the session's; made if it is new.
	Worker string `json:"worker,omitzero"`
}

// CheckSession sends POST /v1/sessions/{session_id}/check: try one connection through the exit.
//
// To the service's own echo. Free; 10 a minute.
func (c *Client) CheckSession(ctx context.Context, sessionID string, in CheckSession, options ...Option) (out Check, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/check", ids: []string{sessionID}, body: in}, &out, options)
	return out, err
}

// ConnectSession is what ConnectSession of Client takes. A field with the zero value is left out.
type ConnectSession struct {
	// curl is the default.
	Client string
	// How many, named w1 and so on, or names separated by commas.
	Workers string
	// A browser shows the time zone and locale of its exit.
	Passport bool
	// Of the exits; ISO 3166-1 alpha-2.
	Country string
}

func (in ConnectSession) query() (q query) {
	q.text("client", in.Client)
	q.text("workers", in.Workers)
	q.flag("passport", in.Passport)
	q.text("country", in.Country)
	return q
}

// ConnectSession sends GET /v1/sessions/{session_id}/connect: how a client is configured.
//
// What to write so that a client uses the session, and a proxy for each worker.
func (c *Client) ConnectSession(ctx context.Context, sessionID string, in ConnectSession, options ...Option) (out Connect, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/connect", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// CreateKey is what CreateKey of Client takes.
type CreateKey struct {
	// In US dollars above 0; null: no limit.
	Budget KeyBudgetRequest `json:"budget,omitzero"`
	// When the key ends, in the future. Left out: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Live ones at a time; null: no limit.
	MaxSessions int `json:"max_sessions,omitzero"`
	// 2 to 100 characters after trimming, no control characters.
	Name string `json:"name"`
	// None that the caller lacks; empty: all of the caller's.
	Permissions []Permission `json:"permissions,omitzero"`
	// The only products that it buys; null: all.
	Products []string `json:"products,omitzero"`
	// own: sessions of other keys do not exist for it.
	Sessions KeyReach `json:"sessions,omitzero"`
}

// CreateKey sends POST /v1/account/keys: issue a further API key.
//
// At most 20 keys, the first one included. A key holds no permission that the credential of this call lacks,
// and ends with the key of this call at the latest.
func (c *Client) CreateKey(ctx context.Context, in CreateKey, options ...Option) (out IssuedKey, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/keys", body: in}, &out, options)
	return out, err
}

// CreateRecharge is what CreateRecharge of Client takes.
type CreateRecharge struct {
	// US dollars with at most 2 decimals; 1 USDT is 1 USD.
	Amount json.Number `json:"amount"`
	// Of amount; USD is the only one.
	Currency string `json:"currency,omitzero"`
	// TRC20 is the only one.
	Network string `json:"network,omitzero"`
	// usdt is the default and the only one.
	PaymentMethod string `json:"payment_method,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// CreateRecharge sends POST /v1/billing/recharge: order a recharge in USDT.
//
// Answers where to send amount_usdt in USDT (TRC20) before expire_time; then poll the status until it is paid.
// The exchange's fee comes on top. The address is the agent's own and stays: every final transfer to it is
// credited once, with or without an order. At most 10 orders are open at a time. dry_run creates nothing.
func (c *Client) CreateRecharge(ctx context.Context, in CreateRecharge, options ...Option) (out Recharge, err error) {
	err = c.call(ctx, request{method: "POST", path: "/billing/recharge", body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// CreateRechargeDryRun sends POST /v1/billing/recharge: order a recharge in USDT, as a dry run, which answers
// the cost and stores nothing.
func (c *Client) CreateRechargeDryRun(ctx context.Context, in CreateRecharge, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/billing/recharge", query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// CreateSession is what CreateSession of Client takes.
type CreateSession struct {
	// Addresses and networks (CIDR) that clients may connect from; empty is anywhere. Both forms.
	AllowedIPs []string `json:"allowed_ips,omitzero"`
	// What a dynamic session buys by itself.
	AutoTopUp AutoTopUpRequest `json:"auto_top_up,omitzero"`
	// Makes the body nested.
	Config CreateConfig `json:"config"`
	// Your own words for the session. Both forms.
	Labels map[string]string `json:"labels,omitzero"`
	// US dollars with at most 6 decimals; a dearer session is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// What the session may reach, as in PUT /sessions/{session_id}/policy. Both forms.
	Policy PolicyRequest `json:"policy,omitzero"`
	// existing attaches to the newest live session of the product. purchase is the default.
	ProvisioningMode ProvisioningMode `json:"provisioning_mode,omitzero"`
	// What exits must be; {}: anything. It stays with the session.
	Require Require `json:"require,omitzero"`
	// Required in the nested form.
	Type SessionType `json:"type"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// CreateSession sends POST /v1/sessions: buy a proxy session.
//
// Takes either of two forms. Nested: type and config. Flat: session_type and the fields of the session at the
// top level. A body with config is nested. max_cost and provisioning_mode count in both places. Rules that
// depend on the product are in GET /products.
func (c *Client) CreateSession(ctx context.Context, in CreateSession, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions", body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// CreateSessionDryRun sends POST /v1/sessions: buy a proxy session, as a dry run, which answers the cost and
// stores nothing.
func (c *Client) CreateSessionDryRun(ctx context.Context, in CreateSession, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions", query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// CreateSessionFlat is what CreateSessionFlat of Client takes.
type CreateSessionFlat struct {
	// Addresses and networks (CIDR) that clients may connect from; empty is anywhere. Both forms.
	AllowedIPs []string `json:"allowed_ips,omitzero"`
	// What a dynamic session buys by itself.
	AutoTopUp AutoTopUpRequest `json:"auto_top_up,omitzero"`
	// A city that the product offers in the country.
	City string `json:"city,omitzero"`
	// The product's first is the default for a static session.
	CountryCode string `json:"country_code,omitzero"`
	// Days. The product's shortest is the default.
	Duration int `json:"duration,omitzero"`
	// Your own words for the session. Both forms.
	Labels map[string]string `json:"labels,omitzero"`
	// US dollars with at most 6 decimals; a dearer session is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// What the session may reach, as in PUT /sessions/{session_id}/policy. Both forms.
	Policy PolicyRequest `json:"policy,omitzero"`
	// Flat form, like the fields that follow.
	ProductNo string `json:"product_no"`
	// http is the default.
	Protocol Protocol `json:"protocol,omitzero"`
	// existing attaches to the newest live session of the product. purchase is the default.
	ProvisioningMode ProvisioningMode `json:"provisioning_mode,omitzero"`
	// Static: IPs, 1 to 100. Dynamic without traffic_gb: GB.
	Quantity json.Number `json:"quantity,omitzero"`
	// What exits must be; {}: anything. It stays with the session.
	Require Require `json:"require,omitzero"`
	// Seconds between two timed rotations; for mode timed.
	RotationIntervalSeconds int `json:"rotation_interval_seconds,omitzero"`
	// on_demand is the default. timed needs rotation_interval_seconds. fixed never rotates by itself.
	RotationMode RotationMode `json:"rotation_mode,omitzero"`
	// Required in the flat form.
	SessionType SessionType `json:"session_type"`
	// At most 3 decimals.
	TrafficGB json.Number `json:"traffic_gb,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// CreateSessionFlat sends POST /v1/sessions: buy a proxy session.
//
// Takes either of two forms. Nested: type and config. Flat: session_type and the fields of the session at the
// top level. A body with config is nested. max_cost and provisioning_mode count in both places. Rules that
// depend on the product are in GET /products.
func (c *Client) CreateSessionFlat(ctx context.Context, in CreateSessionFlat, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions", body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// CreateSessionFlatDryRun sends POST /v1/sessions: buy a proxy session, as a dry run, which answers the cost
// and stores nothing.
func (c *Client) CreateSessionFlatDryRun(ctx context.Context, in CreateSessionFlat, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions", query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// DeleteKey is what DeleteKey of Client takes. A field with the zero value is left out.
type DeleteKey struct {
	// Whether the keys that it issued end with it, which is the default.
	Children string
	// Whether live sessions that it bought end with it; they are kept by default.
	Sessions string
}

func (in DeleteKey) query() (q query) {
	q.text("children", in.Children)
	q.text("sessions", in.Sessions)
	return q
}

// DeleteKey sends DELETE /v1/account/keys/{key_id}: end a further API key.
//
// At once, on every replica within a second. The first key is replaced with POST /account/rotate-key instead.
func (c *Client) DeleteKey(ctx context.Context, keyID string, in DeleteKey, options ...Option) (out Keys, err error) {
	err = c.call(ctx, request{method: "DELETE", path: "/account/keys/{key_id}", ids: []string{keyID}, query: in.query()}, &out, options)
	return out, err
}

// DeleteSession sends DELETE /v1/sessions/{session_id}: end a session.
//
// The same as terminate.
func (c *Client) DeleteSession(ctx context.Context, sessionID string, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "DELETE", path: "/sessions/{session_id}", ids: []string{sessionID}}, &out, options)
	return out, err
}

// DeleteSessionDryRun sends DELETE /v1/sessions/{session_id}: end a session, as a dry run, which answers the
// cost and stores nothing.
func (c *Client) DeleteSessionDryRun(ctx context.Context, sessionID string, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "DELETE", path: "/sessions/{session_id}", ids: []string{sessionID}, query: query{{"dry_run", "true"}}, safe: true}, &out, options)
	return out, err
}

// DeleteWorker sends DELETE /v1/sessions/{session_id}/workers/{name}: remove a worker.
//
// Its tunnels are cut and its exit is free. What it used stays in the session's usage.
func (c *Client) DeleteWorker(ctx context.Context, sessionID, name string, options ...Option) (out Worker, err error) {
	err = c.call(ctx, request{method: "DELETE", path: "/sessions/{session_id}/workers/{name}", ids: []string{sessionID, name}}, &out, options)
	return out, err
}

// GetAccount sends GET /v1/account/info: the account.
//
// Its profile, tier, rate limit, trial and referring agent. It is the cheapest call that proves a credential.
func (c *Client) GetAccount(ctx context.Context, options ...Option) (out Account, err error) {
	err = c.call(ctx, request{method: "GET", path: "/account/info", safe: true}, &out, options)
	return out, err
}

// GetBalance sends GET /v1/billing/balance: the balance.
//
// What can be spent, what is held for live sessions, and what of it is trial credit.
func (c *Client) GetBalance(ctx context.Context, options ...Option) (out Balance, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/balance", safe: true}, &out, options)
	return out, err
}

// GetBudget sends GET /v1/billing/budget: the agent's own spending guard.
//
// The limits that the agent has set for itself by PUT /billing/budget, and what it has spent.
func (c *Client) GetBudget(ctx context.Context, options ...Option) (out Budget, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/budget", safe: true}, &out, options)
	return out, err
}

// GetCostStats is what GetCostStats of Client takes. A field with the zero value is left out.
type GetCostStats struct {
	// Only sessions that this key bought.
	Key string
	// day is the default.
	Granularity Granularity
	// YYYY-MM-DD or RFC 3339, inclusive. Seven days before the end is the default.
	StartDate string
	// YYYY-MM-DD or RFC 3339, exclusive. The end of the current bucket is the default.
	EndDate string
}

func (in GetCostStats) query() (q query) {
	q.text("key", in.Key)
	q.text("granularity", string(in.Granularity))
	q.text("start_date", in.StartDate)
	q.text("end_date", in.EndDate)
	return q
}

// GetCostStats sends GET /v1/stats/cost: money over time.
//
// At most 92 days. With Accept: text/csv the items are a table; Link has the address of those that follow.
func (c *Client) GetCostStats(ctx context.Context, in GetCostStats, options ...Option) (out CostStats, err error) {
	err = c.call(ctx, request{method: "GET", path: "/stats/cost", query: in.query(), safe: true}, &out, options)
	return out, err
}

// GetCostStatsCSV sends GET /v1/stats/cost: money over time, as CSV.
func (c *Client) GetCostStatsCSV(ctx context.Context, in GetCostStats, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/stats/cost", query: in.query(), accept: "text/csv", safe: true}, options)
}

// GetHealth sends GET /v1/health: whether the service can answer.
//
// For load balancers: 200 while the database answers.
func (c *Client) GetHealth(ctx context.Context, options ...Option) (out Health, err error) {
	err = c.call(ctx, request{method: "GET", path: "/health", safe: true}, &out, options)
	return out, err
}

// GetIP sends GET /v1/ip: the address that the request came from.
//
// Through a proxy session it is the exit, so a call shows whether the session works.
func (c *Client) GetIP(ctx context.Context, options ...Option) (out IP, err error) {
	err = c.call(ctx, request{method: "GET", path: "/ip", safe: true}, &out, options)
	return out, err
}

// GetLimits sends GET /v1/account/limits: what the account may still do now.
//
// The limits in force with what is left of them, before a call is refused for one.
func (c *Client) GetLimits(ctx context.Context, options ...Option) (out Limits, err error) {
	err = c.call(ctx, request{method: "GET", path: "/account/limits", safe: true}, &out, options)
	return out, err
}

// GetOpenAPI sends GET /v1/openapi.json: this document.
//
// It is the same at /openapi.json, and has an ETag.
func (c *Client) GetOpenAPI(ctx context.Context, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/openapi.json", accept: "application/json", safe: true}, options)
}

// GetOverview is what GetOverview of Client takes. A field with the zero value is left out.
type GetOverview struct {
	// Only sessions that this key bought.
	Key string
}

func (in GetOverview) query() (q query) {
	q.text("key", in.Key)
	return q
}

// GetOverview sends GET /v1/stats/overview: one look at the account.
//
// Sessions, traffic, balance and events of the account in one answer. With key, and for a key with own, those
// of its sessions: the balance is what its limits leave, and of the events those of live sessions count.
func (c *Client) GetOverview(ctx context.Context, in GetOverview, options ...Option) (out Overview, err error) {
	err = c.call(ctx, request{method: "GET", path: "/stats/overview", query: in.query(), safe: true}, &out, options)
	return out, err
}

// GetRechargeQR sends GET /v1/billing/recharge/{order_id}/qr: the wallet address of an order as a QR code.
//
// The code holds wallet_address alone; enter amount_usdt by hand.
func (c *Client) GetRechargeQR(ctx context.Context, orderID string, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/recharge/{order_id}/qr", ids: []string{orderID}, accept: "image/png", safe: true}, options)
}

// GetRechargeStatus sends GET /v1/billing/recharge/{order_id}/status: how far a recharge order is.
//
// Poll every few seconds until paid. An order that expired is still paid by money that comes within 72 hours;
// later money is credited without the order.
func (c *Client) GetRechargeStatus(ctx context.Context, orderID string, options ...Option) (out RechargeStatus, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/recharge/{order_id}/status", ids: []string{orderID}, safe: true}, &out, options)
	return out, err
}

// GetSession sends GET /v1/sessions/{session_id}: one session.
//
// With proxy, which holds the credential, while the session is active.
func (c *Client) GetSession(ctx context.Context, sessionID string, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}", ids: []string{sessionID}, safe: true}, &out, options)
	return out, err
}

// GetSessionExit is what GetSessionExit of Client takes. A field with the zero value is left out.
type GetSessionExit struct {
	// Its exit in place of the session's.
	Worker string
}

func (in GetSessionExit) query() (q query) {
	q.text("worker", in.Worker)
	return q
}

// GetSessionExit sends GET /v1/sessions/{session_id}/exit: what was measured of the exit.
//
// If nothing was yet, it measures as check does.
func (c *Client) GetSessionExit(ctx context.Context, sessionID string, in GetSessionExit, options ...Option) (out ExitFacts, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/exit", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// GetSessionHealth sends GET /v1/sessions/{session_id}/health: how the current exit fares, and what to do.
//
// Made from what the agent reported and from what the gateway saw. docs/health.md has the formula.
func (c *Client) GetSessionHealth(ctx context.Context, sessionID string, options ...Option) (out SessionHealth, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/health", ids: []string{sessionID}, safe: true}, &out, options)
	return out, err
}

// GetSessionPolicy sends GET /v1/sessions/{session_id}/policy: what a session may reach.
//
// By its own rules. Those of the operator and of the product come first and are not shown.
func (c *Client) GetSessionPolicy(ctx context.Context, sessionID string, options ...Option) (out Policy, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/policy", ids: []string{sessionID}, safe: true}, &out, options)
	return out, err
}

// GetSessionUsage sends GET /v1/sessions/{session_id}/usage: what a session used and has left.
//
// Bytes, time and cost. as_of is when the figures were taken.
func (c *Client) GetSessionUsage(ctx context.Context, sessionID string, options ...Option) (out Usage, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/usage", ids: []string{sessionID}, safe: true}, &out, options)
	return out, err
}

// GetStatement is what GetStatement of Client takes. A field with the zero value is left out.
type GetStatement struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only sessions that this key bought.
	Key string
	// key adds by_key, the sums of each key.
	By string
}

func (in GetStatement) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("key", in.Key)
	q.text("by", in.By)
	return q
}

// GetStatement sends GET /v1/billing/statements/{month}: what a month did to the balance.
//
// With Accept: text/html a page to print. With key what its sessions did, the balances too. With Accept:
// text/csv the items are a table; Link has the address of those that follow.
func (c *Client) GetStatement(ctx context.Context, month string, in GetStatement, options ...Option) (out Statement, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/statements/{month}", ids: []string{month}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllStatement returns the items of all pages of GetStatement, from the given one on. It stops after an error.
func (c *Client) AllStatement(ctx context.Context, month string, in GetStatement, options ...Option) iter.Seq2[StatementItem, error] {
	return each(func(cursor string) ([]StatementItem, string, error) {
		in := in.after(cursor)
		page, err := c.GetStatement(ctx, month, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in GetStatement) after(cursor string) GetStatement {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// GetStatementCSV sends GET /v1/billing/statements/{month}: what a month did to the balance, as CSV.
func (c *Client) GetStatementCSV(ctx context.Context, month string, in GetStatement, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/statements/{month}", ids: []string{month}, query: in.query(), accept: "text/csv", safe: true}, options)
}

// GetStatementHTML sends GET /v1/billing/statements/{month}: what a month did to the balance, as HTML.
func (c *Client) GetStatementHTML(ctx context.Context, month string, in GetStatement, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/statements/{month}", ids: []string{month}, query: in.query(), accept: "text/html", safe: true}, options)
}

// GetTrafficStats is what GetTrafficStats of Client takes. A field with the zero value is left out.
type GetTrafficStats struct {
	// Only sessions that this key bought.
	Key string
	// day is the default.
	Granularity Granularity
	// YYYY-MM-DD or RFC 3339, inclusive. Seven days before the end is the default.
	StartDate string
	// YYYY-MM-DD or RFC 3339, exclusive. The end of the current bucket is the default.
	EndDate string
}

func (in GetTrafficStats) query() (q query) {
	q.text("key", in.Key)
	q.text("granularity", string(in.Granularity))
	q.text("start_date", in.StartDate)
	q.text("end_date", in.EndDate)
	return q
}

// GetTrafficStats sends GET /v1/stats/traffic: traffic over time.
//
// At most 92 days. With Accept: text/csv the items are a table; Link has the address of those that follow.
func (c *Client) GetTrafficStats(ctx context.Context, in GetTrafficStats, options ...Option) (out TrafficStats, err error) {
	err = c.call(ctx, request{method: "GET", path: "/stats/traffic", query: in.query(), safe: true}, &out, options)
	return out, err
}

// GetTrafficStatsCSV sends GET /v1/stats/traffic: traffic over time, as CSV.
func (c *Client) GetTrafficStatsCSV(ctx context.Context, in GetTrafficStats, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/stats/traffic", query: in.query(), accept: "text/csv", safe: true}, options)
}

// GetUsageReport is what GetUsageReport of Client takes. A field with the zero value is left out.
type GetUsageReport struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only sessions that this key bought.
	Key string
	// key adds by_key, the sums of each key.
	By string
	// The current UTC day, or the last 7 or 30 days with it. day is the default.
	Period Period
}

func (in GetUsageReport) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("key", in.Key)
	q.text("by", in.By)
	q.text("period", string(in.Period))
	return q
}

// GetUsageReport sends GET /v1/billing/usage-report: what each session used and cost in a period.
//
// By session, and the sum of all, for the current UTC day, or the last 7 or 30 days with it. All sessions,
// unless page, page_size or cursor asks for a page of them. With Accept: text/csv the items are a table; Link
// has the address of those that follow.
func (c *Client) GetUsageReport(ctx context.Context, in GetUsageReport, options ...Option) (out Report, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/usage-report", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllUsageReport returns the items of all pages of GetUsageReport, from the given one on. It stops after an
// error.
func (c *Client) AllUsageReport(ctx context.Context, in GetUsageReport, options ...Option) iter.Seq2[ReportItem, error] {
	return each(func(cursor string) ([]ReportItem, string, error) {
		in := in.after(cursor)
		page, err := c.GetUsageReport(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in GetUsageReport) after(cursor string) GetUsageReport {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// GetUsageReportCSV sends GET /v1/billing/usage-report: what each session used and cost in a period, as CSV.
func (c *Client) GetUsageReportCSV(ctx context.Context, in GetUsageReport, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/usage-report", query: in.query(), accept: "text/csv", safe: true}, options)
}

// GetWebhook sends GET /v1/account/webhook: where events go, and whether they arrive.
//
// The URL, whether it is enabled, and the outcome of recent deliveries.
func (c *Client) GetWebhook(ctx context.Context, options ...Option) (out Webhook, err error) {
	err = c.call(ctx, request{method: "GET", path: "/account/webhook", safe: true}, &out, options)
	return out, err
}

// GetWorker sends GET /v1/sessions/{session_id}/workers/{name}: one worker.
//
// With its usage and health.
func (c *Client) GetWorker(ctx context.Context, sessionID, name string, options ...Option) (out Worker, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/workers/{name}", ids: []string{sessionID, name}, safe: true}, &out, options)
	return out, err
}

// IssueToken is what IssueToken of Client takes.
type IssueToken struct {
	// The API key of the registration, or a further key.
	APIKey string `json:"api_key"`
	// The secret that was shown at the registration or by rotate-secret.
	APISecret string `json:"api_secret"`
	// Fewer permissions than those of the key; empty: those of the key.
	Permissions []Permission `json:"permissions,omitzero"`
}

// IssueToken sends POST /v1/auth/token: exchange the key and the secret for a Bearer token.
//
// The token lives for an hour and has the permissions of the key, or those that are asked for. The key itself
// may be sent with every call instead.
func (c *Client) IssueToken(ctx context.Context, in IssueToken, options ...Option) (out Token, err error) {
	err = c.call(ctx, request{method: "POST", path: "/auth/token", body: in}, &out, options)
	return out, err
}

// ListEvents is what ListEvents of Client takes. A field with the zero value is left out.
type ListEvents struct {
	// The next of the answer before; left out: from the oldest event that is kept.
	After string
	// Only these types, with commas between them.
	Types string
	// Events of an answer at most. Above 100 is served as 100.
	Limit int
	// Seconds to wait for the first event if there is none.
	Wait int
}

func (in ListEvents) query() (q query) {
	q.text("after", in.After)
	q.text("types", in.Types)
	q.number("limit", in.Limit)
	q.number("wait", in.Wait)
	return q
}

// ListEvents sends GET /v1/events: what happened to the account, and wait for what happens.
//
// What webhooks are sent, whether or not one is set, kept 30 days. None is skipped or repeated. With wait the
// answer comes within a second of the first event, on any replica, or empty; 8 calls may wait at a time.
// session.* needs sessions:read, and recharge.*, balance.*, budget.* and trial.* need billing:read: without it
// they are left out. A key with own sees those of its own sessions alone.
func (c *Client) ListEvents(ctx context.Context, in ListEvents, options ...Option) (out Feed, err error) {
	err = c.call(ctx, request{method: "GET", path: "/events", query: in.query(), safe: true}, &out, options)
	return out, err
}

// ListKeys is what ListKeys of Client takes. A field with the zero value is left out.
type ListKeys struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
}

func (in ListKeys) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	return q
}

// ListKeys sends GET /v1/account/keys: the API keys of the account, newest first.
//
// The first key, of the registration, is among them. No key is shown again, only its last characters.
func (c *Client) ListKeys(ctx context.Context, in ListKeys, options ...Option) (out Keys, err error) {
	err = c.call(ctx, request{method: "GET", path: "/account/keys", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllKeys returns the items of all pages of ListKeys, from the given one on. It stops after an error.
func (c *Client) AllKeys(ctx context.Context, in ListKeys, options ...Option) iter.Seq2[Key, error] {
	return each(func(cursor string) ([]Key, string, error) {
		in := in.after(cursor)
		page, err := c.ListKeys(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListKeys) after(cursor string) ListKeys {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListProducts is what ListProducts of Client takes. A field with the zero value is left out.
type ListProducts struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// all is the default.
	Type SessionTypeFilter
	// Only what is sold in this country.
	CountryCode string
	// Leave out what is not available.
	AvailableOnly bool
}

func (in ListProducts) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("type", string(in.Type))
	q.text("country_code", in.CountryCode)
	q.flag("available_only", in.AvailableOnly)
	return q
}

// ListProducts sends GET /v1/products: what is sold.
//
// Prices, bounds and places. product_no goes into POST /sessions.
func (c *Client) ListProducts(ctx context.Context, in ListProducts, options ...Option) (out Products, err error) {
	err = c.call(ctx, request{method: "GET", path: "/products", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllProducts returns the items of all pages of ListProducts, from the given one on. It stops after an error.
func (c *Client) AllProducts(ctx context.Context, in ListProducts, options ...Option) iter.Seq2[Product, error] {
	return each(func(cursor string) ([]Product, string, error) {
		in := in.after(cursor)
		page, err := c.ListProducts(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListProducts) after(cursor string) ListProducts {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListPublicProducts is what ListPublicProducts of Client takes. A field with the zero value is left out.
type ListPublicProducts struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// all is the default.
	Type SessionTypeFilter
	// Only what is sold in this country.
	CountryCode string
	// Leave out what is not available.
	AvailableOnly bool
}

func (in ListPublicProducts) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("type", string(in.Type))
	q.text("country_code", in.CountryCode)
	q.flag("available_only", in.AvailableOnly)
	return q
}

// ListPublicProducts sends GET /v1/public/products: what is sold, without a credential.
//
// The same list as GET /products, for those who have no account yet.
func (c *Client) ListPublicProducts(ctx context.Context, in ListPublicProducts, options ...Option) (out Products, err error) {
	err = c.call(ctx, request{method: "GET", path: "/public/products", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllPublicProducts returns the items of all pages of ListPublicProducts, from the given one on. It stops after
// an error.
func (c *Client) AllPublicProducts(ctx context.Context, in ListPublicProducts, options ...Option) iter.Seq2[Product, error] {
	return each(func(cursor string) ([]Product, string, error) {
		in := in.after(cursor)
		page, err := c.ListPublicProducts(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListPublicProducts) after(cursor string) ListPublicProducts {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListRecharges is what ListRecharges of Client takes. A field with the zero value is left out.
type ListRecharges struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only orders in this state.
	Status RechargeState
}

func (in ListRecharges) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("status", string(in.Status))
	return q
}

// ListRecharges sends GET /v1/billing/recharge: the agent's recharge orders, newest first.
//
// Orders of every state. With Accept: text/csv the items are a table; Link has the address of those that
// follow.
func (c *Client) ListRecharges(ctx context.Context, in ListRecharges, options ...Option) (out Recharges, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/recharge", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllRecharges returns the items of all pages of ListRecharges, from the given one on. It stops after an error.
func (c *Client) AllRecharges(ctx context.Context, in ListRecharges, options ...Option) iter.Seq2[Recharge, error] {
	return each(func(cursor string) ([]Recharge, string, error) {
		in := in.after(cursor)
		page, err := c.ListRecharges(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListRecharges) after(cursor string) ListRecharges {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListRechargesCSV sends GET /v1/billing/recharge: the agent's recharge orders, newest first, as CSV.
func (c *Client) ListRechargesCSV(ctx context.Context, in ListRecharges, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/recharge", query: in.query(), accept: "text/csv", safe: true}, options)
}

// ListRegions sends GET /v1/products/regions: where something is sold.
//
// Countries, by ISO 3166-1 alpha-2 code, with what is sold in each.
func (c *Client) ListRegions(ctx context.Context, options ...Option) (out Regions, err error) {
	err = c.call(ctx, request{method: "GET", path: "/products/regions", safe: true}, &out, options)
	return out, err
}

// ListSessionClients is what ListSessionClients of Client takes. A field with the zero value is left out.
type ListSessionClients struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
}

func (in ListSessionClients) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	return q
}

// ListSessionClients sends GET /v1/sessions/{session_id}/clients: which addresses a session is used from.
//
// With the right password, the newest first; kept for 30 days. A connection counts when it ends, and is listed
// within four seconds.
func (c *Client) ListSessionClients(ctx context.Context, sessionID string, in ListSessionClients, options ...Option) (out Clients, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/clients", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllSessionClients returns the items of all pages of ListSessionClients, from the given one on. It stops after
// an error.
func (c *Client) AllSessionClients(ctx context.Context, sessionID string, in ListSessionClients, options ...Option) iter.Seq2[ClientAddress, error] {
	return each(func(cursor string) ([]ClientAddress, string, error) {
		in := in.after(cursor)
		page, err := c.ListSessionClients(ctx, sessionID, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListSessionClients) after(cursor string) ListSessionClients {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListSessionEvents is what ListSessionEvents of Client takes. A field with the zero value is left out.
type ListSessionEvents struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
}

func (in ListSessionEvents) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	return q
}

// ListSessionEvents sends GET /v1/sessions/{session_id}/events: the last things that happened to a session.
//
// Newest first, kept 7 days. What an HTTP client hides about a failed CONNECT is readable here.
func (c *Client) ListSessionEvents(ctx context.Context, sessionID string, in ListSessionEvents, options ...Option) (out Events, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/events", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllSessionEvents returns the items of all pages of ListSessionEvents, from the given one on. It stops after
// an error.
func (c *Client) AllSessionEvents(ctx context.Context, sessionID string, in ListSessionEvents, options ...Option) iter.Seq2[Event, error] {
	return each(func(cursor string) ([]Event, string, error) {
		in := in.after(cursor)
		page, err := c.ListSessionEvents(ctx, sessionID, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListSessionEvents) after(cursor string) ListSessionEvents {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListSessionHosts is what ListSessionHosts of Client takes. A field with the zero value is left out.
type ListSessionHosts struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
}

func (in ListSessionHosts) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	return q
}

// ListSessionHosts sends GET /v1/sessions/{session_id}/hosts: where the bytes of a session went.
//
// In the last 7 days, the most bytes first; a cursor skips hosts that outgrow it meanwhile. A connection counts
// when it ends, and is listed within four seconds.
func (c *Client) ListSessionHosts(ctx context.Context, sessionID string, in ListSessionHosts, options ...Option) (out Hosts, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/hosts", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllSessionHosts returns the items of all pages of ListSessionHosts, from the given one on. It stops after an
// error.
func (c *Client) AllSessionHosts(ctx context.Context, sessionID string, in ListSessionHosts, options ...Option) iter.Seq2[Host, error] {
	return each(func(cursor string) ([]Host, string, error) {
		in := in.after(cursor)
		page, err := c.ListSessionHosts(ctx, sessionID, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListSessionHosts) after(cursor string) ListSessionHosts {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListSessions is what ListSessions of Client takes. A field with the zero value is left out.
type ListSessions struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only sessions in this state.
	Status SessionState
	// Only sessions of this type.
	Type SessionType
	// Only sessions of this product.
	ProductNo string
	// Only sessions that this key bought.
	Key string
	// key adds by_key, the number of each key's sessions.
	By string
	// Only sessions bought for it.
	Country string
	// key:value, a label that the session has.
	Label string
	// YYYY-MM-DD or RFC 3339, inclusive.
	CreatedFrom string
	// YYYY-MM-DD or RFC 3339, exclusive.
	CreatedTo string
	// summary leaves out proxy and ip_list, with their passwords.
	View string
}

func (in ListSessions) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("status", string(in.Status))
	q.text("type", string(in.Type))
	q.text("product_no", in.ProductNo)
	q.text("key", in.Key)
	q.text("by", in.By)
	q.text("country", in.Country)
	q.text("label", in.Label)
	q.text("created_from", in.CreatedFrom)
	q.text("created_to", in.CreatedTo)
	q.text("view", in.View)
	return q
}

// ListSessions sends GET /v1/sessions: the agent's sessions, newest first.
//
// Ended sessions are in the list, too; filter by status to leave them out.
func (c *Client) ListSessions(ctx context.Context, in ListSessions, options ...Option) (out Sessions, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllSessions returns the items of all pages of ListSessions, from the given one on. It stops after an error.
func (c *Client) AllSessions(ctx context.Context, in ListSessions, options ...Option) iter.Seq2[Session, error] {
	return each(func(cursor string) ([]Session, string, error) {
		in := in.after(cursor)
		page, err := c.ListSessions(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListSessions) after(cursor string) ListSessions {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListTransactions is what ListTransactions of Client takes. A field with the zero value is left out.
type ListTransactions struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only sessions that this key bought.
	Key string
	// key adds by_key, the sums of each key.
	By string
	// Only movements of this type.
	Type TransactionType
	// YYYY-MM-DD or RFC 3339, inclusive.
	From string
	// YYYY-MM-DD or RFC 3339, exclusive.
	To string
}

func (in ListTransactions) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("key", in.Key)
	q.text("by", in.By)
	q.text("type", string(in.Type))
	q.text("from", in.From)
	q.text("to", in.To)
	return q
}

// ListTransactions sends GET /v1/billing/transactions: every movement of the balance, newest first.
//
// The sum of all amounts is the balance. A purchase is a hold, charges, and the release of the rest. With
// Accept: text/csv the items are a table; Link has the address of those that follow.
func (c *Client) ListTransactions(ctx context.Context, in ListTransactions, options ...Option) (out Transactions, err error) {
	err = c.call(ctx, request{method: "GET", path: "/billing/transactions", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllTransactions returns the items of all pages of ListTransactions, from the given one on. It stops after an
// error.
func (c *Client) AllTransactions(ctx context.Context, in ListTransactions, options ...Option) iter.Seq2[Transaction, error] {
	return each(func(cursor string) ([]Transaction, string, error) {
		in := in.after(cursor)
		page, err := c.ListTransactions(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListTransactions) after(cursor string) ListTransactions {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListTransactionsCSV sends GET /v1/billing/transactions: every movement of the balance, newest first, as CSV.
func (c *Client) ListTransactionsCSV(ctx context.Context, in ListTransactions, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/billing/transactions", query: in.query(), accept: "text/csv", safe: true}, options)
}

// ListWebhookDeliveries is what ListWebhookDeliveries of Client takes. A field with the zero value is left out.
type ListWebhookDeliveries struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only deliveries in this state.
	Status DeliveryState
}

func (in ListWebhookDeliveries) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("status", string(in.Status))
	return q
}

// ListWebhookDeliveries sends GET /v1/account/webhook/deliveries: what was sent and what came of it, newest
// first.
//
// Kept for 30 days. Events of a time when the webhook was disabled are listed as failed; redeliver those you
// need.
func (c *Client) ListWebhookDeliveries(ctx context.Context, in ListWebhookDeliveries, options ...Option) (out Deliveries, err error) {
	err = c.call(ctx, request{method: "GET", path: "/account/webhook/deliveries", query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllWebhookDeliveries returns the items of all pages of ListWebhookDeliveries, from the given one on. It stops
// after an error.
func (c *Client) AllWebhookDeliveries(ctx context.Context, in ListWebhookDeliveries, options ...Option) iter.Seq2[Delivery, error] {
	return each(func(cursor string) ([]Delivery, string, error) {
		in := in.after(cursor)
		page, err := c.ListWebhookDeliveries(ctx, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListWebhookDeliveries) after(cursor string) ListWebhookDeliveries {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// ListWorkers is what ListWorkers of Client takes. A field with the zero value is left out.
type ListWorkers struct {
	// Counts from 1. A page past the end is empty.
	Page int
	// Items on a page. Above 100 is served as 100.
	PageSize int
	// next_cursor of a page, instead of page: what follows it, none skipped or repeated whatever was added.
	Cursor string
	// Only workers in this state.
	Status WorkerState
}

func (in ListWorkers) query() (q query) {
	q.number("page", in.Page)
	q.number("page_size", in.PageSize)
	q.text("cursor", in.Cursor)
	q.text("status", string(in.Status))
	return q
}

// ListWorkers sends GET /v1/sessions/{session_id}/workers: the workers of a session, by name.
//
// Of any status, or of one.
func (c *Client) ListWorkers(ctx context.Context, sessionID string, in ListWorkers, options ...Option) (out Workers, err error) {
	err = c.call(ctx, request{method: "GET", path: "/sessions/{session_id}/workers", ids: []string{sessionID}, query: in.query(), safe: true}, &out, options)
	return out, err
}

// AllWorkers returns the items of all pages of ListWorkers, from the given one on. It stops after an error.
func (c *Client) AllWorkers(ctx context.Context, sessionID string, in ListWorkers, options ...Option) iter.Seq2[Worker, error] {
	return each(func(cursor string) ([]Worker, string, error) {
		in := in.after(cursor)
		page, err := c.ListWorkers(ctx, sessionID, in, options...)
		return page.Items, page.Pagination.next(cursor), err
	})
}

func (in ListWorkers) after(cursor string) ListWorkers {
	if in.PageSize == 0 {
		in.PageSize = mostItems
	}
	if cursor != "" {
		in.Page, in.Cursor = position(cursor)
	}
	return in
}

// MakeWorkers is what MakeWorkers of Client takes.
type MakeWorkers struct {
	// A city that the product offers in the country.
	City string `json:"city,omitzero"`
	// Makes w1 to wN.
	Count int `json:"count,omitzero"`
	// An ISO 3166-1 alpha-2 code.
	Country string `json:"country,omitzero"`
	// The worker stops there; others go on.
	MaxBytes int64 `json:"max_bytes,omitzero"`
	// In place of count; each 1 to 32 letters, digits and _.
	Names []string `json:"names,omitzero"`
	// What exits must be; {}: anything. It stays with the session.
	Require Require `json:"require,omitzero"`
	// A lost exit is not replaced.
	Strict bool `json:"strict,omitzero"`
	// How long an exit is kept.
	TTLSeconds int `json:"ttl_seconds,omitzero"`
	// No two such workers share an exit.
	UniqueExits bool `json:"unique_exits,omitzero"`
}

// MakeWorkers sends POST /v1/sessions/{session_id}/workers: make or read workers of a session.
//
// A worker is a sticky exit of its own, used by its name in the proxy user name. Free, and without this call
// its first use makes it. If one cannot be made, none is.
func (c *Client) MakeWorkers(ctx context.Context, sessionID string, in MakeWorkers, options ...Option) (out MadeWorkers, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/workers", ids: []string{sessionID}, body: in}, &out, options)
	return out, err
}

// ProviderCallback sends POST /v1/providers/{provider}/callback: A provider reports that an order changed.
//
// For providers, not for agents. The call is signed by the provider, and means only that the order is to be
// read again.
func (c *Client) ProviderCallback(ctx context.Context, provider string, in map[string]any, options ...Option) (out Callback, err error) {
	err = c.call(ctx, request{method: "POST", path: "/providers/{provider}/callback", ids: []string{provider}, body: in}, &out, options)
	return out, err
}

// RecommendProducts is what RecommendProducts of Client takes.
type RecommendProducts struct {
	// US dollars for all of it, at most 6 decimals.
	Budget json.Number `json:"budget,omitzero"`
	// Leave out what rotates by itself.
	RequireStickyIP bool `json:"require_sticky_ip,omitzero"`
	// IPs, or dynamic sessions. 1 is the default.
	SessionCount int `json:"session_count,omitzero"`
	// A code of GET /products/regions, in any case.
	TargetRegion string `json:"target_region,omitzero"`
	// general is the default.
	UseCase UseCase `json:"use_case,omitzero"`
}

// RecommendProducts sends POST /v1/products/recommend: which products fit a use case.
//
// Scores every product that can be bought for a use case, and suggests what to send to POST /sessions.
func (c *Client) RecommendProducts(ctx context.Context, in RecommendProducts, options ...Option) (out Recommendations, err error) {
	err = c.call(ctx, request{method: "POST", path: "/products/recommend", body: in}, &out, options)
	return out, err
}

// RedeliverWebhook sends POST /v1/account/webhook/deliveries/{delivery_id}/redeliver: send an event again now.
//
// Not a test event. Whatever its status: it becomes pending and is sent at once, with its webhook-id, and with
// the retries of a new event.
func (c *Client) RedeliverWebhook(ctx context.Context, deliveryID string, options ...Option) (out Delivery, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/webhook/deliveries/{delivery_id}/redeliver", ids: []string{deliveryID}}, &out, options)
	return out, err
}

// RefreshToken sends POST /v1/auth/refresh: exchange a live token for a new one.
//
// The new token has the permissions of the one that is sent. 24 hours after the first token, which the key and
// the secret were exchanged for, the last one ends: expires_in shortens towards that.
func (c *Client) RefreshToken(ctx context.Context, options ...Option) (out Token, err error) {
	err = c.call(ctx, request{method: "POST", path: "/auth/refresh"}, &out, options)
	return out, err
}

// Register is what Register of Client takes.
type Register struct {
	// An e-mail address.
	ContactEmail string `json:"contact_email,omitzero"`
	// What the agent does; it is only kept.
	Description string `json:"description,omitzero"`
	// 2 to 100 characters after trimming, no control characters.
	Name string `json:"name"`
	// The code of a referring agent, at most 64 characters, compared exactly after trimming.
	ReferralCode string `json:"referral_code,omitzero"`
	// Where notifications go: https (in development mode also http), no user info.
	WebhookURL string `json:"webhook_url,omitzero"`
}

// Register sends POST /v1/account/register: open an account with trial credit.
//
// No credential is needed. The key and the secret are shown only in this answer; store both. The operator
// bounds the trial credit of a day, in all and by network; an account beyond that has none.
func (c *Client) Register(ctx context.Context, in Register, options ...Option) (out Registered, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/register", body: in}, &out, options)
	return out, err
}

// RegisterAlias is what RegisterAlias of Client takes.
type RegisterAlias struct {
	// An e-mail address.
	ContactEmail string `json:"contact_email,omitzero"`
	// What the agent does; it is only kept.
	Description string `json:"description,omitzero"`
	// 2 to 100 characters after trimming, no control characters.
	Name string `json:"name"`
	// The code of a referring agent, at most 64 characters, compared exactly after trimming.
	ReferralCode string `json:"referral_code,omitzero"`
	// Where notifications go: https (in development mode also http), no user info.
	WebhookURL string `json:"webhook_url,omitzero"`
}

// RegisterAlias sends POST /v1/auth/register: open an account with trial credit.
//
// The same operation as POST /account/register.
func (c *Client) RegisterAlias(ctx context.Context, in RegisterAlias, options ...Option) (out Registered, err error) {
	err = c.call(ctx, request{method: "POST", path: "/auth/register", body: in}, &out, options)
	return out, err
}

// RenewSession is what RenewSession of Client takes.
type RenewSession struct {
	// One that the product lists. The session's own is the default.
	DurationDays int `json:"duration_days,omitzero"`
	// US dollars with at most 6 decimals; a dearer renewal is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// RenewSession sends POST /v1/sessions/{session_id}/renew: extend a static session.
//
// Charged at today's price; extends from expires_at.
func (c *Client) RenewSession(ctx context.Context, sessionID string, in RenewSession, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/renew", ids: []string{sessionID}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// RenewSessionDryRun sends POST /v1/sessions/{session_id}/renew: extend a static session, as a dry run, which
// answers the cost and stores nothing.
func (c *Client) RenewSessionDryRun(ctx context.Context, sessionID string, in RenewSession, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/renew", ids: []string{sessionID}, query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// ReplaceIP is what ReplaceIP of Client takes.
type ReplaceIP struct {
	// US dollars with at most 6 decimals; a dearer one is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// What is wrong with it.
	Reason ReplacementReason `json:"reason"`
	// If there is no other address, this one ends and its whole unused days come back.
	Refund bool `json:"refund,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// ReplaceIP sends POST /v1/sessions/{session_id}/ips/{ip}/replace: replace an address of a static session.
//
// Another address in the same place for the rest of the time. Free once an IP within 24 hours of activation if
// it was measured in another country, or three checks a minute apart failed; else only where its seller
// replaces, at its price.
func (c *Client) ReplaceIP(ctx context.Context, sessionID, ip string, in ReplaceIP, options ...Option) (out Replacement, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/ips/{ip}/replace", ids: []string{sessionID, ip}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// ReplaceIPDryRun sends POST /v1/sessions/{session_id}/ips/{ip}/replace: replace an address of a static
// session, as a dry run, which answers the cost and stores nothing.
func (c *Client) ReplaceIPDryRun(ctx context.Context, sessionID, ip string, in ReplaceIP, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/ips/{ip}/replace", ids: []string{sessionID, ip}, query: query{{"dry_run", "true"}}, body: in, safe: true}, &out, options)
	return out, err
}

// ReportBatch is what ReportBatch of Client takes.
type ReportBatch struct {
	// The events, oldest first.
	Events []BatchEventRequest `json:"events"`
}

// ReportBatch sends POST /v1/telemetry/batch: report up to 1,000 events.
//
// A malformed event refuses the whole call. One for a session that is unknown or over is rejected alone. At
// most 2 MiB.
func (c *Client) ReportBatch(ctx context.Context, in ReportBatch, options ...Option) (out Batch, err error) {
	err = c.call(ctx, request{method: "POST", path: "/telemetry/batch", body: in}, &out, options)
	return out, err
}

// ReportEvent is what ReportEvent of Client takes.
type ReportEvent struct {
	// What the client saw, or null.
	ErrorMessage string `json:"error_message,omitzero"`
	// What came of the request.
	EventType EventType `json:"event_type"`
	// Rounded to milliseconds.
	LatencyMS json.Number `json:"latency_ms,omitzero"`
	// Only shown. More than 5 minutes ahead is refused.
	OccurredAt time.Time `json:"occurred_at,omitzero"`
	// May be left out; another than in the path is refused.
	SessionID string `json:"session_id,omitzero"`
	// 0: no answer.
	StatusCode int `json:"status_code,omitzero"`
	// The host of the request, or null.
	TargetHost string `json:"target_host,omitzero"`
	// Whose request it was; left out: the session's own exit.
	Worker string `json:"worker,omitzero"`
}

// ReportEvent sends POST /v1/sessions/{session_id}/report-event: report what came of one request.
//
// One request's outcome. Report failures and successes: the score is a rate. The batch takes up to 1,000 at
// once.
func (c *Client) ReportEvent(ctx context.Context, sessionID string, in ReportEvent, options ...Option) (out Reported, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/report-event", ids: []string{sessionID}, body: in}, &out, options)
	return out, err
}

// RevealCredentials is what RevealCredentials of Client takes. A field with the zero value is left out.
type RevealCredentials struct {
	// env: lines that a shell evaluates; url: one address a line; json: an object with proxies[]. url is the
	// default.
	As string
}

func (in RevealCredentials) query() (q query) {
	q.text("as", in.As)
	return q
}

// RevealCredentials sends GET /v1/reveal/{token}: the credentials of a session, once.
//
// The link comes from the tool connect of POST /mcp. It works once, within 5 minutes, for any holder; the
// session's events list it. A program fetches it, so that the password does not pass a model.
func (c *Client) RevealCredentials(ctx context.Context, token string, in RevealCredentials, options ...Option) ([]byte, error) {
	return c.read(ctx, request{method: "GET", path: "/reveal/{token}", ids: []string{token}, query: in.query(), accept: "text/plain"}, options)
}

// RotateKey is what RotateKey of Client takes.
type RotateKey struct {
	// The secret that was shown at the registration or by rotate-secret.
	APISecret string `json:"api_secret"`
	// How long the old key stays valid beside the new one; 0: it ends at once.
	GraceSeconds int `json:"grace_seconds,omitzero"`
	// Whether the keys that it issued end with it, which is the default.
	Children string `json:"-"`
}

func (in RotateKey) query() (q query) {
	q.text("children", in.Children)
	return q
}

// RotateKey sends POST /v1/account/rotate-key: replace the first API key.
//
// Needs the api_secret and a credential with every permission. The old key ends at once, or after
// grace_seconds, with its tokens; a key that was replaced before ends now.
func (c *Client) RotateKey(ctx context.Context, in RotateKey, options ...Option) (out IssuedKey, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/rotate-key", query: in.query(), body: in}, &out, options)
	return out, err
}

// RotatePassword is what RotatePassword of Client takes.
type RotatePassword struct {
	// Closes what is open with the old password.
	CloseConnections bool `json:"close_connections,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// RotatePassword sends POST /v1/sessions/{session_id}/rotate-password: replace the password of a session.
//
// The old one ends on every replica within a second. Open connections go on, unless close_connections is true.
func (c *Client) RotatePassword(ctx context.Context, sessionID string, in RotatePassword, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/rotate-password", ids: []string{sessionID}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// RotateSecret is what RotateSecret of Client takes.
type RotateSecret struct {
	// The current one. Without it the new one replaces no key for 72 hours.
	APISecret string `json:"api_secret,omitzero"`
}

// RotateSecret sends POST /v1/account/rotate-secret: replace the api_secret.
//
// Every token issued with the old secret fails at once. The api_key stays. After a rotation without the current
// secret the former one proves you for 72 hours: with it the key and the secret are replaced at once.
func (c *Client) RotateSecret(ctx context.Context, in RotateSecret, options ...Option) (out Secret, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/rotate-secret", body: in}, &out, options)
	return out, err
}

// RotateSession is what RotateSession of Client takes.
type RotateSession struct {
	// Closes what is open on the old exit.
	CloseConnections bool `json:"close_connections,omitzero"`
	// Counts as evidence about the exit that is left. manual is the default.
	Reason RotateReason `json:"reason,omitzero"`
	// What exits must be; {}: anything. It stays with the session.
	Require Require `json:"require,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// RotateSession sends POST /v1/sessions/{session_id}/rotate: give a dynamic session a new exit.
//
// The session_id stays. The older proxy address means the new exit too; open tunnels finish on the old one.
func (c *Client) RotateSession(ctx context.Context, sessionID string, in RotateSession, options ...Option) (out Rotate, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/rotate", ids: []string{sessionID}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// RotateWebhookSecret sends POST /v1/account/webhook/rotate-secret: replace the secret that signs events.
//
// For 24 hours every event is signed with both secrets, so a receiver can change over without losing one.
func (c *Client) RotateWebhookSecret(ctx context.Context, options ...Option) (out WebhookSecret, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/webhook/rotate-secret"}, &out, options)
	return out, err
}

// RotateWorker is what RotateWorker of Client takes.
type RotateWorker struct {
	// Closes what is open on the old exit.
	CloseConnections bool `json:"close_connections,omitzero"`
	// Counts as evidence about the exit that is left. manual is the default.
	Reason RotateReason `json:"reason,omitzero"`
	// What exits must be; {}: anything. It stays with the session.
	Require Require `json:"require,omitzero"`
	// 1 to 255 printable ASCII characters. A repeated call with the same key and body answers as the first did;
	// kept 24 hours. A new one is made if it is empty.
	IdempotencyKey string `json:"-"`
}

// RotateWorker sends POST /v1/sessions/{session_id}/workers/{name}/rotate: give a worker another exit.
//
// Open tunnels finish on the old one. Its next use may change its words.
func (c *Client) RotateWorker(ctx context.Context, sessionID, name string, in RotateWorker, options ...Option) (out Worker, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/workers/{name}/rotate", ids: []string{sessionID, name}, body: in, key: keyOr(in.IdempotencyKey)}, &out, options)
	return out, err
}

// SetBudget is what SetBudget of Client takes.
type SetBudget struct {
	// Percents from 1 to 100, at most 20; each fires once a day. null: none.
	AlertThresholds Optional[[]int] `json:"alert_thresholds,omitzero"`
	// null: no limit.
	DailyLimit Optional[json.Number] `json:"daily_limit,omitzero"`
	// true refuses every purchase until it is false again.
	Paused Optional[bool] `json:"paused,omitzero"`
	// null: no limit.
	TotalLimit Optional[json.Number] `json:"total_limit,omitzero"`
}

// SetBudget sends PUT /v1/billing/budget: change the spending guard.
//
// Replaces the given fields.
func (c *Client) SetBudget(ctx context.Context, in SetBudget, options ...Option) (out Budget, err error) {
	err = c.call(ctx, request{method: "PUT", path: "/billing/budget", body: in}, &out, options)
	return out, err
}

// SetSessionPolicy is what SetSessionPolicy of Client takes.
type SetSessionPolicy struct {
	// Nothing else may be reached. With deny at most 1000 rules.
	Allow Optional[[]PolicyEntry] `json:"allow,omitzero"`
	// May not be reached; it wins over allow.
	Deny Optional[[]PolicyEntry] `json:"deny,omitzero"`
	// enforce is the default.
	Mode PolicyMode `json:"mode,omitzero"`
	// The only ports that may be reached; empty is every port.
	Ports Optional[[]PolicyEntry] `json:"ports,omitzero"`
}

// SetSessionPolicy sends PUT /v1/sessions/{session_id}/policy: change what a session may reach.
//
// Replaces the whole policy. The operator's rules and those of the product come first. deny refuses what it
// matches. Where allow has hosts or networks a target must match one of them, and where it has ports one of
// these. A refusal is 403 TARGET_DENIED of the gateway with layer session and the rule. With the mode report
// everything passes, and the events of the session list what would be refused. Holds on every replica within a
// second; open tunnels to a target that becomes denied are cut.
func (c *Client) SetSessionPolicy(ctx context.Context, sessionID string, in SetSessionPolicy, options ...Option) (out Policy, err error) {
	err = c.call(ctx, request{method: "PUT", path: "/sessions/{session_id}/policy", ids: []string{sessionID}, body: in}, &out, options)
	return out, err
}

// TerminateSession sends POST /v1/sessions/{session_id}/terminate: end a session.
//
// Repeating it answers 200 with the same state. What a dynamic session did not use is refunded, the time left
// of fixed IPs is not. What a seller may still deliver and does not take back stays held, and is charged or
// released when the outcome is known: see cost.
func (c *Client) TerminateSession(ctx context.Context, sessionID string, options ...Option) (out Session, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/terminate", ids: []string{sessionID}}, &out, options)
	return out, err
}

// TerminateSessionDryRun sends POST /v1/sessions/{session_id}/terminate: end a session, as a dry run, which
// answers the cost and stores nothing.
func (c *Client) TerminateSessionDryRun(ctx context.Context, sessionID string, options ...Option) (out DryRun, err error) {
	err = c.call(ctx, request{method: "POST", path: "/sessions/{session_id}/terminate", ids: []string{sessionID}, query: query{{"dry_run", "true"}}, safe: true}, &out, options)
	return out, err
}

// TestWebhook sends POST /v1/account/webhook/test: send an event of type webhook.test.
//
// 10 an hour, each sent once. GET /account/webhook/deliveries has the result.
func (c *Client) TestWebhook(ctx context.Context, options ...Option) (out WebhookTest, err error) {
	err = c.call(ctx, request{method: "POST", path: "/account/webhook/test"}, &out, options)
	return out, err
}

// UpdateAccount is what UpdateAccount of Client takes.
type UpdateAccount struct {
	// null or empty clears it.
	ContactEmail Optional[string] `json:"contact_email,omitzero"`
	// null or empty clears it.
	Description Optional[string] `json:"description,omitzero"`
	// 2 to 100 characters after trimming. It cannot be cleared.
	Name string `json:"name,omitzero"`
	// null or empty clears it. Setting it, also to what it is, enables a webhook that was disabled.
	WebhookURL Optional[string] `json:"webhook_url,omitzero"`
}

// UpdateAccount sends PUT /v1/account/info: change the account.
//
// Only the fields that are sent change; null or an empty text clears one that may be empty.
func (c *Client) UpdateAccount(ctx context.Context, in UpdateAccount, options ...Option) (out Updated, err error) {
	err = c.call(ctx, request{method: "PUT", path: "/account/info", body: in}, &out, options)
	return out, err
}
