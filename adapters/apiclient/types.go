// Code generated from the OpenAPI document by go generate; DO NOT EDIT.

package apiclient

import (
	"encoding/json"
	"time"
)

// The codes of refusals.
const (
	// ErrAccountDisabled means: this account was disabled by the operator; contact support
	ErrAccountDisabled Code = "ACCOUNT_DISABLED"
	// ErrAuthExpiredToken means: the token is expired or invalid; get a new one with your API key and secret
	ErrAuthExpiredToken Code = "AUTH_EXPIRED_TOKEN"
	// ErrAuthInsufficientPermission means: the token lacks the permission for this call; get one that has it
	ErrAuthInsufficientPermission Code = "AUTH_INSUFFICIENT_PERMISSION"
	// ErrAuthInvalidKey means: send a valid API key in the header X-API-Key, or a token as Authorization: Bearer
	ErrAuthInvalidKey Code = "AUTH_INVALID_KEY"
	// ErrBudgetExceeded means: your own budget does not allow this purchase; raise the budget and try again
	ErrBudgetExceeded Code = "BUDGET_EXCEEDED"
	// ErrExitQualityNotMet means: no exit of this place meets require; ask for less, or choose another place or
	// product
	ErrExitQualityNotMet Code = "EXIT_QUALITY_NOT_MET"
	// ErrIdempotencyConflict means: this Idempotency-Key was used for another request; use a new key for a new
	// request
	ErrIdempotencyConflict Code = "IDEMPOTENCY_CONFLICT"
	// ErrInsufficientBalance means: the balance does not cover the cost; recharge and try again
	ErrInsufficientBalance Code = "INSUFFICIENT_BALANCE"
	// ErrInternalError means: the service failed; try again, and report the request_id if the problem persists
	ErrInternalError Code = "INTERNAL_ERROR"
	// ErrInvalidReferralCode means: the referral code is unknown or disabled; correct it or leave it out
	ErrInvalidReferralCode Code = "INVALID_REFERRAL_CODE"
	// ErrInvalidRequest means: the request is not valid; correct the fields named in details and send it again
	ErrInvalidRequest Code = "INVALID_REQUEST"
	// ErrKeyRestricted means: this key is restricted and may not do this; use a key without a restriction
	ErrKeyRestricted Code = "KEY_RESTRICTED"
	// ErrLastKey means: this is the last key without a restriction and an end; issue another one first
	ErrLastKey Code = "LAST_KEY"
	// ErrMisdirectedRequest means: this port serves the API and is not a proxy; connect to the gateway, the address
	// in proxy.full_url
	ErrMisdirectedRequest Code = "MISDIRECTED_REQUEST"
	// ErrNotFound means: nothing has this id or name; list what there is
	ErrNotFound Code = "NOT_FOUND"
	// ErrOrderLimitReached means: too many recharge orders are open; pay one or wait until one expires
	ErrOrderLimitReached Code = "ORDER_LIMIT_REACHED"
	// ErrOrderNotFound means: no recharge order has this id; list your recharge orders to find it
	ErrOrderNotFound Code = "ORDER_NOT_FOUND"
	// ErrPayloadTooLarge means: the body is too large; send less at a time
	ErrPayloadTooLarge Code = "PAYLOAD_TOO_LARGE"
	// ErrPaymentsOff means: this service takes no payments; ask its operator how to add to the balance
	ErrPaymentsOff Code = "PAYMENTS_OFF"
	// ErrPriceMismatch means: the cost is above max_cost; raise it, buy less, or choose another product
	ErrPriceMismatch Code = "PRICE_MISMATCH"
	// ErrProductNotFound means: no product has this product_no; list the products to find the right one
	ErrProductNotFound Code = "PRODUCT_NOT_FOUND"
	// ErrProductOutOfStock means: nothing is in stock right now; try again later or choose another product
	ErrProductOutOfStock Code = "PRODUCT_OUT_OF_STOCK"
	// ErrProviderError means: the upstream failed and nothing was bought; try again
	ErrProviderError Code = "PROVIDER_ERROR"
	// ErrProviderTimeout means: the upstream did not answer and nothing was bought; try again
	ErrProviderTimeout Code = "PROVIDER_TIMEOUT"
	// ErrRateLimitExceeded means: too many requests; wait for the seconds in Retry-After
	ErrRateLimitExceeded Code = "RATE_LIMIT_EXCEEDED"
	// ErrRegistrationClosed means: the operator opens accounts; ask for one
	ErrRegistrationClosed Code = "REGISTRATION_CLOSED"
	// ErrReplacementRefused means: nothing gives this address a right to be replaced; details.grounds has what
	// would
	ErrReplacementRefused Code = "REPLACEMENT_REFUSED"
	// ErrRevealLinkUnknown means: there is no such link; copy all of it, or ask for a new one
	ErrRevealLinkUnknown Code = "REVEAL_LINK_UNKNOWN"
	// ErrRevealLinkUsed means: the link was used already, is older than 5 minutes, or its password or key was
	// replaced; ask for a new one
	ErrRevealLinkUsed Code = "REVEAL_LINK_USED"
	// ErrSecretTooNew means: this api_secret was issued without the former one; replace the key with the former
	// one, or wait until the time in details.until
	ErrSecretTooNew Code = "SECRET_TOO_NEW"
	// ErrServiceUnavailable means: the service cannot answer right now; try again shortly
	ErrServiceUnavailable Code = "SERVICE_UNAVAILABLE"
	// ErrSessionExpired means: the session has ended; create a new one
	ErrSessionExpired Code = "SESSION_EXPIRED"
	// ErrSessionLimitReached means: too many live sessions; terminate some or wait until they end
	ErrSessionLimitReached Code = "SESSION_LIMIT_REACHED"
	// ErrSessionNotFound means: no session has this id; list your sessions to find it
	ErrSessionNotFound Code = "SESSION_NOT_FOUND"
	// ErrSessionNotReady means: the session is still being created; try again when its status is active
	ErrSessionNotReady Code = "SESSION_NOT_READY"
	// ErrStorageLimit means: the service stores no more for this account today; wait for the seconds in
	// Retry-After, or recharge. Reads, payments, renewals and terminations go on
	ErrStorageLimit Code = "STORAGE_LIMIT"
	// ErrTierRequired means: this product is for accounts of a higher tier; recharge, or ask the operator to verify
	// the account
	ErrTierRequired Code = "TIER_REQUIRED"
	// ErrWorkerDiffers means: a worker of this name has another country, city, ttl or strictness; rotate or remove
	// it first
	ErrWorkerDiffers Code = "WORKER_DIFFERS"
	// ErrWorkerLimitReached means: a session has at most 1,000 workers; remove one first
	ErrWorkerLimitReached Code = "WORKER_LIMIT_REACHED"
	// ErrWorkerNotFound means: the session has no worker of this name; list its workers to see their names
	ErrWorkerNotFound Code = "WORKER_NOT_FOUND"
)

// Account is the answer of GetAccount.
type Account struct {
	// Names the account.
	AgentID string `json:"agent_id"`
	// How this very request was authenticated.
	AuthMode AuthMode `json:"auth_mode"`
	// The backend user that the account maps to.
	BillingUserID string `json:"billing_user_id"`
	// Where the operator may write to; null if none was given.
	ContactEmail *string `json:"contact_email"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// A text of the agent; null if none was given.
	Description *string `json:"description"`
	// For people.
	Name string `json:"name"`
	// The limit of requests in force.
	RateLimit RateLimit `json:"rate_limit"`
	// Who referred the account.
	Referral Referral `json:"referral"`
	// Its state.
	Status AccountState `json:"status"`
	// funded: enough own money came; verified: by the operator. Products may ask for a tier.
	Tier Tier `json:"tier"`
	// The trial credit.
	Trial Trial `json:"trial"`
	// When the profile was last changed.
	UpdatedAt time.Time `json:"updated_at"`
	// Where events go; null if nowhere.
	WebhookURL *string `json:"webhook_url"`
}

// AccountEvent is the type of Feed.items.
type AccountEvent struct {
	// Ids and the new status, by the type.
	Data map[string]string `json:"data"`
	// The webhook-id of the same event.
	EventID string `json:"event_id"`
	// When it happened.
	Timestamp time.Time `json:"timestamp"`
	// What kind it is.
	Type WebhookType `json:"type"`
}

// AccountState is the type of Account.status, Updated.status.
type AccountState string

// The values of AccountState.
const (
	AccountStateActive   AccountState = "active"
	AccountStateDisabled AccountState = "disabled"
)

// AuthMode is the type of Account.auth_mode, Updated.auth_mode.
type AuthMode string

// The values of AuthMode.
const (
	AuthModeAPIKey AuthMode = "api_key"
	AuthModeToken  AuthMode = "token"
)

// AutoTopUp is the type of Rotate.auto_top_up, Session.auto_top_up.
type AutoTopUp struct {
	// Of each purchase.
	AddGB json.Number `json:"add_gb"`
	// Of the traffic.
	BelowPercent int `json:"below_percent"`
	// Purchases on a UTC day.
	MaxPerDay int `json:"max_per_day"`
	// The most that auto_top_up pays; default: the session's price.
	MaxPricePerGB json.Number `json:"max_price_per_gb"`
	// The code for which the last purchase was refused; it is tried every minute. null: it was not.
	Refused *string `json:"refused"`
}

// AutoTopUpRequest is the type of ChangeSession.auto_top_up, CreateSession.auto_top_up,
// CreateSessionFlat.auto_top_up.
type AutoTopUpRequest struct {
	// At most 3 decimals, within the product's bounds.
	AddGB json.Number `json:"add_gb"`
	// Buys when less than this part of the traffic is left, and less than add_gb.
	BelowPercent int `json:"below_percent"`
	// Purchases on a UTC day.
	MaxPerDay int `json:"max_per_day"`
	// The most that auto_top_up pays; default: the session's price.
	MaxPricePerGB json.Number `json:"max_price_per_gb,omitzero"`
}

// Balance is the answer of GetBalance.
type Balance struct {
	// What can be spent.
	Balance json.Number `json:"balance"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Kept for what open sessions may still use.
	Held json.Number `json:"held"`
	// Of the key of this call; null without a restriction.
	Key *KeyMoney `json:"key"`
	// The trial credit.
	Trial Trial `json:"trial"`
}

