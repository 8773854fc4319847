package webhook

import (
	"net/url"
	"strings"
	"time"

	"agentproxy/domain"
)

// Overlap is how long the previous secret signs beside a new one after a
// rotation, so that a receiver can change it without losing an event.
const Overlap = 24 * time.Hour

// FailingFor is how long a webhook may only fail before it is disabled.
const FailingFor = 5 * 24 * time.Hour

// Refusals about webhooks.
var (
	ErrNoEndpoint = domain.ErrInvalid.Msgf("the account has no webhook; set webhook_url in the account's profile first")
	ErrDisabled   = domain.ErrInvalid.Msgf("the webhook is disabled; set webhook_url again in the account's profile " +
		"to enable it")
	ErrTest    = domain.ErrInvalid.Msgf("a test event is sent once; send another one")
	ErrPending = domain.ErrInvalid.Msgf("%d deliveries wait already; make the endpoint answer, and ask again later",
		MaxPending)
	// ErrNotFound is returned for an unknown delivery.
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
		Message: "no delivery has this id; list your webhook deliveries to find it"}
)

// State is whether events are sent to an endpoint.
type State string

// The states of an endpoint.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
	None     State = "none" // there is no URL
)

// States lists every state.
var States = []State{Enabled, Disabled, None}

// Endpoint is the destination of an agent's webhooks.
type Endpoint struct {
	AgentID        string
	URL            string    // empty: none
	Version        int64     // of the secret; 0 if none was issued
	RotatedAt      time.Time // zero: never
	DisabledAt     time.Time // zero: not disabled
	FailingSince   time.Time // the first failure after the last success; zero: none
	LastDeliveryAt time.Time // of the last success; zero: none
}

// State returns whether events are sent to the endpoint.
func (e Endpoint) State() State {
	switch {
	case e.URL == "":
		return None
	case !e.DisabledAt.IsZero():
		return Disabled
	}
	return Enabled
}

// Ready returns nil if events are sent, else ErrNoEndpoint or ErrDisabled.
func (e Endpoint) Ready() error {
	switch e.State() {
	case None:
		return ErrNoEndpoint
	case Disabled:
		return ErrDisabled
	}
	return nil
}

// Verified reports whether the last attempt at the URL succeeded. Others are attempted one at a time.
func (e Endpoint) Verified() bool { return e.Answered() && e.FailingSince.IsZero() }

// Answered reports whether an attempt at the URL ever succeeded.
func (e Endpoint) Answered() bool { return !e.LastDeliveryAt.IsZero() }

// Host returns the host of the URL in lower case, without port and final dot.
func (e Endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// Stranger reports whether an event of a type goes to an endpoint whose owner may not have asked for it: it never
// answered, or it is a test of one that fails. Tries bounds what such hosts get of all agents together.
func (e Endpoint) Stranger(of Type) bool { return !e.Answered() || of == Test && !e.Verified() }

// SetURL changes the destination; an empty URL removes it. A disabled endpoint
// is enabled again, even by the same URL. The first URL creates the first
// secret; later ones keep it.
func (e Endpoint) SetURL(url string) Endpoint {
	if url == e.URL && e.DisabledAt.IsZero() {
		return e // an unchanged profile must not reset FailingSince
	}
	if url != e.URL {
		e.LastDeliveryAt = time.Time{}
	}
	if url != "" {
		e.Version = max(e.Version, 1)
	}
	e.URL, e.DisabledAt, e.FailingSince = url, time.Time{}, time.Time{}
	return e
}

// Rotate creates the next secret. It returns ErrNoEndpoint if there is no URL.
func (e Endpoint) Rotate(now time.Time) (Endpoint, error) {
	if e.URL == "" {
		return e, ErrNoEndpoint
	}
	e.Version, e.RotatedAt = e.Version+1, now
	return e, nil
}

// Signing lists the versions of the secret that sign at now, the newest first,
// at most two: a second rotation within Overlap retires the oldest at once, as
// after a leak.
func (e Endpoint) Signing(now time.Time) []int64 {
	if e.Version > 1 && now.Before(e.RotatedAt.Add(Overlap)) {
		return []int64{e.Version, e.Version - 1}
	}
	return []int64{e.Version}
}

// after returns the endpoint after an attempt. An attempt at another URL does
// not change it.
func (e Endpoint) after(o Outcome, now time.Time) Endpoint {
	switch {
	case e.URL == "" || o.URL != e.URL:
	case o.OK():
		e.FailingSince, e.LastDeliveryAt = time.Time{}, now
	case !e.DisabledAt.IsZero():
	case e.FailingSince.IsZero() && !o.gone():
		e.FailingSince = now
	case o.gone() || now.Sub(e.FailingSince) >= FailingFor:
		e.DisabledAt = now
	}
	return e
}
