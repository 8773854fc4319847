package proxyseller_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	body := func(code int, message string) string {
		return fmt.Sprintf(`{"status":"error","data":null,"errors":[{"message":%q,"code":%d,"customData":null}]}`, message, code)
	}
	const good = `{"status":"success","data":{"summ":1,"orderId":"a","total":2,"listBaseOrderNumbers":["7_7"]},"errors":[]}`
	for _, c := range []struct {
		claim, body string
		read, money procurement.Class
	}{
		{"a success", good, "", ""},
		{"a wrong key", proxyseller.Failure(proxyseller.WrongKey...), procurement.Auth, procurement.Auth},
		{"an address that is not allowed", proxyseller.Failure(proxyseller.NotAllowed...), procurement.Auth, procurement.Auth},
		{"too many requests", proxyseller.Failure(proxyseller.TooMany...), procurement.RateLimited, procurement.RateLimited},
		{"all three at once, in the form of version 2", proxyseller.Failure(proxyseller.Denied...), procurement.Auth, procurement.Auth},
		{"503 with another text", body(503, "Set comment"), procurement.Auth, procurement.Auth},
		{"503 as a text", `{"status":"error","data":null,"errors":[{"message":"Error api key","code":"503"}]}`, procurement.Auth, procurement.Auth},
		{"a renewal that runs", body(57, "Prolong for this order is already in progress"), procurement.Ambiguous, procurement.Ambiguous},
		{"a bad purpose", body(14, "Incorrect goal"), procurement.Invalid, procurement.Invalid},
		{"an unknown error", body(35, "Unknown error"), procurement.Temporary, procurement.Ambiguous},
		{"too little money", body(0, "Insufficient funds. Total $2. Not enough $33.10"), procurement.InsufficientFunds, procurement.InsufficientFunds},
		{"too little money, as a warning", `{"status":"error","data":{"warning":"Insufficient funds. Total $2. Not enough $3"},"errors":[]}`,
			procurement.InsufficientFunds, procurement.InsufficientFunds},
		{"too little money, by its own code", body(16, "Insufficient funds on balance"), procurement.InsufficientFunds, procurement.InsufficientFunds},
		{"too little money, by the code alone", body(16, "Refill it"), procurement.InsufficientFunds, procurement.InsufficientFunds},
		{"too little money, under another code", body(99, "Insufficient funds. Total $2. Not enough $1"), procurement.InsufficientFunds, procurement.InsufficientFunds},
		{"orders that do not exist", body(29, "Incorrect orderIds"), procurement.NotFound, procurement.NotFound},
		{"an automatic top-up that failed", body(51, "Auto top-up failed"), procurement.Invalid, procurement.Ambiguous},
		{"another warning", `{"status":"error","data":{"warning":"Something"},"errors":[]}`, procurement.Invalid, procurement.Ambiguous},
		{"a country that is not sold", body(0, "Country not exists"), procurement.Invalid, procurement.Invalid},
		{"a code that is not known", body(99, "New rule"), procurement.Invalid, procurement.Ambiguous},
		{"a text that is not known", body(0, "Not enough proxies in stock"), procurement.OutOfStock, procurement.Ambiguous},
		{"an error without errors", `{"status":"error","data":null,"errors":[]}`, procurement.Temporary, procurement.Ambiguous},
		{"a success with errors", strings.Replace(good, "[]}", `[{"message":"x","code":1}]}`, 1), procurement.Temporary, procurement.Ambiguous},
		{"a status that is not known", strings.Replace(good, "success", "queued", 1), procurement.Temporary, procurement.Ambiguous},
		{"no envelope", `[]`, procurement.Temporary, procurement.Ambiguous},
		{"no JSON", `<html>`, procurement.Temporary, procurement.Ambiguous},
		{"nothing", ``, procurement.Temporary, procurement.Ambiguous},
		{"a success without data", `{"status":"success","data":null,"errors":[]}`, procurement.Temporary, procurement.Ambiguous},
		{"data of another shape", `{"status":"success","data":[1],"errors":[]}`, procurement.Temporary, procurement.Ambiguous},
		{"errors of another shape", `{"status":"error","data":null,"errors":"no"}`, procurement.Temporary, procurement.Ambiguous},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			s, p := openAddresses(t)
			for range 3 { // a read is attempted three times
				s.Answer("balance/get", c.body)
			}
			if _, err := p.Balance(t.Context()); procurement.ClassOf(err) != c.read {
				t.Errorf("a read: %v, want %s", err, c.read)
			}
			s.Answer("order/make", c.body)
			if _, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != c.money {
				t.Errorf("an order: %v, want %s", err, c.money)
			}
			if n := s.Calls("/order/make"); n != 1 {
				t.Errorf("the order was sent %d times", n)
			}
		})
	}
}