// Batch is the answer of ReportBatch.
type Batch struct {
	// Events that were accepted.
	Processed int `json:"processed"`
	// How many events were refused.
	Rejected int `json:"rejected"`
	// One for each event, in their order.
	Results []Result `json:"results"`
}

// BatchEventRequest is the type of ReportBatch.events.
type BatchEventRequest struct {
	// What the client saw, or null.
	ErrorMessage string `json:"error_message,omitzero"`
	// What came of the request.
	EventType EventType `json:"event_type"`
	// Rounded to milliseconds.
	LatencyMS json.Number `json:"latency_ms,omitzero"`
	// Only shown. More than 5 minutes ahead is refused.
	OccurredAt time.Time `json:"occurred_at,omitzero"`
	// The session.
	SessionID string `json:"session_id"`
	// 0: no answer.
	StatusCode int `json:"status_code,omitzero"`
	// The host of the request, or null.
	TargetHost string `json:"target_host,omitzero"`
	// Whose request it was; left out: the session's own exit.
	Worker string `json:"worker,omitzero"`
}

// Budget is the answer of GetBudget, SetBudget.
type Budget struct {
	// Percents of a limit.
	AlertThresholds []int `json:"alert_thresholds"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Of a UTC day; null: none.
	DailyLimit *json.Number `json:"daily_limit"`
	// Refuses every purchase.
	Paused bool `json:"paused"`
	// Charges and open holds.
	SpentToday json.Number `json:"spent_today"`
	// What was spent since the registration, in US dollars.
	SpentTotal json.Number `json:"spent_total"`
	// Ever; null: none.
	TotalLimit *json.Number `json:"total_limit"`
}

// BudgetLeft is the type of Limits.budget.
type BudgetLeft struct {
	// In US dollars; null: no limit.
	LeftToday *json.Number `json:"left_today"`
	// In US dollars; null: no limit.
	LeftTotal *json.Number `json:"left_total"`
	// Refuses every purchase.
	Paused bool `json:"paused"`
}

// Buyer is the type of Rotate.bought_by, Session.bought_by.
type Buyer struct {
	// Names the key; it may have ended.
	KeyID string `json:"key_id"`
	// As it was then.
	Name string `json:"name"`
}

// ByType is the type of Exit.by_type, HealthStats.by_type, Observed.by_type.
type ByType struct {
	// Events of this type.
	Block int `json:"block"`
	// Events of this type.
	Captcha int `json:"captcha"`
	// Events of this type.
	Custom int `json:"custom"`
	// Events of this type.
	HTTPError int `json:"http_error"`
	// Events of this type.
	RateLimit int `json:"rate_limit"`
	// Events of this type.
	Success int `json:"success"`
	// Events of this type.
	Timeout int `json:"timeout"`
}

// Callback is the answer of ProviderCallback.
type Callback struct {
	// Whether the call was taken.
	Accepted bool `json:"accepted"`
}

// Check is the answer of CheckSession.
type Check struct {
	// As measured; null: not.
	Country *string `json:"country"`
	// As sold; null: none.
	DeclaredCountry *string `json:"declared_country"`
	// What was measured of the exit.
	Exit ExitFacts `json:"exit"`
	// The address that targets see.
	ExitIP string `json:"exit_ip"`
	// Milliseconds until the answer.
	LatencyMS int `json:"latency_ms"`
	// Whether the target was reached through the session.
	OK bool `json:"ok"`
	// The protocol that was checked.
	Protocol Protocol `json:"protocol"`
}

// ClientAddress is the type of Clients.items.
type ClientAddress struct {
	// null: all others beyond the 256 that are listed.
	Address *string `json:"address"`
	// Connections and plain requests, refused ones included.
	Connections int `json:"connections"`
	// When it connected first.
	FirstAt time.Time `json:"first_at"`
	// When it connected last.
	LastAt time.Time `json:"last_at"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
}

// Clients is the answer of ListSessionClients.
type Clients struct {
	// This page.
	Items []ClientAddress `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Connect is the answer of ConnectSession.
type Connect struct {
	// As asked.
	Client string `json:"client"`
	// Of the snippet: sh, python, javascript or go.
	Language string `json:"language"`
	// One for each worker, or for each IP.
	Proxies []Connected `json:"proxies"`
	// The session.
	SessionID string `json:"session_id"`
	// With the password.
	Snippet string `json:"snippet"`
}

// Connected is the type of Connect.proxies.
type Connected struct {
	// The address to route traffic through.
	FullURL string `json:"full_url"`
	// The host name or address.
	Host string `json:"host"`
	// The proxy's URL for HTTP clients, credential included.
	HTTPURL string `json:"http_url"`
	// http_url with TLS to the proxy; null: it has none.
	HTTPSURL *string `json:"https_url"`
	// At the gateway letters and digits only, and the same for the session's whole life.
	Password string `json:"password"`
	// The port of the gateway or of the upstream.
	Port int `json:"port"`
	// What full_url begins with. Both work on the same port.
	Protocol Protocol `json:"protocol"`
	// The proxy's URL for SOCKS5 clients, credential included.
	SOCKS5URL string `json:"socks5_url"`
	// Letters and digits only at the gateway.
	Username string `json:"username"`
	// null: the session's own exit.
	Worker *string `json:"worker"`
}

// Cost is the type of Rotate.cost, Session.cost, Usage.cost.
type Cost struct {
	// What was used so far costs.
	Charged json.Number `json:"charged"`
	// Of all amounts.
	Currency string `json:"currency"`
	// What you gave up by ending fixed IPs before their time.
	Forfeited json.Number `json:"forfeited"`
	// Kept for what may still be used.
	Held json.Number `json:"held"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
}

