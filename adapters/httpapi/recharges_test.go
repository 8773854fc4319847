package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake"
	"agentproxy/test/qrscan"
)

const tenUSDT = `{"amount":10}`

func TestRecharge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Recharge")
	status := func(order string) *answer {
		return w.do("GET", "/v1/billing/recharge/"+order+"/status", "", a.as).want(200)
	}
	balance := func() float64 { return w.do("GET", "/v1/billing/balance", "", a.as).num("data.balance") }

	r := w.do("POST", "/v1/billing/recharge", `{"amount":25.50,"payment_method":"usdt"}`, a.as).want(201)
	order, wallet := r.str("data.order_id"), r.str("data.wallet_address")
	t.Run("an order shows the address, the amount and the end", func(t *testing.T) {
		if !strings.HasPrefix(order, "PAY20260515120000") || len(order) < 25 || len(wallet) != 34 || !w.chain.Valid(wallet) ||
			r.str("data.status") != "pending" || r.str("data.currency") != "USD" ||
			r.str("data.network") != "TRC20" ||
			r.str("data.created_at") != "2026-05-15T12:00:00.000Z" ||
			r.str("data.expire_time") != "2026-05-15T12:30:00.000Z" {
			t.Errorf("%s", r.body)
		}
		if !strings.Contains(string(r.body), `"amount":25.5,"amount_usdt":25.5,"received_usdt":0,`) {
			t.Errorf("the amounts are no plain numbers: %s", r.body)
		}
		if r.header.Get("Idempotency-Replayed") != "" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", r.header)
		}
	})
	t.Run("nothing was seen", func(t *testing.T) {
		s := status(order)
		for _, field := range []string{"order_id", "status", "amount", "amount_usdt", "received_usdt", "currency", "network", "wallet_address", "expire_time", "created_at"} {
			if s.at("data."+field) != r.at("data."+field) {
				t.Errorf("%s: %v, the order had %v", field, s.at("data."+field), r.at("data."+field))
			}
		}
		for _, null := range []string{"tx_hash", "paid_at"} {
			if v, there := s.at("data").(map[string]any)[null]; !there || v != nil {
				t.Errorf("%s: %v %v", null, v, there)
			}
		}
		if s.num("data.confirmations") != 0 || s.num("data.required_confirmations") != fake.FinalBehind ||
			balance() != 10 {
			t.Errorf("%s", s.body)
		}
	})
	var tx string
	t.Run("a transfer is seen, and credits nothing", func(t *testing.T) {
		w.chain.Mine(1)
		tx = w.chain.Send(fake.ChainAddress(1), wallet, domain.MustMoney("26")).TxID
		w.mine(4)
		s := status(order)
		if s.str("data.status") != "confirming" || s.str("data.tx_hash") != tx || s.num("data.received_usdt") != 0 ||
			s.at("data.paid_at") != nil ||
			balance() != 10 {
			t.Errorf("%s", s.body)
		}
		if n := s.num("data.confirmations"); n < 3 || n > 4 {
			t.Errorf("%v confirmations of a transfer with 3 blocks on top", n)
		}
	})
	t.Run("a final transfer pays the order, and all of it is credited", func(t *testing.T) {
		w.mine(40)
		s := status(order)
		if s.str("data.status") != "paid" || s.str("data.tx_hash") != tx || s.num("data.received_usdt") != 26 || s.num("data.amount") != 25.5 ||
			s.num("data.confirmations") != fake.FinalBehind ||
			s.str("data.paid_at") != "2026-05-15T12:00:06.000Z" ||
			balance() != 36 {
			t.Errorf("%s, balance %v", s.body, balance())
		}
	})
	t.Run("the books show it", func(t *testing.T) {
		list := w.do("GET", "/v1/billing/transactions?type=recharge", "", a.as).want(200)
		if list.num("data.pagination.total") != 1 || list.num("data.items.0.amount") != 26 || list.num("data.items.0.balance_after") != 36 ||
			list.str("data.items.0.order_id") != order ||
			list.str("data.items.0.description") == "" ||
			list.at("data.items.0.session_id") != nil {
			t.Errorf("%s", list.body)
		}
		if got := w.do("GET", "/v1/stats/overview", "", a.as).want(200); got.num("data.total_recharged") != 26 ||
			got.num("data.total_spent") != 0 {
			t.Errorf("%s", got.body)
		}
		cost := w.do("GET", "/v1/stats/cost?start_date=2026-05-15&end_date=2026-05-16", "", a.as).want(200)
		if cost.num("data.items.0.recharged") != 26 || cost.num("data.items.0.charged") != 0 {
			t.Errorf("%s", cost.body)
		}
		if got := w.do("GET", "/v1/account/info", "", a.as).want(200); got.at("data.trial.is_trial") != false {
			t.Errorf("still a trial: %s", got.body)
		}
	})
	t.Run("money without an order is listed without one", func(t *testing.T) {
		w.chain.Send(fake.ChainAddress(2), wallet, domain.MustMoney("3.000001"))
		w.mine(40)
		list := w.do("GET", "/v1/billing/transactions?type=recharge&page_size=1", "", a.as).want(200)
		if list.num("data.items.0.amount") != 3.000001 || list.at("data.items.0.order_id") != nil ||
			balance() != 39.000001 {
			t.Errorf("%s", list.body)
		}
	})
	t.Run("no request of a client marks an order paid", func(t *testing.T) {
		r := w.do("POST", "/v1/billing/recharge", `{"amount":10,"status":"paid","received_usdt":10,"tx_hash":"`+tx+`","paid_at":"2026-05-15T12:00:00Z"}`, a.as).want(201)
		if s := status(r.str("data.order_id")); s.str("data.status") != "pending" || s.num("data.received_usdt") != 0 ||
			s.at("data.tx_hash") != nil {
			t.Errorf("%s", s.body)
		}
		if r.str("data.wallet_address") != wallet {
			t.Errorf("another address: %s", r.body)
		}
		if other := w.do("POST", "/v1/billing/recharge", tenUSDT, w.register("Another").as).want(201); other.str(
			"data.wallet_address",
		) == wallet {
			t.Error("two agents share an address")
		}
	})
}

func TestRechargeDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Dry run")
	r := w.do("POST", "/v1/billing/recharge?dry_run=true", `{"amount":25.5}`, a.as, key("k")).want(200)
	if got := text(r.at("data")); got != `{"balance_after":35.5,"cost":0,"currency":"USD","dry_run":true}` ||
		r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"yes", "1", "", "TRUE"} {
		w.do("POST", "/v1/billing/recharge?dry_run="+bad, tenUSDT, a.as).refused(400, "INVALID_REQUEST")
	}
	if n := w.do("GET", "/v1/billing/recharge", "", a.as).num("data.pagination.total"); n != 0 {
		t.Errorf("%v orders", n)
	}
	w.do("POST", "/v1/billing/recharge?dry_run=false", tenUSDT, a.as, key("k")).want(201)
}

func TestRechargeReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, b := w.register("First"), w.register("Second")
	first := w.do("POST", "/v1/billing/recharge", tenUSDT, a.as, key("k1")).want(201)
	order := first.str("data.order_id")
	again := func(body string) *answer {
		return w.do("POST", "/v1/billing/recharge", body, a.as, key("k1"))
	}
	t.Run("the same call answers the same order", func(t *testing.T) {
		for _, same := range []string{tenUSDT, " {\n\"amount\" :\t10 } "} {
			r := again(same).want(201)
			if text(r.at("data")) != text(first.at("data")) || r.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%s %v", r.body, r.header)
			}
		}
	})
	t.Run("the key for another body is a conflict", func(t *testing.T) {
		for _, other := range []string{`{"amount":11}`, `{"amount":10,"payment_method":"usdt"}`} {
			if r := again(other).refused(409, "IDEMPOTENCY_CONFLICT"); r.at("error.retryable") != false {
				t.Error("retryable")
			}
		}
	})
	t.Run("another agent has keys of its own", func(t *testing.T) {
		if r := w.do("POST", "/v1/billing/recharge", tenUSDT, b.as, key("k1")).want(201); r.str(
			"data.order_id",
		) == order {
			t.Error("two agents share an order")
		}
	})
	t.Run("a refused call keeps no key", func(t *testing.T) {
		w.do("POST", "/v1/billing/recharge", `{"amount":0}`, a.as, key("k2")).refused(400, "INVALID_REQUEST")
		w.do("POST", "/v1/billing/recharge", tenUSDT, a.as, key("k2")).want(201)
	})
	t.Run("of parallel calls with one key one makes an order", func(t *testing.T) {
		c := w.register("Parallel")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if r := w.do("POST", "/v1/billing/recharge", tenUSDT, c.as, key("same")); r.status != 201 {
					t.Errorf("%d %s", r.status, r.body)
				}
			})
		}
		wg.Wait()
		if n := w.do("GET", "/v1/billing/recharge", "", c.as).num("data.pagination.total"); n != 1 {
			t.Errorf("%v orders", n)
		}
	})
	t.Run("a replay shows the order as it is now", func(t *testing.T) {
		w.chain.Mine(1)
		w.chain.Send(fake.ChainAddress(1), first.str("data.wallet_address"), domain.MustMoney("10"))
		w.mine(40)
		if r := again(tenUSDT).want(201); r.str("data.status") != "paid" || r.num("data.received_usdt") != 10 ||
			r.str("data.order_id") != order {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("a key lasts 24 hours", func(t *testing.T) {
		w.clock.Advance(25 * time.Hour)
		if r := again(tenUSDT).want(201); r.str("data.order_id") == order ||
			r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s", r.body)
		}
	})
}

func TestRechargeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Limit")
	for i := range 10 {
		w.do("POST", "/v1/billing/recharge", tenUSDT, a.as, key(fmt.Sprint(i))).want(201)
		w.clock.Advance(time.Second)
	}
	for _, query := range []string{"", "?dry_run=true"} {
		r := w.do("POST", "/v1/billing/recharge"+query, tenUSDT, a.as, key("more")).refused(429, "ORDER_LIMIT_REACHED")
		if s, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || s < 1 {
			t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
		}
	}
	w.do("POST", "/v1/billing/recharge", tenUSDT, a.as, key("3")).want(201) // a replay is no new order
	w.do("POST", "/v1/billing/recharge", tenUSDT, w.register("Another").as).want(201)
	if n := w.do("GET", "/v1/billing/recharge?status=pending", "", a.as).num("data.pagination.total"); n != 10 {
		t.Errorf("%v orders", n)
	}
}