func TestStatusIsRead(t *testing.T) {
	t.Parallel()
	for fault, want := range map[seller.Fault]procurement.Class{
		seller.RateLimited: procurement.RateLimited, seller.Refuse: procurement.Invalid, seller.Expired: procurement.Auth, seller.Forbidden: procurement.Auth,
		seller.Redirect: procurement.Ambiguous, seller.Failed: procurement.Ambiguous, seller.Garbage: procurement.Ambiguous,
		seller.DropAnswer: procurement.Ambiguous, seller.DropRequest: procurement.Ambiguous, seller.Cut: procurement.Ambiguous, seller.Huge: procurement.Ambiguous,
	} {
		t.Run(string(fault), func(t *testing.T) {
			s, p := openAddresses(t)
			s.Next("/order/make", fault)
			if _, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if s.Orders() > 1 || s.Calls("/order/make") != 1 {
				t.Errorf("%d orders of %d calls", s.Orders(), s.Calls("/order/make"))
			}
		})
	}
}

// TestPagesOfTheEdgeProveNothing answers a call that spends money without the application.
func TestPagesOfTheEdgeProveNothing(t *testing.T) {
	t.Parallel()
	const page = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>"
	for _, c := range []struct {
		status int
		body   string
		want   procurement.Class
	}{
		{404, page, procurement.Ambiguous}, {502, page, procurement.Ambiguous}, {403, page, procurement.Ambiguous},
		{400, page, procurement.Ambiguous}, {404, "", procurement.Ambiguous}, {404, `[]`, procurement.Ambiguous},
		{429, `{"error":"Too many requests"}`, procurement.RateLimited}, {429, page, procurement.RateLimited},
		{404, `{"message":"no such call","code":404}`, procurement.NotFound},
		{400, `{"code":400,"message":"Bad request","customData":null}`, procurement.Invalid},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		p := open(t, upstream.Spec{Name: "ps", Kind: "proxyseller", BaseURL: srv.URL, PerSecond: 1e5,
			Secrets: map[string]string{"key": "k"}, Options: map[string]string{"purpose": "x"}})
		if _, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != c.want {
			t.Errorf("%d %.20s: got %v, want %s", c.status, c.body, err, c.want)
		}
		srv.Close()
	}
}

func TestWaitsForTheRetryTime(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	s.Next("/order/make", seller.RateLimited)
	_, err := p.Order(t.Context(), ispIntent("ord_1", 1))
	if e, ok := err.(*procurement.Error); !ok || e.RetryAfter != time.Second {
		t.Errorf("the edge's Retry-After is one second: %+v", err)
	}
	s.Answer("/order/make", proxyseller.Failure(proxyseller.TooMany...))
	_, err = p.Order(t.Context(), ispIntent("ord_1", 1))
	if e, ok := err.(*procurement.Error); !ok || e.RetryAfter != time.Minute {
		t.Errorf("the limit is by the minute: %+v", err)
	}
}

