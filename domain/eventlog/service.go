package eventlog

// The types of events that the service itself adds.
const (
	Failed        = "failed"
	Terminated    = "terminated"
	Expired       = "expired"
	Rotated       = "rotated"
	Renewed       = "renewed"
	RenewalFailed = "renewal_failed"
	ToppedUp      = "topped_up" // traffic was added
	TopUpFailed   = "top_up_failed"
	ExitLost      = "exit_lost" // the exit of a worker is gone
	// ExitDiffers is an exit whose measured place is not the one sold, or of which two sources have different ones.
	ExitDiffers = "exit_place_differs"
	Replaced    = "replaced" // an address was exchanged
	// ReplacementRefused is an address that its seller did not replace.
	ReplacementRefused = "replacement_refused"
	AddressEnded       = "address_ended" // its unused days were refunded
	Revealed           = "revealed"      // a link showed the proxy's credentials
	// PasswordReplaced is the end of a proxy password.
	PasswordReplaced = "password_replaced"
	// What an ended session still held is charged or released: its order is decided.
	Charged  = "charged"
	Released = "released"
)
