package webhook

import (
	"fmt"
	"time"
)

// Outcome is the result of one attempt.
type Outcome struct {
	URL        string        // where the attempt went
	StatusCode int           // 0 if there was no response
	RetryAfter time.Duration // of the response; 0 if absent
	// Err is the reason why there is no response. It is shown to the agent, so it
	// contains no address that the URL does not contain.
	Err string
}

// OK reports whether the receiver accepted the event with a 2xx status.
func (o Outcome) OK() bool { return o.StatusCode >= 200 && o.StatusCode <= 299 }

// gone reports whether the receiver refuses further events with 410 (RFC 9110,
// section 15.5.11).
func (o Outcome) gone() bool { return o.StatusCode == 410 }

// Problem describes the failure and what the agent can do about it. It is empty
// if the outcome is OK.
func (o Outcome) Problem() string {
	switch {
	case o.OK():
		return ""
	case o.StatusCode == 0 && o.Err != "":
		return o.Err
	case o.StatusCode == 0:
		return "the endpoint did not answer"
	case o.gone():
		return "the endpoint answered 410, which turns the webhook off; set webhook_url again to turn it on"
	case o.StatusCode >= 300 && o.StatusCode <= 399:
		return fmt.Sprintf("the endpoint answered %d; redirects are not followed, so set webhook_url to the final address",
			o.StatusCode)
	}
	return fmt.Sprintf("the endpoint answered %d; answer any 2xx to accept an event", o.StatusCode)
}
