package webhook

import (
	"time"

	"agentproxy/domain"
)

// Overlap is how long the secret before a rotation keeps signing beside the new
// one, so that a receiver changes it without losing an event.
const Overlap = 24 * time.Hour

// FailingFor is how long nothing but failures turns a webhook off.
const FailingFor = 5 * 24 * time.Hour

// Refusals about webhooks.
var (
	ErrNoEndpoint = domain.ErrInvalid.Msgf("the account has no webhook; set webhook_url in the account's profile first")
	ErrDisabled   = domain.ErrInvalid.Msgf("the webhook is disabled; set webhook_url again in the account's profile to enable it")
	// ErrNotFound is for a delivery.
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
		Message: "no delivery has this id; list your webhook deliveries to find it"}
)

// State says whether events are sent.
type State string

// The states of an endpoint.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
	None     State = "none" // there is no URL
)

// States lists every state.
var States = []State{Enabled, Disabled, None}

// Endpoint is where an agent is told what happened.
type Endpoint struct {
	AgentID        string
	URL            string    // empty: none
	Version        int64     // of the secret; 0: none was ever given out
	RotatedAt      time.Time // zero: never
	DisabledAt     time.Time // zero: not disabled
	FailingSince   time.Time // the first failure after the last success; zero: none
	LastDeliveryAt time.Time // of the last success; zero: none
}

// State tells whether events are sent to the endpoint.
func (e Endpoint) State() State {
	switch {
	case e.URL == "":
		return None
	case !e.DisabledAt.IsZero():
		return Disabled
	}
	return Enabled
}

// Ready is nil when events are sent, else ErrNone or ErrOff.
func (e Endpoint) Ready() error {
	switch e.State() {
	case None:
		return ErrNoEndpoint
	case Disabled:
		return ErrDisabled
	}
	return nil
}

// SetURL changes where events go; an empty URL ends them. Whatever was disabled
// is enabled again, by the same URL too. The first URL makes the first secret;
// later ones keep it.
func (e Endpoint) SetURL(url string) Endpoint {
	if url == e.URL && e.DisabledAt.IsZero() {
		return e // a profile sent again does not hide that deliveries fail
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

// Rotate makes the next secret; ErrNone without a URL.
func (e Endpoint) Rotate(now time.Time) (Endpoint, error) {
	if e.URL == "" {
		return e, ErrNoEndpoint
	}
	e.Version, e.RotatedAt = e.Version+1, now
	return e, nil
}

// Signing lists the versions of the secret that sign at now, the newest first.
// There are never more than two: a second rotation within Overlap ends the
// oldest at once, which is what one rotates for after a leak.
func (e Endpoint) Signing(now time.Time) []int64 {
	if e.Version > 1 && now.Before(e.RotatedAt.Add(Overlap)) {
		return []int64{e.Version, e.Version - 1}
	}
	return []int64{e.Version}
}

// after is the endpoint after an attempt. What came of an attempt at another URL
// says nothing about this one.
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