func TestRechargeList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("List")
	var orders []string
	for range 3 {
		w.clock.Advance(time.Second)
		orders = append(orders, w.do("POST", "/v1/billing/recharge", tenUSDT, a.as).want(201).str("data.order_id"))
	}
	list := func(query string) *answer {
		return w.do("GET", "/v1/billing/recharge"+query, "", a.as).want(200)
	}
	r := list("?page_size=2")
	if r.str("data.items.0.order_id") != orders[2] || r.str("data.items.1.order_id") != orders[1] ||
		r.at("data.items.2") != nil ||
		text(r.at("data.pagination")) != `{"next_cursor":"c2","page":1,"page_size":2,"total":3,"total_pages":2}` {
		t.Errorf("%s", r.body)
	}
	if r := list("?page_size=2&cursor=c2"); r.str("data.items.0.order_id") != orders[0] || r.at("data.items.1") != nil ||
		r.at("data.pagination.next_cursor") != nil {
		t.Errorf("after the cursor: %s", r.body)
	}
	if r := list("?page_size=2&page=2"); r.str("data.items.0.order_id") != orders[0] || r.at("data.items.1") != nil {
		t.Errorf("%s", r.body)
	}
	if r := list("?page=999999999&page_size=100001"); text(r.at("data.items")) != "[]" ||
		r.num("data.pagination.page_size") != 100 {
		t.Errorf("%s", r.body)
	}
	for status, want := range map[string]float64{"pending": 3, "confirming": 0, "paid": 0, "expired": 0, "failed": 0} {
		if r := list("?status=" + status); r.num("data.pagination.total") != want {
			t.Errorf("%s: %s", status, r.body)
		}
	}
	for _, bad := range []string{"page=0", "page=-1", "page=abc", "page=1.5", "page=", "page_size=0", "page_size=x", "page=99999999999999999999", "page=%zz",
		"status=nonsense", "status=PAID", "status=open", "status=%00", "status=pending,paid"} {
		r := w.do("GET", "/v1/billing/recharge?"+bad, "", a.as).refused(400, "INVALID_REQUEST")
		if strings.Contains(string(r.body), "nonsense") {
			t.Error("the value is repeated")
		}
	}
}

