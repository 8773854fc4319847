package eventlog

import "slices"

// faults are the types of events that are always failures: of the gateway, of reports
// of agents, and of the service.
var faults = []string{"refused", "failed", "http_error", "captcha", "timeout", "block", "rate_limit", RenewalFailed,
	TopUpFailed}

// IsFailure reports whether the event is something that did not work.
func (e Event) IsFailure() bool {
	if e.Source == Gateway && (e.Code != "" && e.Type != "would_refuse" || e.StatusCode >= 400) {
		return true
	}
	return slices.Contains(faults, e.Type)
}

// Advice returns what to do about a failure: what was recorded, or what helps with most of its kind.
func (e Event) Advice() string {
	switch {
	case e.HowToFix != "":
		return e.HowToFix
	case e.Type == "rate_limit" || e.StatusCode == 429:
		return "send fewer requests to this host; if that does not help, rotate the session"
	case e.Type == "block" || e.Type == "captcha" || e.StatusCode == 403:
		return "rotate the session; if the next exit is refused too, slow down or use another product"
	case e.Type == "timeout":
		return "try again; if it happens again, rotate the session"
	case e.StatusCode == 407:
		return "the target itself asks for a proxy's credentials; check its address"
	case e.StatusCode >= 500:
		return "the target failed; try again later"
	case e.StatusCode >= 400:
		return "the target refused the request; check its address and what you send"
	case e.Source == Service:
		return "buy a new session; if it happens again, choose another product"
	}
	return "try again; if it happens again, rotate the session"
}
