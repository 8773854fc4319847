package proxyseller_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/proxyseller"
)

// call makes one request and returns the body of an answer with status 200.
func call(t *testing.T, s *proxyseller.Server, key, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, s.Base()+"/"+url.PathEscape(key)+"/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", fmt.Sprint(path, s.Sales()))
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	return string(text)
}

func TestAnswersHaveTheDocumentedShapes(t *testing.T) {
	t.Parallel()
	const order = `{"sectionCode":"isp","countryId":"usa","periodId":"1M","quantity":1,"customTargetName":"seo","paymentCode":"balance","generateAuth":"Y"}`
	s := proxyseller.New(t)
	today := time.Now().UTC()
	for _, c := range []struct{ claim, key, method, path, body, want string }{
		{"a wrong key is refused with status 200, like everything else", "wrong", "GET", "balance/get", "",
			`^{"data":null,"errors":\[{"code":503,.*"message":"Error api key"},{"code":503,.*"IP not allowed .*},{"code":503,.*"Request limit reached"}\],"status":"error"}$`},
		{"a balance is a number", "", "GET", "balance/get", "", `"data":{"summ":1000}`},
		{"no purpose is code 14", "", "POST", "order/calc", strings.Replace(order, "seo", "", 1), `"code":14,.*"Incorrect goal"`},
		{"a calculation has a price", "", "POST", "order/calc", strings.Replace(order, `,"generateAuth":"Y"`, "", 1), `"currency":"USD",.*"quantity":1,"total":2,"warning":""`},
		{"an order has its number", "", "POST", "order/make", order, `"balance":998,"listBaseOrderNumbers":\["1000001_00000001"\],"orderId":"[0-9a-f]{24}","total":2`},
		{"an order is not delivered at once", "", "GET", "proxy/list/isp?latest=Y", "", `"items":\[\]`},
		{"but later, with dates and without its credential", "", "GET", "proxy/list/isp?orderId=1000001_00000001", "",
			`"date_end":"` + today.AddDate(0, 1, 0).Format("02.01.2006") + `".*"login":"".*"status_type":"ACTIVE"`},
		{"which is in another list", "", "GET", "auth/list", "", `"data":\[{"active":true,"id":"[0-9a-f]{24}","login":"user1","orderNumber":"1000001_00000001","password":"pass1"}\]`},
		{"bytes are texts and the end of a package is an object", "", "POST", "residentsubuser/create", `{"is_link_date":true,"rotation":-1,"traffic_limit":"104857600"}`,
			`"expired_at":{"date":"20.*","timezone":"UTC","timezone_type":3}.*"traffic_limit":"104857600"`},
		{"a deletion is answered by JSON in a text", "", "DELETE", "residentsubuser/delete", `{"package_key":"none"}`, `"data":"{\\"status\\":\\"not-found\\"}"`},
	} {
		key := c.key
		if key == "" {
			key = proxyseller.Key
		}
		if got := call(t, s, key, c.method, c.path, c.body); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: got %s", c.claim, got)
		}
	}
	if s.Orders() != 1 || s.Packages() != 1 || s.Sales() != 2 || s.Spent() != 2*domain.Dollar {
		t.Errorf("%d orders and %d packages for %s", s.Orders(), s.Packages(), s.Spent())
	}
}

func TestRenewalGivesNewIDsAndRunsForAWhile(t *testing.T) {
	t.Parallel()
	s := proxyseller.New(t)
	s.SetDelay(0)
	s.SetRenewing(2)
	call(t, s, proxyseller.Key, "POST", "order/make", `{"sectionCode":"isp","countryId":"DEU","periodId":"3m","quantity":1,"customTargetName":"x","paymentCode":"balance"}`)
	id := regexp.MustCompile(`"id":"([0-9a-f]{24})"`)
	before := id.FindStringSubmatch(call(t, s, proxyseller.Key, "GET", "proxy/list/isp", ""))[1]
	renew := fmt.Sprintf(`{"ids":[%q],"periodId":"1m","paymentCode":"balance"}`, before)
	if got := call(t, s, proxyseller.Key, "POST", "prolong/make/isp", renew); !strings.Contains(got, `"status":"success"`) {
		t.Fatal(got)
	}
	if got := call(t, s, proxyseller.Key, "POST", "prolong/make/isp", renew); !strings.Contains(got, `"code":57`) {
		t.Errorf("renewed while a renewal runs: %s", got)
	}
	for range 3 {
		call(t, s, proxyseller.Key, "GET", "proxy/list/isp", "")
	}
	after := call(t, s, proxyseller.Key, "GET", "proxy/list/isp", "")
	if id.FindStringSubmatch(after)[1] == before || !strings.Contains(after, time.Now().UTC().AddDate(0, 3, 0).AddDate(0, 1, 0).Format("02.01.2006")) {
		t.Errorf("renewed, it is %s", after)
	}
	if s.Renewals() != 1 || s.Spent() != 7*domain.Dollar {
		t.Errorf("%d renewals for %s", s.Renewals(), s.Spent())
	}
}