// TestAKeyThatWorkedIsNotWrong answers with the refusal that means a wrong key and for
// too many requests.
func TestAKeyThatWorkedIsNotWrong(t *testing.T) {
	t.Parallel()
	s, p := openAddresses(t)
	denied := func() error {
		s.Answer("/balance/get", proxyseller.Failure(proxyseller.Denied...))
		_, err := p.Balance(t.Context())
		return err
	}
	s.Next("/balance/get", seller.Expired)
	if _, err := p.Balance(t.Context()); procurement.ClassOf(err) != procurement.Auth {
		t.Errorf("refused by the edge: %v", err)
	}
	if err := denied(); procurement.ClassOf(err) != procurement.Auth {
		t.Errorf("a key that never worked: %v", err)
	}
	if _, err := p.Balance(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := denied()
	if e, ok := err.(*procurement.Error); !ok || e.Class != procurement.RateLimited || e.RetryAfter != time.Minute {
		t.Errorf("a key that has just worked: %+v", err)
	}
	s.Answer("/order/make", proxyseller.Failure(proxyseller.Denied...))
	if _, err := p.Order(t.Context(), ispIntent("ord_1", 1)); procurement.ClassOf(err) != procurement.RateLimited {
		t.Errorf("an order: %v", err)
	}
}

// TestMoneyCallsOutlastReads answers an order later than the timeout of other calls.
func TestMoneyCallsOutlastReads(t *testing.T) {
	t.Parallel()
	s := proxyseller.New(t)
	spec := specOf(s, "isp")
	var p ports.Provider
	var d procurement.Delivery
	err := errors.ErrUnsupported
	// A busy machine may not answer the reads of an order in time.
	for spec.Timeout = 100 * time.Millisecond; err != nil && spec.Timeout < time.Minute; spec.Timeout *= 2 {
		p = open(t, spec)
		s.Late = 3 * spec.Timeout
		s.Next("/order/make", seller.Delay)
		d, err = p.Order(t.Context(), ispIntent(fmt.Sprint("ord_", spec.Timeout), 1))
	}
	if err != nil || d.Cost == 0 {
		t.Errorf("ordered %+v, %v", d, err)
	}
	s.Next("/balance/get", seller.Delay, seller.Delay, seller.Delay)
	if _, err := p.Balance(t.Context()); procurement.ClassOf(err) != procurement.TimedOut {
		t.Errorf("read: %v", err)
	}
}

// TestTheKeyIsNeverShown makes every call fail with an answer that repeats the requested
// URL, complete or cut off.
func TestTheKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	const key = "S3CR3T/k ey+%~Zz"
	escaped := url.PathEscape(key)
	forms := []string{key, escaped, url.QueryEscape(key), strings.ReplaceAll(strings.ReplaceAll(escaped, "%2F", "%2f"), "%2B", "%2b")}
	for _, shape := range []string{`%s`, `{"status":"error","errors":[{"message":"%s","code":77}]}`, `{"message":"%s","code":400}`,
		`{"status":"error","data":{"warning":"%s"},"errors":[]}`, `{"status":"success","data":{"warning":"%s","total":1},"errors":[]}`} {
		for _, form := range forms {
			for _, before := range []int{0, 150, 170, 180, 185, 190, 195, 1005, 1015, 1020} {
				for _, status := range []int{200, 400, 404, 500} {
					// Reads are retried after these.
					again := status == 500 || status == 200 && !strings.Contains(shape, "status")
					srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						w.WriteHeader(status)
						fill := strings.Repeat("x", min(before, 195))
						if before > 1000 {
							fill = strings.Repeat(" ", before) // blanks are collapsed after the first cut
						}
						fmt.Fprintf(w, shape, fill+form)
					}))
					var logged bytes.Buffer
					log := slog.New(slog.NewTextHandler(&logged, nil))
					for _, section := range []string{"isp", "resident"} {
						p, err := upstream.New(upstream.Spec{Name: "ps", Kind: "proxyseller", BaseURL: srv.URL, PerSecond: 1e5, Timeout: time.Minute,
							Secrets: map[string]string{"key": key}, Options: map[string]string{"section": section, "purpose": "x"}}, log)
						if err != nil {
							t.Fatal(err)
						}
						for _, err := range failingCalls(t, p, !again) {
							fmt.Fprintf(&logged, "%v %+v %s", err, err, procurement.ReasonOf(err))
						}
						fmt.Fprintf(&logged, "%v %+v %#v %s", p, p, p, p)
					}
					srv.Close()
					for _, part := range []string{"S3CR", "k ey", "k%20ey", "~Zz"} {
						if strings.Contains(logged.String(), part) {
							t.Fatalf("%q of the key is shown by %s, status %d, after %d: %s", part, shape, status, before, logged.String())
						}
					}
				}
			}
		}
	}
	t.Run("nor without an answer", func(t *testing.T) {
		srv := httptest.NewServer(nil)
		srv.Close()
		var logged bytes.Buffer
		spec := upstream.Spec{Name: "ps", Kind: "proxyseller", BaseURL: srv.URL, Secrets: map[string]string{"key": key}, PerSecond: 1e5,
			Options: map[string]string{"purpose": "x"}}
		p, err := upstream.New(spec, slog.New(slog.NewTextHandler(&logged, nil)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Order(t.Context(), ispIntent("ord_1", 1))
		if procurement.ClassOf(err) != procurement.Temporary {
			t.Errorf("no connection is %v", err)
		}
		if text := fmt.Sprint(err, logged.String()); strings.Contains(text, "S3CR") || strings.Contains(text, srv.URL) {
			t.Errorf("it is shown: %s", text)
		}
	})
}

// failingCalls makes one call each that spends, reads and writes.
func failingCalls(t *testing.T, p ports.Provider, reads bool) (errs []error) {
	in := ispIntent("ord_1", 1)
	if _, ok := p.(ports.Dynamic); ok {
		in = gigabyte("ord_1")
	}
	_, err := p.Order(t.Context(), in)
	errs = append(errs, err)
	if reads {
		_, err = p.Quote(t.Context(), in)
		errs = append(errs, err, p.Cancel(t.Context(), "abc"))
	}
	return errs
}