// CostBucket is the type of CostStats.items.
type CostBucket struct {
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// Of all amounts.
	Currency string `json:"currency"`
	// What was recharged, in US dollars.
	Recharged json.Number `json:"recharged"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
	// The first moment of the bucket.
	Start time.Time `json:"start"`
}

// CostStats is the answer of GetCostStats.
type CostStats struct {
	// The length of a bucket.
	Granularity Granularity `json:"granularity"`
	// Oldest first, empty buckets included.
	Items []CostBucket `json:"items"`
}

// CreateConfig is the type of CreateSession.config.
type CreateConfig struct {
	// A city that the product offers in the country.
	City string `json:"city,omitzero"`
	// One that the product offers, in any case. Required for a static session.
	Country string `json:"country,omitzero"`
	// Static: one that the product lists, required.
	DurationDays int `json:"duration_days,omitzero"`
	// US dollars with at most 6 decimals; a dearer session is refused.
	MaxCost json.Number `json:"max_cost,omitzero"`
	// A product of GET /products.
	ProductNo string `json:"product_no"`
	// Both work on the same port; the choice shapes full_url. http is the default.
	Protocol Protocol `json:"protocol,omitzero"`
	// existing attaches to the newest live session of the product. purchase is the default.
	ProvisioningMode ProvisioningMode `json:"provisioning_mode,omitzero"`
	// Static: IPs, 1 to 100, required.
	Quantity json.Number `json:"quantity,omitzero"`
	// When the exit changes.
	Rotation CreateRotation `json:"rotation,omitzero"`
	// Dynamic. At most 3 decimals, within the product's bounds; 1 is the default.
	TrafficGB json.Number `json:"traffic_gb,omitzero"`
}

// CreateRotation is the type of CreateConfig.rotation.
type CreateRotation struct {
	// Seconds between two timed rotations; for mode timed.
	IntervalSeconds int `json:"interval_seconds,omitzero"`
	// on_demand is the default. timed needs interval_seconds. fixed never rotates by itself.
	Mode RotationMode `json:"mode,omitzero"`
}

// Deliveries is the answer of ListWebhookDeliveries.
type Deliveries struct {
	// This page.
	Items []Delivery `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Delivery is the type of Deliveries.items.
type Delivery struct {
	// How often it was sent.
	Attempts int `json:"attempts"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// Names the delivery.
	DeliveryID string `json:"delivery_id"`
	// The webhook-id; the same at every attempt.
	EventID string `json:"event_id"`
	// Why the last attempt failed; null: it did not.
	LastError *string `json:"last_error"`
	// What the endpoint answered last; null: nothing yet, or no answer came.
	LastStatusCode *int `json:"last_status_code"`
	// null unless pending.
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	// Its state.
	Status DeliveryState `json:"status"`
	// What kind it is.
	Type WebhookType `json:"type"`
}

// DeliveryMode is the type of Product.delivery.
type DeliveryMode string

// The values of DeliveryMode.
const (
	DeliveryModeGateway DeliveryMode = "gateway"
	DeliveryModeDirect  DeliveryMode = "direct"
)

// DeliveryState is the type of Delivery.status, ListWebhookDeliveries.status.
type DeliveryState string

// The values of DeliveryState.
const (
	DeliveryStatePending   DeliveryState = "pending"
	DeliveryStateDelivered DeliveryState = "delivered"
	DeliveryStateFailed    DeliveryState = "failed"
)

// DryRun is the answer of AddTrafficDryRun, CreateRechargeDryRun, CreateSessionDryRun, DeleteSessionDryRun and
// others.
type DryRun struct {
	// The balance that the call would leave; null for a key with own.
	BalanceAfter *json.Number `json:"balance_after"`
	// What the call would cost, in US dollars.
	Cost json.Number `json:"cost"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Always true.
	DryRun bool `json:"dry_run"`
	// What ending a session would give up of what was paid.
	Forfeited json.Number `json:"forfeited,omitzero"`
	// On which an address would be replaced.
	Ground string `json:"ground,omitzero"`
	// What would be returned.
	Refunded json.Number `json:"refunded,omitzero"`
}

// Duration is the type of Product.durations.
type Duration struct {
	// Days that are paid for.
	DurationDays int `json:"duration_days"`
	// Of one IP for the whole duration.
	Price json.Number `json:"price"`
}

// Event is the type of Events.items.
type Event struct {
	// When the service received it.
	At time.Time `json:"at"`
	// What the connection moved in both directions.
	Bytes int64 `json:"bytes"`
	// Of an answer of the gateway itself.
	Code *string `json:"code"`
	// How many connections it is: equal ones that moved nothing are one, those beyond what is kept one a minute,
	// without target_host.
	Count int `json:"count"`
	// What the client saw, or null.
	ErrorMessage *string `json:"error_message"`
	// Names the event.
	EventID string `json:"event_id"`
	// The address that targets see; null if it is not known.
	ExitIP *string `json:"exit_ip"`
	// What to do next, or null.
	HowToFix *string `json:"how_to_fix"`
	// Milliseconds until the answer.
	LatencyMS *int `json:"latency_ms"`
	// As the agent reported; null otherwise.
	OccurredAt *time.Time `json:"occurred_at"`
	// Whether the same connection may succeed later.
	Retryable bool `json:"retryable"`
	// Who saw it: the gateway, the agent, or the service.
	Source EventSource `json:"source"`
	// null when there was no answer.
	StatusCode *int `json:"status_code"`
	// The host of the request, or null.
	TargetHost *string `json:"target_host"`
	// What kind it is.
	Type string `json:"type"`
	// Whose event it is; null: the session's own.
	Worker *string `json:"worker"`
}

// EventOutcome is the type of Result.status.
type EventOutcome string

// The values of EventOutcome.
const (
	EventOutcomeAccepted EventOutcome = "accepted"
	EventOutcomeRejected EventOutcome = "rejected"
)

// EventRefusal is the type of ResultError.code.
type EventRefusal string

// The values of EventRefusal.
const (
	EventRefusalSESSIONNOTFOUND EventRefusal = "SESSION_NOT_FOUND"
	EventRefusalSESSIONEXPIRED  EventRefusal = "SESSION_EXPIRED"
)

// EventSource is the type of Event.source.
type EventSource string

// The values of EventSource.
const (
	EventSourceGateway EventSource = "gateway"
	EventSourceAgent   EventSource = "agent"
	EventSourceService EventSource = "service"
)

// EventType is the type of BatchEventRequest.event_type, ReportEvent.event_type.
type EventType string

// The values of EventType.
const (
	EventTypeSuccess   EventType = "success"
	EventTypeHTTPError EventType = "http_error"
	EventTypeCaptcha   EventType = "captcha"
	EventTypeTimeout   EventType = "timeout"
	EventTypeBlock     EventType = "block"
	EventTypeRateLimit EventType = "rate_limit"
	EventTypeCustom    EventType = "custom"
)

// Events is the answer of ListSessionEvents.
type Events struct {
	// This page.
	Items []Event `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Exit is the type of HealthStats.current_exit.
type Exit struct {
	// 0 without latencies.
	AvgLatencyMS json.Number `json:"avg_latency_ms"`
	// How many events there were of each type.
	ByType ByType `json:"by_type"`
	// When the last event occurred; null before the first.
	LastEventAt *time.Time `json:"last_event_at"`
	// What the gateway saw by itself.
	Observed Observed `json:"observed"`
	// 0 without latencies.
	P95LatencyMS int `json:"p95_latency_ms"`
	// The 32 codes most met.
	StatusCodes map[string]int `json:"status_codes"`
	// Events of every type.
	TotalEvents int `json:"total_events"`
}

// ExitFacts is the type of Check.exit, IpList.exit, Worker.exit.
type ExitFacts struct {
	// Whether sources agree on the country, with each other and with what was sold.
	Agreed *bool `json:"agreed"`
	// Who announces it.
	AsName *string `json:"as_name"`
	// Its autonomous system.
	Asn *int `json:"asn"`
	// In English.
	City *string `json:"city"`
	// As measured; null: not.
	Country *string `json:"country"`
	// As sold; null: none.
	DeclaredCountry *string `json:"declared_country"`
	// The address that targets see.
	IP string `json:"ip"`
	// Block lists that have it.
	Listed []string `json:"listed"`
	// When the echo saw it.
	MeasuredAt time.Time `json:"measured_at"`
	// Whose network it is in.
	NetworkType NetworkType `json:"network_type"`
	// Its largest subdivision.
	Region *string `json:"region"`
	// 0 to 100; a formula of this service, in its documentation.
	Risk *int `json:"risk"`
	// Of the IANA database.
	Timezone *string `json:"timezone"`
	// Of its protocol.
	Version int `json:"version"`
}

// Failure is the type of Rotate.failure, Session.failure.
type Failure struct {
	// For programs; it does not change.
	Code string `json:"code"`
	// For people: what is wrong and what to do.
	Message string `json:"message"`
}

// Feed is the answer of ListEvents.
type Feed struct {
	// Oldest first.
	Items []AccountEvent `json:"items"`
	// What to send as after for what follows, also when items is empty.
	Next string `json:"next"`
}

// GatewayBounds is the type of Limits.gateway.
type GatewayBounds struct {
	// At a time; null: unlimited.
	Connections *int `json:"connections"`
	// New ones; null: unlimited.
	ConnectionsPerSecond *int `json:"connections_per_second"`
	// The only ports of targets, which may be ranges; null: all but those that the operator denies.
	Ports []string `json:"ports"`
}

// Granularity is the type of CostStats.granularity, GetCostStats.granularity, GetTrafficStats.granularity,
// TrafficStats.granularity.
type Granularity string

// The values of Granularity.
const (
	GranularityHour Granularity = "hour"
	GranularityDay  Granularity = "day"
)

// Health is the answer of GetHealth.
type Health struct {
	// Always ok; a service that cannot answer returns 503.
	Status string `json:"status"`
	// The version of the service.
	Version string `json:"version"`
}

// HealthAdvice is the type of SessionHealth.recommendation, SessionHealthBrief.recommendation,
// SessionHealthShort.recommendation, WorkersHealth.recommendation.
type HealthAdvice string

// The values of HealthAdvice.
const (
	HealthAdviceOK             HealthAdvice = "ok"
	HealthAdviceConsiderRotate HealthAdvice = "consider_rotate"
	HealthAdviceRotateNow      HealthAdvice = "rotate_now"
	HealthAdvicePause          HealthAdvice = "pause"
)

// HealthReason is the type of SessionHealth.reason, SessionHealthShort.reason.
type HealthReason string

// The values of HealthReason.
const (
	HealthReasonBlockRate          HealthReason = "block_rate"
	HealthReasonRateLimited        HealthReason = "rate_limited"
	HealthReasonNetworkErrors      HealthReason = "network_errors"
	HealthReasonTargetErrors       HealthReason = "target_errors"
	HealthReasonFreshExit          HealthReason = "fresh_exit"
	HealthReasonRotationNotHelping HealthReason = "rotation_not_helping"
	HealthReasonHealthy            HealthReason = "healthy"
)

// HealthStats is the type of SessionHealth.stats.
type HealthStats struct {
	// 0 without latencies.
	AvgLatencyMS json.Number `json:"avg_latency_ms"`
	// How many events there were of each type.
	ByType ByType `json:"by_type"`
	// The same since the last rotation.
	CurrentExit Exit `json:"current_exit"`
	// When the last event occurred; null before the first.
	LastEventAt *time.Time `json:"last_event_at"`
	// What the gateway observed on the way to the target.
	Observed Observed `json:"observed"`
	// 0 without latencies.
	P95LatencyMS int `json:"p95_latency_ms"`
	// How many rotations there were.
	Rotations int `json:"rotations"`
	// The 32 codes most met.
	StatusCodes map[string]int `json:"status_codes"`
	// Events of every type.
	TotalEvents int `json:"total_events"`
}

// Host is the type of Hosts.items.
type Host struct {
	// Connections and plain requests, failed ones included.
	Connections int `json:"connections"`
	// Of the connections.
	Failures int `json:"failures"`
	// null: all beyond the 512 a day that are listed apart.
	Host *string `json:"host"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
}

// Hosts is the answer of ListSessionHosts.
type Hosts struct {
	// This page.
	Items []Host `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// IP is the answer of GetIP.
type IP struct {
	// The address that the request came from. Through a proxy session it is the exit.
	IP string `json:"ip"`
}

// IPList is the type of Rotate.ip_list, Session.ip_list.
type IPList struct {
	// null when none was asked for.
	City *string `json:"city"`
	// An ISO 3166-1 alpha-2 code.
	Country *string `json:"country"`
	// null: not measured yet.
	Exit *ExitFacts `json:"exit"`
	// The address to route traffic through.
	FullURL string `json:"full_url"`
	// The host name or address.
	Host string `json:"host"`
	// The proxy's URL for HTTP clients, credential included.
	HTTPURL string `json:"http_url"`
	// http_url with TLS to the proxy; null: it has none.
	HTTPSURL *string `json:"https_url"`
	// The address that targets see.
	IP string `json:"ip"`
	// At the gateway letters and digits only, and the same for the session's whole life.
	Password string `json:"password"`
	// The port of the gateway or of the upstream.
	Port int `json:"port"`
	// What full_url begins with. Both work on the same port.
	Protocol Protocol `json:"protocol"`
	// The proxy's URL for SOCKS5 clients, credential included.
	SOCKS5URL string `json:"socks5_url"`
	// Letters and digits only at the gateway.
	Username string `json:"username"`
}

// IssuedKey is the answer of CreateKey, RotateKey.
type IssuedKey struct {
	// Sent in the header X-API-Key. Shown once.
	APIKey string `json:"api_key"`
	// What it may spend.
	Budget KeyBudget `json:"budget"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// null: it does not expire.
	ExpiresAt *time.Time `json:"expires_at"`
	// What they hold.
	Held json.Number `json:"held"`
	// The last characters of the key; null for a key of an early version.
	Hint *string `json:"hint"`
	// Names the key; it is not a secret.
	KeyID string `json:"key_id"`
	// Written once a minute, so up to a minute late; null: not used yet.
	LastUsedAt *time.Time `json:"last_used_at"`
	// The least that any limit leaves for one purchase; null without one.
	Left *json.Number `json:"left"`
	// Live ones at a time; null: no limit.
	MaxSessions *int `json:"max_sessions"`
	// For people.
	Name string `json:"name"`
	// What the key or token may do.
	Permissions []string `json:"permissions"`
	// The only products that it buys; null: all.
	Products []string `json:"products"`
	// own: those of other keys do not exist for it.
	Sessions KeyReach `json:"sessions"`
	// Live sessions that it bought.
	SessionsLive int `json:"sessions_live"`
	// Charged for the sessions that it bought, less what was refunded.
	Spent json.Number `json:"spent"`
}

// Key is the type of Keys.items.
type Key struct {
	// What it may spend.
	Budget KeyBudget `json:"budget"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// null: it does not expire.
	ExpiresAt *time.Time `json:"expires_at"`
	// What they hold.
	Held json.Number `json:"held"`
	// The last characters of the key; null for a key of an early version.
	Hint *string `json:"hint"`
	// Names the key; it is not a secret.
	KeyID string `json:"key_id"`
	// Written once a minute, so up to a minute late; null: not used yet.
	LastUsedAt *time.Time `json:"last_used_at"`
	// The least that any limit leaves for one purchase; null without one.
	Left *json.Number `json:"left"`
	// Live ones at a time; null: no limit.
	MaxSessions *int `json:"max_sessions"`
	// For people.
	Name string `json:"name"`
	// What the key or token may do.
	Permissions []string `json:"permissions"`
	// The only products that it buys; null: all.
	Products []string `json:"products"`
	// own: those of other keys do not exist for it.
	Sessions KeyReach `json:"sessions"`
	// Live sessions that it bought.
	SessionsLive int `json:"sessions_live"`
	// Charged for the sessions that it bought, less what was refunded.
	Spent json.Number `json:"spent"`
}

// KeyBudget is the type of IssuedKey.budget, Key.budget.
type KeyBudget struct {
	// Of a UTC day; null: none.
	Daily *json.Number `json:"daily"`
	// Of one purchase; null: none.
	PerPurchase *json.Number `json:"per_purchase"`
	// Ever; null: none.
	Total *json.Number `json:"total"`
}

// KeyBudgetRequest is the type of ChangeKey.budget, CreateKey.budget.
type KeyBudgetRequest struct {
	// Of a UTC day.
	Daily json.Number `json:"daily,omitzero"`
	// Of one purchase, renewal or top-up.
	PerPurchase json.Number `json:"per_purchase,omitzero"`
	// Ever.
	Total json.Number `json:"total,omitzero"`
}

// KeyEntries is the type of Transactions.by_key.
type KeyEntries struct {
	// The signed change of the spendable balance.
	Amount json.Number `json:"amount"`
	// What charges took of the held money.
	ChargedAmount json.Number `json:"charged_amount"`
	// null: of no session, or of one whose key is not known.
	KeyID *string `json:"key_id"`
	// How many there are.
	Transactions int `json:"transactions"`
}

// KeyMoney is the type of Balance.key.
type KeyMoney struct {
	// What they hold.
	Held json.Number `json:"held"`
	// Names the key.
	KeyID string `json:"key_id"`
	// The least that any limit leaves for one purchase; null without one.
	Left *json.Number `json:"left"`
	// Live sessions that it bought.
	SessionsLive int `json:"sessions_live"`
	// Charged for the sessions that it bought, less what was refunded.
	Spent json.Number `json:"spent"`
}

// KeyPart is the type of Statement.by_key.
type KeyPart struct {
	// The signed change of the balance.
	Amount json.Number `json:"amount"`
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// Signed: what was moved until the end of the month.
	ClosingBalance json.Number `json:"closing_balance"`
	// Of this month, as the rest.
	Held json.Number `json:"held"`
	// null: of no session, or of sessions whose key is not known.
	KeyID *string `json:"key_id"`
	// Signed: what was moved before.
	OpeningBalance json.Number `json:"opening_balance"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
	// Held and not used.
	Released json.Number `json:"released"`
	// Charged, less refunded.
	Spent json.Number `json:"spent"`
}

// KeyReach is the type of ChangeKey.sessions, CreateKey.sessions, IssuedKey.sessions, Key.sessions.
type KeyReach string

// The values of KeyReach.
const (
	KeyReachAll KeyReach = "all"
	KeyReachOwn KeyReach = "own"
)

// KeySessions is the type of Sessions.by_key.
type KeySessions struct {
	// null: of sessions whose key is not known.
	KeyID *string `json:"key_id"`
	// How many there are.
	Sessions int `json:"sessions"`
	// How many of them live.
	SessionsLive int `json:"sessions_live"`
}

// KeyTotals is the type of Report.by_key.
type KeyTotals struct {
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// How many there were.
	Connections int `json:"connections"`
	// null: of sessions whose key is not known.
	KeyID *string `json:"key_id"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
	// How many sessions there were.
	Sessions int `json:"sessions"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
	// What was used, in GB of 1,000,000,000 bytes.
	UsedGB json.Number `json:"used_gb"`
}

// Keys is the answer of DeleteKey, ListKeys.
type Keys struct {
	// This page.
	Items []Key `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Limits is the answer of GetLimits.
type Limits struct {
	// What can be spent, in US dollars; it includes the trial credit.
	Balance json.Number `json:"balance"`
	// What PUT /billing/budget leaves.
	Budget BudgetLeft `json:"budget"`
	// Connections through all sessions together.
	Gateway GatewayBounds `json:"gateway"`
	// Calls of this API; null: unlimited.
	Requests *RequestsLeft `json:"requests"`
	// Sessions that live at a time.
	Sessions SessionsLeft `json:"sessions"`
	// What the service stores for the account on a UTC day, mostly telemetry; null: unlimited.
	StoredToday *StoredLeft `json:"stored_today"`
	// A trial account has limits of its own.
	Tier Tier `json:"tier"`
}

// Location is the type of Rotate.location, Session.location, Worker.location.
type Location struct {
	// null: any.
	City *string `json:"city"`
	// ISO 3166-1 alpha-2; null: any.
	Country *string `json:"country"`
}

// MadeWorkers is the answer of MakeWorkers.
type MadeWorkers struct {
	// In the order that was asked for.
	Items []Worker `json:"items"`
}

// Meta is what a webhook receives.
type Meta struct {
	// Names this request; also in the header X-Request-ID.
	RequestID string `json:"request_id"`
	// When the answer was written, in UTC with milliseconds.
	Timestamp time.Time `json:"timestamp"`
}

// NetworkType is the type of ExitFacts.network_type.
type NetworkType string

// The values of NetworkType.
const (
	NetworkTypeResidential NetworkType = "residential"
	NetworkTypeMobile      NetworkType = "mobile"
	NetworkTypeIsp         NetworkType = "isp"
	NetworkTypeHosting     NetworkType = "hosting"
	NetworkTypeUnknown     NetworkType = "unknown"
)

// Observed is the type of Exit.observed, HealthStats.observed.
type Observed struct {
	// How many events there were of each type.
	ByType ByType `json:"by_type"`
	// When the last event occurred; null before the first.
	LastEventAt *time.Time `json:"last_event_at"`
	// How many answers had each HTTP status.
	StatusCodes map[string]int `json:"status_codes"`
	// Events of every type.
	TotalEvents int `json:"total_events"`
}

// Overview is the answer of GetOverview.
type Overview struct {
	// Sessions that can be used now.
	ActiveSessions int `json:"active_sessions"`
	// What can be spent, in US dollars; it includes the trial credit.
	Balance json.Number `json:"balance"`
	// Sessions that a provider still delivers.
	CreatingSessions int `json:"creating_sessions"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Events that the agent has reported.
	EventsReported int `json:"events_reported"`
	// What is held for live sessions, in US dollars.
	Held json.Number `json:"held"`
	// How many rotations there were.
	Rotations int `json:"rotations"`
	// 1 when nothing was scored.
	SuccessRate json.Number `json:"success_rate"`
	// What was ever recharged, in US dollars.
	TotalRecharged json.Number `json:"total_recharged"`
	// Sessions that were ever created.
	TotalSessions int `json:"total_sessions"`
	// Charges less refunds.
	TotalSpent json.Number `json:"total_spent"`
	// Traffic of all sessions in GB.
	TrafficUsedGB json.Number `json:"traffic_used_gb"`
}

// Pagination is the type of Clients.pagination, Deliveries.pagination, Events.pagination, Hosts.pagination and
// others.
type Pagination struct {
	// What to send as cursor for the items that follow; null at the end.
	NextCursor *string `json:"next_cursor"`
	// The number of this page, from 1; 1 with a cursor.
	Page int `json:"page"`
	// How many items a page has.
	PageSize int `json:"page_size"`
	// Items in all.
	Total int `json:"total"`
	// 0 for an empty list.
	TotalPages int `json:"total_pages"`
}

// Period is the type of GetUsageReport.period, Report.period.
type Period string

// The values of Period.
const (
	PeriodDay   Period = "day"
	PeriodWeek  Period = "week"
	PeriodMonth Period = "month"
)

// Permission is the type of CreateKey.permissions, IssueToken.permissions.
type Permission string

// The values of Permission.
const (
	PermissionAccountRead    Permission = "account:read"
	PermissionAccountWrite   Permission = "account:write"
	PermissionProductsRead   Permission = "products:read"
	PermissionSessionsRead   Permission = "sessions:read"
	PermissionSessionsWrite  Permission = "sessions:write"
	PermissionTelemetryWrite Permission = "telemetry:write"
	PermissionBillingRead    Permission = "billing:read"
	PermissionBillingWrite   Permission = "billing:write"
	PermissionStatsRead      Permission = "stats:read"
)

// Policy is the answer of GetSessionPolicy, SetSessionPolicy.
type Policy struct {
	// Nothing else may be reached; empty is everything.
	Allow []PolicyEntry `json:"allow"`
	// What may not be reached; it wins over allow.
	Deny []PolicyEntry `json:"deny"`
	// What becomes of a target that the rules refuse.
	Mode PolicyMode `json:"mode"`
	// The only ports that may be reached; empty is every port.
	Ports []PolicyEntry `json:"ports"`
}

// PolicyMode is the type of Policy.mode, PolicyRequest.mode, SetSessionPolicy.mode.
type PolicyMode string

// The values of PolicyMode.
const (
	PolicyModeOff     PolicyMode = "off"
	PolicyModeReport  PolicyMode = "report"
	PolicyModeEnforce PolicyMode = "enforce"
)

// PolicyRequest is the type of CreateSession.policy, CreateSessionFlat.policy.
type PolicyRequest struct {
	// Nothing else may be reached. With deny at most 1000 rules.
	Allow []PolicyEntry `json:"allow,omitzero"`
	// May not be reached; it wins over allow.
	Deny []PolicyEntry `json:"deny,omitzero"`
	// enforce is the default.
	Mode PolicyMode `json:"mode,omitzero"`
	// The only ports that may be reached; empty is every port.
	Ports []PolicyEntry `json:"ports,omitzero"`
}

// Product is the type of Products.items.
type Product struct {
	// Whether it can be bought now.
	Available bool `json:"available"`
	// Empty: any city code is taken.
	Cities []string `json:"cities"`
	// ISO 3166-1 alpha-2.
	Countries []string `json:"countries"`
	// Of all amounts.
	Currency string `json:"currency"`
	// gateway: proxy.full_url is the service's own gateway. direct: it is the upstream's proxy; usage is what that
	// counts, a minute late, and the rest is given back once it has counted the end.
	Delivery DeliveryMode `json:"delivery"`
	// What it is, for people.
	Description string `json:"description"`
	// Empty for a dynamic product.
	Durations []Duration `json:"durations"`
	// Static: GB that an IP may transfer for each 30 days bought; null: no limit.
	FairUseGB *json.Number `json:"fair_use_gb"`
	// The most that one purchase can have, in the unit.
	MaxQuantity int `json:"max_quantity"`
	// null for a static product.
	MaxTrafficGB *json.Number `json:"max_traffic_gb"`
	// The least that one purchase can have, in the unit.
	MinQuantity int `json:"min_quantity"`
	// The least tier of an account that may buy it; a lower one is refused with TIER_REQUIRED.
	MinTier Tier `json:"min_tier"`
	// null for a static product.
	MinTrafficGB *json.Number `json:"min_traffic_gb"`
	// For people.
	Name string `json:"name"`
	// Of one unit; static: for the shortest duration.
	Price json.Number `json:"price"`
	// Used in the body of POST /sessions.
	ProductNo string `json:"product_no"`
	// What clients can use with the proxy.
	Protocols []string `json:"protocols"`
	// sync: POST /sessions answers 201 active; async: 202 creating.
	Provisioning Provisioning `json:"provisioning"`
	// traffic_gb is a multiple of it. null for a static product.
	TrafficStepGB *json.Number `json:"traffic_step_gb"`
	// Whether trial credit pays for it. false: only your own money does, whatever the balance.
	TrialCredit bool `json:"trial_credit"`
	// What kind it is.
	Type SessionType `json:"type"`
	// Most addresses that a target sees; null: unknown.
	UniqueExits *int `json:"unique_exits"`
	// What the price is for.
	Unit Unit `json:"unit"`
	// Whether its sessions can have workers, see make-workers.
	Workers bool `json:"workers"`
}

// Products is the answer of ListProducts, ListPublicProducts.
type Products struct {
	// This page.
	Items []Product `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Protocol is the type of Check.protocol, Connected.protocol, CreateConfig.protocol, CreateSessionFlat.protocol
// and others.
type Protocol string

// The values of Protocol.
const (
	ProtocolHTTP   Protocol = "http"
	ProtocolSOCKS5 Protocol = "socks5"
)

// Provisioning is the type of Product.provisioning.
type Provisioning string

// The values of Provisioning.
const (
	ProvisioningSync  Provisioning = "sync"
	ProvisioningAsync Provisioning = "async"
)

// ProvisioningMode is the type of CreateConfig.provisioning_mode, CreateSession.provisioning_mode,
// CreateSessionFlat.provisioning_mode.
type ProvisioningMode string

// The values of ProvisioningMode.
const (
	ProvisioningModePurchase ProvisioningMode = "purchase"
	ProvisioningModeExisting ProvisioningMode = "existing"
)

// Proxy is the type of Rotate.new_proxy, Rotate.proxy, Session.proxy, Worker.proxy.
type Proxy struct {
	// The address to route traffic through.
	FullURL string `json:"full_url"`
	// The host name or address.
	Host string `json:"host"`
	// The proxy's URL for HTTP clients, credential included.
	HTTPURL string `json:"http_url"`
	// http_url with TLS to the proxy; null: it has none.
	HTTPSURL *string `json:"https_url"`
	// At the gateway letters and digits only, and the same for the session's whole life.
	Password string `json:"password"`
	// The port of the gateway or of the upstream.
	Port int `json:"port"`
	// What full_url begins with. Both work on the same port.
	Protocol Protocol `json:"protocol"`
	// The proxy's URL for SOCKS5 clients, credential included.
	SOCKS5URL string `json:"socks5_url"`
	// Letters and digits only at the gateway.
	Username string `json:"username"`
}

// RateLimit is the type of Account.rate_limit, Updated.rate_limit.
type RateLimit struct {
	// 0: unlimited.
	Burst int `json:"burst"`
	// 0: unlimited.
	RequestsPerMinute int `json:"requests_per_minute"`
}

// Recharge is the type of Recharges.items.
type Recharge struct {
	// US dollars, as ordered.
	Amount json.Number `json:"amount"`
	// USDT to send.
	AmountUSDT json.Number `json:"amount_usdt"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Send before this.
	ExpireTime time.Time `json:"expire_time"`
	// The network of the payment.
	Network string `json:"network"`
	// Names the order.
	OrderID string `json:"order_id"`
	// USDT of final transfers that count for this order; all is credited.
	ReceivedUSDT json.Number `json:"received_usdt"`
	// Its state.
	Status RechargeState `json:"status"`
	// True on the development chain and test networks.
	Test bool `json:"test"`
	// The agent's own address on TRON. Send USDT (TRC20) only. Empty while no payments are taken.
	WalletAddress string `json:"wallet_address"`
}

// RechargeState is the type of ListRecharges.status, Recharge.status, RechargeStatus.status.
type RechargeState string

// The values of RechargeState.
const (
	RechargeStatePending    RechargeState = "pending"
	RechargeStateConfirming RechargeState = "confirming"
	RechargeStatePaid       RechargeState = "paid"
	RechargeStateExpired    RechargeState = "expired"
	RechargeStateFailed     RechargeState = "failed"
)

// RechargeStatus is the answer of GetRechargeStatus.
type RechargeStatus struct {
	// US dollars, as ordered.
	Amount json.Number `json:"amount"`
	// USDT to send.
	AmountUSDT json.Number `json:"amount_usdt"`
	// Blocks on top of the newest transfer.
	Confirmations int `json:"confirmations"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// Of all amounts.
	Currency string `json:"currency"`
	// Send before this.
	ExpireTime time.Time `json:"expire_time"`
	// Not received yet.
	MissingUSDT json.Number `json:"missing_usdt"`
	// The network of the payment.
	Network string `json:"network"`
	// Names the order.
	OrderID string `json:"order_id"`
	// When the transfer that reached the amount was made; null: not yet.
	PaidAt *time.Time `json:"paid_at"`
	// A part was received.
	Partial bool `json:"partial"`
	// USDT of final transfers that count for this order; all is credited.
	ReceivedUSDT json.Number `json:"received_usdt"`
	// Blocks that make a transfer final.
	RequiredConfirmations int `json:"required_confirmations"`
	// Its state.
	Status RechargeState `json:"status"`
	// True on the development chain and test networks.
	Test bool `json:"test"`
	// The transaction of the newest transfer; null: none was seen.
	TxHash *string `json:"tx_hash"`
	// The agent's own address on TRON. Send USDT (TRC20) only. Empty while no payments are taken.
	WalletAddress string `json:"wallet_address"`
}

// Recharges is the answer of ListRecharges.
type Recharges struct {
	// This page.
	Items []Recharge `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Recommendation is the type of Recommendations.items.
type Recommendation struct {
	// A body that POST /sessions accepts unchanged.
	Create Suggestion `json:"create"`
	// What the suggested purchase costs, in US dollars.
	EstimatedCost json.Number `json:"estimated_cost"`
	// For people.
	Name string `json:"name"`
	// US dollars for one unit.
	Price json.Number `json:"price"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// Why it fits, for people.
	Reasons []string `json:"reasons"`
	// 1 fits best.
	Score json.Number `json:"score"`
	// What kind it is.
	Type SessionType `json:"type"`
	// What the price is for.
	Unit Unit `json:"unit"`
	// true when no budget was given.
	WithinBudget bool `json:"within_budget"`
}

// Recommendations is the answer of RecommendProducts.
type Recommendations struct {
	// This page.
	Items []Recommendation `json:"items"`
}

// Referral is the type of Account.referral, Registered.referral, Updated.referral.
type Referral struct {
	// Names the account.
	AgentID string `json:"agent_id"`
	// null for the default referring agent.
	Code *string `json:"code"`
	// For people.
	Name string `json:"name"`
}

// Region is the type of Regions.items.
type Region struct {
	// City codes that can be ordered; empty: any code is taken.
	Cities []string `json:"cities"`
	// ISO 3166-1 alpha-2.
	Code string `json:"code"`
	// For people.
	Name string `json:"name"`
	// The types of products sold there.
	Types []string `json:"types"`
}

// Regions is the answer of ListRegions.
type Regions struct {
	// This page.
	Items []Region `json:"items"`
}

// Registered is the answer of Register, RegisterAlias.
type Registered struct {
	// Names the account.
	AgentID string `json:"agent_id"`
	// Sent in the header X-API-Key. Shown once.
	APIKey string `json:"api_key"`
	// Needed for POST /auth/token only. Shown once.
	APISecret string `json:"api_secret"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// For people.
	Name string `json:"name"`
	// Only when a valid referral_code was given.
	Referral *Referral `json:"referral,omitzero"`
	// Its state.
	Status string `json:"status"`
	// The trial credit.
	Trial Trial `json:"trial"`
	// Only when a webhook_url was given. Shown once.
	WebhookSecret string `json:"webhook_secret,omitzero"`
}

// Replacement is the answer of ReplaceIP.
type Replacement struct {
	// That was charged.
	Cost json.Number `json:"cost"`
	// Why; the first two are free, once an IP.
	Ground ReplacementGround `json:"ground"`
	// That was given back.
	IP string `json:"ip"`
	// In its place; null: none yet, or none.
	NewIP *string `json:"new_ip"`
	// For whole unused days.
	Refunded json.Number `json:"refunded"`
	// Prefix rep_.
	ReplacementID string `json:"replacement_id"`
	// Its user names and password stay.
	SessionID string `json:"session_id"`
	// pending: its seller was asked. ended: without another address.
	Status ReplacementState `json:"status"`
}

// ReplacementGround is the type of Replacement.ground.
type ReplacementGround string

// The values of ReplacementGround.
const (
	ReplacementGroundContradicted ReplacementGround = "contradicted"
	ReplacementGroundUnreachable  ReplacementGround = "unreachable"
	ReplacementGroundOffered      ReplacementGround = "offered"
)

// ReplacementReason is the type of ReplaceIP.reason.
type ReplacementReason string

// The values of ReplacementReason.
const (
	ReplacementReasonWrongPlace  ReplacementReason = "wrong_place"
	ReplacementReasonListed      ReplacementReason = "listed"
	ReplacementReasonUnreachable ReplacementReason = "unreachable"
	ReplacementReasonBlocked     ReplacementReason = "blocked"
	ReplacementReasonOther       ReplacementReason = "other"
)

// ReplacementState is the type of Replacement.status.
type ReplacementState string

// The values of ReplacementState.
const (
	ReplacementStatePending ReplacementState = "pending"
	ReplacementStateDone    ReplacementState = "done"
	ReplacementStateEnded   ReplacementState = "ended"
	ReplacementStateRefused ReplacementState = "refused"
)

// Report is the answer of GetUsageReport.
type Report struct {
	// With by=key: the totals of each key.
	ByKey []KeyTotals `json:"by_key,omitzero"`
	// Of all amounts.
	Currency string `json:"currency"`
	// The first moment of the period.
	From time.Time `json:"from"`
	// One for each session, the newest first.
	Items []ReportItem `json:"items"`
	// Only when page, page_size or cursor was sent; else items has all sessions.
	Pagination *Pagination `json:"pagination,omitzero"`
	// The length of the period.
	Period Period `json:"period"`
	// Exclusive.
	To time.Time `json:"to"`
	// The sum of all items.
	Totals ReportTotals `json:"totals"`
}

// ReportItem is the type of Report.items.
type ReportItem struct {
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// How many there were.
	Connections int `json:"connections"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
	// The session.
	SessionID string `json:"session_id"`
	// What kind it is.
	Type SessionType `json:"type"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
	// What was used, in GB of 1,000,000,000 bytes.
	UsedGB json.Number `json:"used_gb"`
}

// ReportTotals is the type of Report.totals.
type ReportTotals struct {
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// How many sessions there were.
	Sessions int `json:"sessions"`
	// What was used, in GB of 1,000,000,000 bytes.
	UsedGB json.Number `json:"used_gb"`
}

// Reported is the answer of ReportEvent.
type Reported struct {
	// Names the event.
	EventID string `json:"event_id"`
	// The health after this event.
	SessionHealth SessionHealthShort `json:"session_health"`
}

// RequestsLeft is the type of Limits.requests.
type RequestsLeft struct {
	// Calls that may be sent at once, after this one.
	Left int `json:"left"`
	// The limit, and the burst.
	PerMinute int `json:"per_minute"`
	// When the whole limit is free again.
	ResetAt time.Time `json:"reset_at"`
}

// Require is the type of CreateSession.require, CreateSessionFlat.require, MakeWorkers.require,
// RotateSession.require and others.
type Require struct {
	// Measured where it was sold.
	Agreed bool `json:"agreed,omitzero"`
	// One of these autonomous systems.
	Asns []json.Number `json:"asns,omitzero"`
	// Exits that a seller is asked for; 3 is the default.
	Attempts int `json:"attempts,omitzero"`
	// Of exit.risk; a whole number.
	MaxRisk json.Number `json:"max_risk,omitzero"`
	// One of these.
	NetworkTypes []string `json:"network_types,omitzero"`
	// Networks (CIDR) that have it not.
	NotIn []string `json:"not_in,omitzero"`
}

// Result is the type of Batch.results.
type Result struct {
	// Why it was refused; null if it was accepted.
	Error *ResultError `json:"error"`
	// The position in the batch, from 0.
	Index int `json:"index"`
	// The session.
	SessionID string `json:"session_id"`
	// Its state.
	Status EventOutcome `json:"status"`
}

// ResultError is the type of Result.error.
type ResultError struct {
	// For programs; it does not change.
	Code EventRefusal `json:"code"`
	// For people: what is wrong and what to do.
	Message string `json:"message"`
}

// RiskLevel is the type of SessionHealth.risk_level, SessionHealthBrief.risk_level,
// SessionHealthShort.risk_level, WorkersHealth.risk_level.
type RiskLevel string

// The values of RiskLevel.
const (
	RiskLevelLow      RiskLevel = "low"
	RiskLevelMedium   RiskLevel = "medium"
	RiskLevelHigh     RiskLevel = "high"
	RiskLevelCritical RiskLevel = "critical"
)

// Rotate is the answer of RotateSession.
type Rotate struct {
	// When the proxy was ready for use; null before.
	ActivatedAt *time.Time `json:"activated_at"`
	// Networks that clients may connect from; empty: any.
	AllowedIPs []string `json:"allowed_ips"`
	// What a dynamic session buys by itself; null: nothing.
	AutoTopUp *AutoTopUp `json:"auto_top_up"`
	// The key that bought it, for whose budget its cost counts; null: not known.
	BoughtBy *Buyer `json:"bought_by"`
	// What was charged, is held, and was given back.
	Cost Cost `json:"cost"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// null for a dynamic session.
	DurationDays *int `json:"duration_days"`
	// When the session ended; null while it lives.
	EndedAt *time.Time `json:"ended_at"`
	// When a static session ends. null for a dynamic one and before activation.
	ExpiresAt *time.Time `json:"expires_at"`
	// Why the session failed; null if it did not.
	Failure *Failure `json:"failure"`
	// A short form of GET /sessions/{session_id}/health.
	Health WorkersHealth `json:"health"`
	// The IPs of an active static session; empty otherwise.
	IPList []IPList `json:"ip_list"`
	// Your own words for the session.
	Labels map[string]string `json:"labels"`
	// Where the exits are.
	Location Location `json:"location"`
	// The proxy after the rotation; null while it is under way.
	NewProxy *Proxy `json:"new_proxy"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// How to connect; null unless the session is active.
	Proxy *Proxy `json:"proxy"`
	// IPs; 1 for a dynamic session.
	Quantity int `json:"quantity"`
	// When it rotated; null while that is under way.
	RotatedAt *time.Time `json:"rotated_at"`
	// When the exit changes.
	Rotation Rotation `json:"rotation"`
	// Never changes, whatever is rotated.
	SessionID string `json:"session_id"`
	// Its state.
	Status SessionState `json:"status"`
	// Why it ended: agent_request, traffic_exhausted, time_expired, provider_failed, provider_lost,
	// account_disabled or operator_request. null while it lives.
	StatusReason *string `json:"status_reason"`
	// The traffic bought. null for a static session.
	TrafficGB *json.Number `json:"traffic_gb"`
	// What kind it is.
	Type SessionType `json:"type"`
	// A short form of GET /sessions/{session_id}/usage.
	Usage Usage `json:"usage"`
}

// RotateReason is the type of RotateSession.reason, RotateWorker.reason.
type RotateReason string

// The values of RotateReason.
const (
	RotateReasonHTTP403   RotateReason = "http_403"
	RotateReasonHTTP429   RotateReason = "http_429"
	RotateReasonCaptcha   RotateReason = "captcha"
	RotateReasonTimeout   RotateReason = "timeout"
	RotateReasonBlock     RotateReason = "block"
	RotateReasonScheduled RotateReason = "scheduled"
	RotateReasonManual    RotateReason = "manual"
)

// Rotation is the type of Rotate.rotation, Session.rotation.
type Rotation struct {
	// How often it has rotated.
	Count int `json:"count"`
	// null unless the mode is timed.
	IntervalSeconds *int `json:"interval_seconds"`
	// When it last rotated; null before the first time.
	LastRotatedAt *time.Time `json:"last_rotated_at"`
	// When the exit changes.
	Mode RotationMode `json:"mode"`
	// null unless the mode is timed.
	NextRotationAt *time.Time `json:"next_rotation_at"`
}

// RotationMode is the type of CreateRotation.mode, CreateSessionFlat.rotation_mode, Rotation.mode.
type RotationMode string

// The values of RotationMode.
const (
	RotationModeOnDemand RotationMode = "on_demand"
	RotationModeTimed    RotationMode = "timed"
	RotationModeFixed    RotationMode = "fixed"
)

// Secret is the answer of RotateSecret.
type Secret struct {
	// Shown once. Tokens of the old one fail.
	APISecret string `json:"api_secret"`
	// When the new one took effect.
	RotatedAt time.Time `json:"rotated_at"`
}

// Session is the type of Sessions.items.
type Session struct {
	// When the proxy was ready for use; null before.
	ActivatedAt *time.Time `json:"activated_at"`
	// Networks that clients may connect from; empty: any.
	AllowedIPs []string `json:"allowed_ips"`
	// What a dynamic session buys by itself; null: nothing.
	AutoTopUp *AutoTopUp `json:"auto_top_up"`
	// The key that bought it, for whose budget its cost counts; null: not known.
	BoughtBy *Buyer `json:"bought_by"`
	// What was charged, is held, and was given back.
	Cost Cost `json:"cost"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// null for a dynamic session.
	DurationDays *int `json:"duration_days"`
	// When the session ended; null while it lives.
	EndedAt *time.Time `json:"ended_at"`
	// When a static session ends. null for a dynamic one and before activation.
	ExpiresAt *time.Time `json:"expires_at"`
	// Why the session failed; null if it did not.
	Failure *Failure `json:"failure"`
	// A short form of GET /sessions/{session_id}/health.
	Health WorkersHealth `json:"health"`
	// The IPs of an active static session; empty otherwise.
	IPList []IPList `json:"ip_list"`
	// Your own words for the session.
	Labels map[string]string `json:"labels"`
	// Where the exits are.
	Location Location `json:"location"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// How to connect; null unless the session is active.
	Proxy *Proxy `json:"proxy"`
	// IPs; 1 for a dynamic session.
	Quantity int `json:"quantity"`
	// When the exit changes.
	Rotation Rotation `json:"rotation"`
	// Never changes, whatever is rotated.
	SessionID string `json:"session_id"`
	// Its state.
	Status SessionState `json:"status"`
	// Why it ended: agent_request, traffic_exhausted, time_expired, provider_failed, provider_lost,
	// account_disabled or operator_request. null while it lives.
	StatusReason *string `json:"status_reason"`
	// The traffic bought. null for a static session.
	TrafficGB *json.Number `json:"traffic_gb"`
	// What kind it is.
	Type SessionType `json:"type"`
	// A short form of GET /sessions/{session_id}/usage.
	Usage Usage `json:"usage"`
}

// SessionHealth is the answer of GetSessionHealth.
type SessionHealth struct {
	// How much evidence the score rests on.
	Confidence json.Number `json:"confidence"`
	// 100 is best. docs/health.md has the formula.
	HealthScore int `json:"health_score"`
	// What the recommendation follows from most.
	Reason HealthReason `json:"reason"`
	// What to do with the session.
	Recommendation HealthAdvice `json:"recommendation"`
	// With the recommendation pause: how long. null otherwise.
	RetryAfterSeconds *int `json:"retry_after_seconds"`
	// The health score in words.
	RiskLevel RiskLevel `json:"risk_level"`
	// What the score is made from.
	Stats HealthStats `json:"stats"`
	// The weighted part of events that were good.
	SuccessRate json.Number `json:"success_rate"`
	// null without workers.
	Workers *WorkerCount `json:"workers"`
	// At most five target hosts, the worst first.
	WorstHosts []WorstHost `json:"worst_hosts"`
}

// SessionHealthBrief is the type of Worker.health.
type SessionHealthBrief struct {
	// 100 is best. docs/health.md has the formula.
	HealthScore int `json:"health_score"`
	// What to do with the session.
	Recommendation HealthAdvice `json:"recommendation"`
	// The health score in words.
	RiskLevel RiskLevel `json:"risk_level"`
	// The weighted part of events that were good.
	SuccessRate json.Number `json:"success_rate"`
}

// SessionHealthShort is the type of Reported.session_health.
type SessionHealthShort struct {
	// 100 is best. docs/health.md has the formula.
	HealthScore int `json:"health_score"`
	// What the recommendation follows from most.
	Reason HealthReason `json:"reason"`
	// What to do with the session.
	Recommendation HealthAdvice `json:"recommendation"`
	// The health score in words.
	RiskLevel RiskLevel `json:"risk_level"`
	// The weighted part of events that were good.
	SuccessRate json.Number `json:"success_rate"`
}

// SessionState is the type of ListSessions.status, Rotate.status, Session.status.
type SessionState string

// The values of SessionState.
const (
	SessionStateCreating   SessionState = "creating"
	SessionStateActive     SessionState = "active"
	SessionStateTerminated SessionState = "terminated"
	SessionStateExpired    SessionState = "expired"
	SessionStateFailed     SessionState = "failed"
)

// SessionType is the type of CreateSession.type, CreateSessionFlat.session_type, ListSessions.type,
// Product.type and others.
type SessionType string

// The values of SessionType.
const (
	SessionTypeDynamic SessionType = "dynamic"
	SessionTypeStatic  SessionType = "static"
)

// SessionTypeFilter is the type of ListProducts.type, ListPublicProducts.type.
type SessionTypeFilter string

// The values of SessionTypeFilter.
const (
	SessionTypeFilterDynamic SessionTypeFilter = "dynamic"
	SessionTypeFilterStatic  SessionTypeFilter = "static"
	SessionTypeFilterAll     SessionTypeFilter = "all"
)

// Sessions is the answer of ListSessions.
type Sessions struct {
	// With by=key: those of the whole list; together they are its total.
	ByKey []KeySessions `json:"by_key,omitzero"`
	// This page.
	Items []Session `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// SessionsLeft is the type of Limits.sessions.
type SessionsLeft struct {
	// How many there may be; null: unlimited.
	Limit *int `json:"limit"`
	// How many there are.
	Live int `json:"live"`
}

// Statement is the answer of GetStatement.
type Statement struct {
	// With by=key: the part of each key; together they are the account.
	ByKey []KeyPart `json:"by_key,omitzero"`
	// Signed changes of the balance.
	ByType map[string]json.Number `json:"by_type"`
	// Of the current month so far.
	ClosingBalance json.Number `json:"closing_balance"`
	// Of all amounts.
	Currency string `json:"currency"`
	// The first moment of the period.
	From time.Time `json:"from"`
	// Used in it, spent later.
	InMonthAfter json.Number `json:"in_month_after"`
	// By session, the newest first.
	Items []StatementItem `json:"items"`
	// YYYY-MM, of UTC.
	Month string `json:"month"`
	// Of spent: used before.
	OfMonthBefore json.Number `json:"of_month_before"`
	// When the month began.
	OpeningBalance json.Number `json:"opening_balance"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
	// Charged, less refunded.
	Spent json.Number `json:"spent"`
	// Exclusive.
	To time.Time `json:"to"`
}

// StatementItem is the type of Statement.items.
type StatementItem struct {
	// The signed change of the balance.
	Amount json.Number `json:"amount"`
	// What was charged, in US dollars.
	Charged json.Number `json:"charged"`
	// Of this month, as the rest.
	Held json.Number `json:"held"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// What was given back, in US dollars.
	Refunded json.Number `json:"refunded"`
	// Held and not used.
	Released json.Number `json:"released"`
	// The session.
	SessionID string `json:"session_id"`
	// What kind it is.
	Type SessionType `json:"type"`
}

// StoredLeft is the type of Limits.stored_today.
type StoredLeft struct {
	// Of today.
	LeftBytes int64 `json:"left_bytes"`
	// Of a day.
	LimitBytes int64 `json:"limit_bytes"`
}

// SuggestedConfig is the type of Suggestion.config.
type SuggestedConfig struct {
	// An ISO 3166-1 alpha-2 code.
	Country string `json:"country,omitzero"`
	// Days that are paid for.
	DurationDays int `json:"duration_days,omitzero"`
	// As GET /products lists it.
	ProductNo string `json:"product_no"`
	// How many addresses.
	Quantity int `json:"quantity,omitzero"`
	// Traffic to buy in GB.
	TrafficGB json.Number `json:"traffic_gb,omitzero"`
}

// Suggestion is the type of Recommendation.create.
type Suggestion struct {
	// What to send as config of POST /sessions.
	Config SuggestedConfig `json:"config"`
	// What kind it is.
	Type SessionType `json:"type"`
}

// Tier is the type of Account.tier, Limits.tier, Product.min_tier, Updated.tier.
type Tier string

// The values of Tier.
const (
	TierTrial    Tier = "trial"
	TierFunded   Tier = "funded"
	TierVerified Tier = "verified"
)

// Time is the type of Usage.time.
type Time struct {
	// When the session ends; null if no date is set.
	ExpiresAt *time.Time `json:"expires_at"`
	// null for a dynamic session and before activation.
	RemainingSeconds *int `json:"remaining_seconds"`
	// When the session became active; null before.
	StartedAt *time.Time `json:"started_at"`
}

// Token is the answer of IssueToken, RefreshToken.
type Token struct {
	// Sent as Authorization: Bearer.
	AccessToken string `json:"access_token"`
	// The account of the token.
	Agent TokenAgent `json:"agent"`
	// Seconds.
	ExpiresIn int `json:"expires_in"`
	// Always Bearer.
	TokenType string `json:"token_type"`
}

// TokenAgent is the type of Token.agent.
type TokenAgent struct {
	// Names the account.
	AgentID string `json:"agent_id"`
	// For people.
	Name string `json:"name"`
	// What the key or token may do.
	Permissions []string `json:"permissions"`
}

// Traffic is the type of Usage.traffic.
type Traffic struct {
	// From targets to the agent.
	DownloadBytes int64 `json:"download_bytes"`
	// Static: GB that it may transfer in all; null: no limit.
	FairUseGB *json.Number `json:"fair_use_gb"`
	// The limit in bytes; null without one.
	LimitBytes *int64 `json:"limit_bytes"`
	// null for a static session, like every limit.
	LimitGB *json.Number `json:"limit_gb"`
	// Of the traffic bought, 0 to 100, with 2 decimals. null for a static session.
	Percent *json.Number `json:"percent"`
	// What is left of the limit; null without one.
	RemainingBytes *int64 `json:"remaining_bytes"`
	// What is left of the limit; null without one.
	RemainingGB *json.Number `json:"remaining_gb"`
	// From the agent to targets.
	UploadBytes int64 `json:"upload_bytes"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
	// What was used, in GB of 1,000,000,000 bytes.
	UsedGB json.Number `json:"used_gb"`
}

// TrafficBucket is the type of TrafficStats.items.
type TrafficBucket struct {
	// How many there were.
	Connections int `json:"connections"`
	// From targets to the agent.
	DownloadBytes int64 `json:"download_bytes"`
	// The first moment of the bucket.
	Start time.Time `json:"start"`
	// From the agent to targets.
	UploadBytes int64 `json:"upload_bytes"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
	// What was used, in GB of 1,000,000,000 bytes.
	UsedGB json.Number `json:"used_gb"`
}

// TrafficStats is the answer of GetTrafficStats.
type TrafficStats struct {
	// The length of a bucket.
	Granularity Granularity `json:"granularity"`
	// Oldest first, empty buckets included.
	Items []TrafficBucket `json:"items"`
}

// Transaction is the type of Transactions.items.
type Transaction struct {
	// The signed change of the spendable balance.
	Amount json.Number `json:"amount"`
	// The balance after this movement; null for a key with own.
	BalanceAfter *json.Number `json:"balance_after"`
	// Of a charge: what it took of the held money.
	ChargedAmount json.Number `json:"charged_amount"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// Of all amounts.
	Currency string `json:"currency"`
	// What moved the money, for people.
	Description string `json:"description"`
	// The recharge order, or null.
	OrderID *string `json:"order_id"`
	// The session that it belongs to, or null.
	SessionID *string `json:"session_id"`
	// Names the movement.
	TransactionID string `json:"transaction_id"`
	// What kind it is.
	Type TransactionType `json:"type"`
}

// TransactionType is the type of ListTransactions.type, Transaction.type.
type TransactionType string

// The values of TransactionType.
const (
	TransactionTypeTrialGrant  TransactionType = "trial_grant"
	TransactionTypeRecharge    TransactionType = "recharge"
	TransactionTypeHold        TransactionType = "hold"
	TransactionTypeCharge      TransactionType = "charge"
	TransactionTypeRelease     TransactionType = "release"
	TransactionTypeRefund      TransactionType = "refund"
	TransactionTypeTrialExpiry TransactionType = "trial_expiry"
	TransactionTypeAdjustment  TransactionType = "adjustment"
)

// Transactions is the answer of ListTransactions.
type Transactions struct {
	// With by=key: the sums of the whole list.
	ByKey []KeyEntries `json:"by_key,omitzero"`
	// This page.
	Items []Transaction `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// Trial is the type of Account.trial, Balance.trial, Registered.trial, Updated.trial.
type Trial struct {
	// What of the trial credit is neither spent nor held.
	Balance json.Number `json:"balance"`
	// Of all amounts.
	Currency string `json:"currency"`
	// null when no trial credit was granted.
	ExpiresAt *time.Time `json:"expires_at"`
	// Until the first credited transfer or the expiry.
	IsTrial bool `json:"is_trial"`
}

// Unit is the type of Product.unit, Recommendation.unit.
type Unit string

// The values of Unit.
const (
	UnitGB Unit = "GB"
	UnitIP Unit = "IP"
)

// Updated is the answer of UpdateAccount.
type Updated struct {
	// Names the account.
	AgentID string `json:"agent_id"`
	// How this very request was authenticated.
	AuthMode AuthMode `json:"auth_mode"`
	// The backend user that the account maps to.
	BillingUserID string `json:"billing_user_id"`
	// Where the operator may write to; null if none was given.
	ContactEmail *string `json:"contact_email"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// A text of the agent; null if none was given.
	Description *string `json:"description"`
	// For people.
	Name string `json:"name"`
	// The limit of requests in force.
	RateLimit RateLimit `json:"rate_limit"`
	// Who referred the account.
	Referral Referral `json:"referral"`
	// Its state.
	Status AccountState `json:"status"`
	// funded: enough own money came; verified: by the operator. Products may ask for a tier.
	Tier Tier `json:"tier"`
	// The trial credit.
	Trial Trial `json:"trial"`
	// When the profile was last changed.
	UpdatedAt time.Time `json:"updated_at"`
	// Only when this call set the account's first webhook_url. Shown once.
	WebhookSecret string `json:"webhook_secret,omitzero"`
	// Where events go; null if nowhere.
	WebhookURL *string `json:"webhook_url"`
}

// Usage is the type of Rotate.usage, Session.usage.
type Usage struct {
	// At most two seconds old.
	AsOf time.Time `json:"as_of"`
	// Connections that are open now.
	Connections int `json:"connections"`
	// What was charged, is held, and was given back.
	Cost Cost `json:"cost"`
	// When it began and ends.
	Time Time `json:"time"`
	// Bytes that were used and are left.
	Traffic Traffic `json:"traffic"`
}

// UseCase is the type of RecommendProducts.use_case.
type UseCase string

// The values of UseCase.
const (
	UseCaseWebScraping       UseCase = "web_scraping"
	UseCaseDataCollection    UseCase = "data_collection"
	UseCaseAccountManagement UseCase = "account_management"
	UseCaseAdVerification    UseCase = "ad_verification"
	UseCaseSEOMonitoring     UseCase = "seo_monitoring"
	UseCaseMarketResearch    UseCase = "market_research"
	UseCaseGeneral           UseCase = "general"
)

// Webhook is the answer of GetWebhook.
type Webhook struct {
	// null: it is not disabled.
	DisabledAt *time.Time `json:"disabled_at"`
	// When the endpoint last took an event; null: it has taken none.
	LastDeliveryAt *time.Time `json:"last_delivery_at"`
	// The last characters of the secret that signs; null: none was ever given out.
	SecretHint *string `json:"secret_hint"`
	// disabled: the endpoint answered 410, or failed for five days; set webhook_url again to enable it.
	Status WebhookState `json:"status"`
	// Where events go; set it with PUT /account/info. null: nowhere.
	WebhookURL *string `json:"webhook_url"`
}

// WebhookEvent is what a webhook receives.
type WebhookEvent struct {
	// Ids and the new status, by the type.
	Data map[string]string `json:"data"`
	// When it happened.
	Timestamp time.Time `json:"timestamp"`
	// What kind it is.
	Type WebhookType `json:"type"`
}

// WebhookSecret is the answer of RotateWebhookSecret.
type WebhookSecret struct {
	// When the new one took effect.
	RotatedAt time.Time `json:"rotated_at"`
	// Shown once.
	WebhookSecret string `json:"webhook_secret"`
}

// WebhookState is the type of Webhook.status.
type WebhookState string

// The values of WebhookState.
const (
	WebhookStateEnabled  WebhookState = "enabled"
	WebhookStateDisabled WebhookState = "disabled"
	WebhookStateNone     WebhookState = "none"
)

// WebhookTest is the answer of TestWebhook.
type WebhookTest struct {
	// The webhook-id of the event that is sent.
	EventID string `json:"event_id"`
}

// WebhookType is the type of AccountEvent.type, Delivery.type, WebhookEvent.type.
type WebhookType string

// The values of WebhookType.
const (
	WebhookTypeSessionActive           WebhookType = "session.active"
	WebhookTypeSessionFailed           WebhookType = "session.failed"
	WebhookTypeSessionRotated          WebhookType = "session.rotated"
	WebhookTypeSessionTrafficLow       WebhookType = "session.traffic_low"
	WebhookTypeSessionToppedUp         WebhookType = "session.topped_up"
	WebhookTypeSessionTopUpFailed      WebhookType = "session.top_up_failed"
	WebhookTypeSessionExpiring         WebhookType = "session.expiring"
	WebhookTypeSessionExpired          WebhookType = "session.expired"
	WebhookTypeSessionTerminated       WebhookType = "session.terminated"
	WebhookTypeSessionHealthChanged    WebhookType = "session.health_changed"
	WebhookTypeSessionExitPlaceDiffers WebhookType = "session.exit_place_differs"
	WebhookTypeRechargeConfirming      WebhookType = "recharge.confirming"
	WebhookTypeRechargePaid            WebhookType = "recharge.paid"
	WebhookTypeRechargeExpired         WebhookType = "recharge.expired"
	WebhookTypeRechargeFailed          WebhookType = "recharge.failed"
	WebhookTypeBudgetThreshold         WebhookType = "budget.threshold"
	WebhookTypeBalanceLow              WebhookType = "balance.low"
	WebhookTypeTrialExpiring           WebhookType = "trial.expiring"
	WebhookTypeAccountSecretRotated    WebhookType = "account.secret_rotated"
	WebhookTypeWebhookTest             WebhookType = "webhook.test"
)

// Worker is the type of MadeWorkers.items, Workers.items.
type Worker struct {
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// null: not measured yet.
	Exit *ExitFacts `json:"exit"`
	// When its next new connection gets another exit; null: never.
	ExitExpiresAt *time.Time `json:"exit_expires_at"`
	// null where the seller does not report it.
	ExitIP *string `json:"exit_ip"`
	// A short form of GET /sessions/{session_id}/health.
	Health SessionHealthBrief `json:"health"`
	// What a connection of it last failed with; null if none did.
	LastError *WorkerError `json:"last_error"`
	// null before the first use.
	LastUsedAt *time.Time `json:"last_used_at"`
	// Where the exits are.
	Location Location `json:"location"`
	// null: no limit of its own.
	MaxBytes *int64 `json:"max_bytes"`
	// For people.
	Name string `json:"name"`
	// How to connect; null unless the session is active.
	Proxy *Proxy `json:"proxy"`
	// How many rotations there were.
	Rotations int `json:"rotations"`
	// Its state.
	Status WorkerState `json:"status"`
	// Whether a lost exit is not replaced.
	Strict bool `json:"strict"`
	// null: the exit is kept.
	TTLSeconds *int `json:"ttl_seconds"`
	// A short form of GET /sessions/{session_id}/usage.
	Usage WorkerUsage `json:"usage"`
}

// WorkerCount is the type of SessionHealth.workers, WorkersHealth.workers.
type WorkerCount struct {
	// Whose risk_level is high or critical.
	AtRisk int `json:"at_risk"`
	// How many there are.
	Total int `json:"total"`
}

// WorkerError is the type of Worker.last_error.
type WorkerError struct {
	// When it failed.
	At time.Time `json:"at"`
	// For programs; it does not change.
	Code string `json:"code"`
}

// WorkerState is the type of ListWorkers.status, Worker.status.
type WorkerState string

// The values of WorkerState.
const (
	WorkerStateActive    WorkerState = "active"
	WorkerStateExitLost  WorkerState = "exit_lost"
	WorkerStateExhausted WorkerState = "exhausted"
)

// WorkerUsage is the type of Worker.usage.
type WorkerUsage struct {
	// How many there were.
	Connections int `json:"connections"`
	// From targets to the agent.
	DownloadBytes int64 `json:"download_bytes"`
	// On all replicas, a few seconds old.
	OpenTunnels int `json:"open_tunnels"`
	// From the agent to targets.
	UploadBytes int64 `json:"upload_bytes"`
	// What was used, in bytes.
	UsedBytes int64 `json:"used_bytes"`
}

// Workers is the answer of ListWorkers.
type Workers struct {
	// This page.
	Items []Worker `json:"items"`
	// Where this page is in the list.
	Pagination Pagination `json:"pagination"`
}

// WorkersHealth is the type of Rotate.health, Session.health.
type WorkersHealth struct {
	// 100 is best. docs/health.md has the formula.
	HealthScore int `json:"health_score"`
	// What to do with the session.
	Recommendation HealthAdvice `json:"recommendation"`
	// The health score in words.
	RiskLevel RiskLevel `json:"risk_level"`
	// The weighted part of events that were good.
	SuccessRate json.Number `json:"success_rate"`
	// null without workers.
	Workers *WorkerCount `json:"workers"`
}

// WorstHost is the type of SessionHealth.worst_hosts.
type WorstHost struct {
	// The weight of its bad events within the health score.
	BadWeight json.Number `json:"bad_weight"`
	// How many events there were.
	Events int `json:"events"`
	// The host name or address.
	Host string `json:"host"`
}