// TestRechargeQR reads the code over a real connection, as curl -o would.
func TestRechargeQR(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 100})
	a := w.register("QR")
	r := w.do("POST", "/v1/billing/recharge", tenUSDT, a.as).want(201)
	w.must(w.server.Start(t.Context()))
	t.Cleanup(func() { _ = w.server.Stop(context.Background()) })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(order, apiKey string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+w.server.Addr().String()+"/v1/billing/recharge/"+order+"/qr", nil)
		w.must(err)
		req.Header.Set("X-API-Key", apiKey)
		req.Header.Set("Accept", "image/webp")
		res, err := client.Do(req)
		w.must(err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		w.must(err)
		return res, body
	}
	res, body := get(r.str("data.order_id"), a.Key)
	h := res.Header
	if res.StatusCode != 200 || h.Get("Content-Type") != "image/png" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(h.Get("X-Request-ID"), "req_") ||
		h.Get("X-RateLimit-Limit") != "100" ||
		res.ContentLength != int64(len(body)) {
		t.Errorf("%d %v, %d bytes", res.StatusCode, h, len(body))
	}
	got := qrscan.Read(t, body)
	if got.Text != r.str("data.wallet_address") || len(got.Text) != 34 {
		t.Errorf("the code has %q, the order %q", got.Text, r.str("data.wallet_address"))
	}
	if got.Correction != "M" || got.Width < 256 || got.Width != got.Height {
		t.Errorf("%s", got)
	}
	for _, c := range []struct {
		order, apiKey string
		status        int
		code          string
	}{
		{r.str("data.order_id"), "ak_wrong", 401, "AUTH_INVALID_KEY"}, {"PAY0", a.Key, 404, "ORDER_NOT_FOUND"}, {"..%5cx", a.Key, 404, "ORDER_NOT_FOUND"},
	} {
		res, body := get(c.order, c.apiKey)
		if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/json" ||
			!strings.Contains(string(body), `"error":{"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s", c.order, res.StatusCode, body)
		}
	}
	t.Run("of every address", func(t *testing.T) {
		// As the chain's addresses differ, so does the mask of their codes.
		for i := range 40 {
			b := w.register("QR " + strconv.Itoa(i))
			r := w.do("POST", "/v1/billing/recharge", tenUSDT, b.as).want(201)
			picture := w.do("GET", "/v1/billing/recharge/"+r.str("data.order_id")+"/qr", "", b.as).want(200).body
			if got, want := qrscan.Read(t, picture), r.str("data.wallet_address"); got.Text != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

func TestRechargeOfADisabledAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Disabled")
	order := w.do("POST", "/v1/billing/recharge", tenUSDT, a.as).want(201).str("data.order_id")
	w.must(w.accounts.Disable(context.Background(), a.ID, "test"))
	w.clock.Advance(2 * time.Second)
	w.do("POST", "/v1/billing/recharge", tenUSDT, a.as).refused(403, "ACCOUNT_DISABLED")
	w.do("GET", "/v1/billing/recharge/"+order+"/qr", "", a.as).refused(403, "ACCOUNT_DISABLED")
}

func TestARechargeThatIsPaidInPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{trial: 10 * domain.Dollar})
	a := w.register("agent")
	r := w.do("POST", "/v1/billing/recharge", `{"amount":10}`, a.as).want(201)
	want := func(of *answer, state string, partial bool, received, missing float64) {
		t.Helper()
		if of.str("data.status") != state || of.at("data.partial") != partial || of.num("data.received_usdt") != received ||
			of.num("data.missing_usdt") != missing {
			t.Errorf("%s", of.body)
		}
	}
	read := func() *answer {
		return w.do("GET", "/v1/billing/recharge/"+r.str("data.order_id")+"/status", "", a.as).want(200)
	}
	want(read(), "pending", false, 0, 10)
	for _, step := range []struct {
		pays              string
		state             string
		partial           bool
		received, missing float64
	}{{"4", "confirming", true, 4, 6}, {"6", "paid", false, 10, 0}} {
		w.chain.Mine(1)
		w.chain.Send(fake.ChainAddress(1), r.str("data.wallet_address"), domain.MustMoney(step.pays))
		w.mine(40)
		want(read(), step.state, step.partial, step.received, step.missing)
	}
}
