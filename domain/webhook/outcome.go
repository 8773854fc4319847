package webhook

import (
	"fmt"
	"time"
)

// Outcome is what came of one attempt.
type Outcome struct {
	URL        string        // where the attempt went
	StatusCode int           // 0: no answer came
	RetryAfter time.Duration // asked for by the receiver; 0: nothing was
	// Err says why no answer came. The agent reads it, so it names no address
	// that the URL does not.
	Err string
}

// OK reports whether the receiver took the event: any 2xx.
func (o Outcome) OK() bool { return o.StatusCode >= 200 && o.StatusCode <= 299 }

// gone reports whether the receiver wants no more events.
func (o Outcome) gone() bool { return o.StatusCode == 410 }

// Problem says what an agent can do about the outcome; empty when it is OK.
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
