package httpapi_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A stranger who sends requests that fail does not fill the disk of the log.
func TestRefusedRequestsAreLoggedAHundredTimesASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	lines := func() (requests, others int, text string) {
		text = w.log.take()
		requests = strings.Count(text, `"msg":"request"`)
		return requests, strings.Count(text, "\n") - requests, text
	}
	w.log.take()
	var wg sync.WaitGroup
	for i := range 250 {
		path := []string{"/nothing", "/v1/account/info", "/v1/nothing"}[i%3]
		wg.Go(func() { w.do("GET", path, "") })
	}
	wg.Wait()
	if requests, others, text := lines(); requests != 100 || others != 0 {
		t.Errorf("%d lines of requests and %d others:\n%s", requests, others, text)
	}
	for range 3 { // what is answered is logged in the same second
		w.do("GET", "/v1/ip", "").want(200)
	}
	if requests, others, text := lines(); requests != 3 || others != 0 {
		t.Errorf("%d lines of requests and %d others:\n%s", requests, others, text)
	}
	w.clock.Advance(time.Second)
	for range 2 {
		w.do("GET", "/v1/ip", "").want(200)
	}
	if requests, others, text := lines(); requests != 2 || others != 1 || !strings.Contains(text, `"count":150`) {
		t.Errorf("a second later %d lines of requests and %d others:\n%s", requests, others, text)
	}
	for range 2 {
		w.do("GET", "/nothing", "").want(404)
	}
	if requests, others, text := lines(); requests != 2 || others != 0 {
		t.Errorf("then %d lines of requests and %d others:\n%s", requests, others, text)
	}
}
