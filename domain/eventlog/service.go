package eventlog

// IDPrefix begins the id of every event.
const IDPrefix = "evt_"

// The types of events that the service itself adds.
const (
	Failed        = "failed"
	Terminated    = "terminated"
	Expired       = "expired"
	Rotated       = "rotated"
	Renewed       = "renewed"
	RenewalFailed = "renewal_failed"
	Replaced      = "replaced" // the provider exchanged an address
)
