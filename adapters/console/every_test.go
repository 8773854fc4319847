package console_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"agentproxy/app/accounts"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/health"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// markup is what strangers name things.
const markup = `"'><img src=x onerror=alert(1)><script>alert(2)</script>{{.}}`

// registerWithHook opens an account with a webhook, named by a stranger, and signs in.
func (w *world) registerWithHook() string {
	w.T.Helper()
	r, err := w.Accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: markup,
		WebhookURL: apptest.WebhookURL, Description: markup}})
	apptest.OK(w.T, err)
	w.enter(r.APIKey)
	return r.Agent.ID
}

// strange returns a world in which everything is named by a stranger.
func strange(t *testing.T) *world {
	product := apptest.SharedProduct("dyn_strange", session.Dynamic, procurement.Source{Provider: "embedded"})
	product.Name, product.Description = markup, markup
	w := open(t, options{Options: apptest.Options{Products: []catalog.Product{product}}})
	id, ctx := w.registerWithHook(), context.Background()
	_, err := w.Wallet.Adjust(ctx, id, apptest.Dollars("60"), markup)
	apptest.OK(t, err)
	dyn := w.Buy(id, apptest.Local)
	w.Buy(id, apptest.Static)
	w.Buy(id, apptest.LocalAsync)
	ended := w.Buy(id, apptest.Local)
	w.Observer.Observe(traffic.Observation{SessionID: dyn.ID, At: w.Clock.Now(), Type: "tunnel", Evidence: health.HTTPError,
		Host: markup, Bytes: 10, ExitIP: "10.0.0.1", Client: netip.MustParseAddr("192.0.2.7")})
	apptest.OK(t, w.Observer.FlushAll(ctx))
	_, err = w.Telemetry.Report(ctx, id, telemetry.ReportedEvent{SessionID: dyn.ID, Report: health.Report{Type: "block",
		TargetHost: "shop.test", ErrorMessage: markup}})
	apptest.OK(t, err)
	w.UseBytes(dyn.ID, "one", 5_000_000)
	_, err = w.Policies.Put(ctx, id, dyn.ID, policy.Own{Deny: []string{"ads.test"}, Ports: []string{"443"}})
	apptest.OK(t, err)
	_, err = w.Sessions.Terminate(ctx, id, ended.ID)
	apptest.OK(t, err)
	w.post("/console/money/recharges", url.Values{"key": {"form_1"}, "amount": {"10"}})
	w.post("/console/access/webhook/test", url.Values{"key": {"form_1"}})
	w.storeStrange(id, dyn.ID)
	return w
}

// storeStrange stores markup where only a seller, a target or a receiver of webhooks could put it.
func (w *world) storeStrange(agent, sessionID string) {
	w.T.Helper()
	ctx := context.Background()
	labels := session.Labels{"team": markup}
	_, err := w.Sessions.Change(ctx, sessions.Change{AgentID: agent, SessionID: sessionID, Labels: &labels,
		AllowedIPs: &[]string{"192.0.2.0/24"}})
	apptest.OK(w.T, err)
	_, _, err = w.Workers.Create(ctx, workers.Create{AgentID: agent, SessionID: sessionID, Names: []string{"w_1"}})
	apptest.OK(w.T, err)
	apptest.OK(w.T, w.Store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		found, err := tx.Workers().Of(ctx, sessionID)
		if err != nil {
			return err
		}
		err = tx.Workers().PutHealth(ctx, found[0].ID, health.State{}, worker.Failure{At: w.Clock.Now(), Code: markup})
		if err != nil {
			return err
		}
		list, err := tx.Webhooks().Deliveries(ctx, agent, "", domain.Page{Number: 1, Size: 9})
		if err != nil {
			return err
		}
		for _, d := range list.Items {
			d.Status, d.LastStatusCode, d.LastError = webhook.Failed, 500, markup
			if err := tx.Webhooks().PutDelivery(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}))
	seen := w.get("/console/sessions/"+sessionID) + w.get("/console/access")
	for _, want := range []string{`id="worker-w_1"`, "192.0.2.7", `id="labels"`, "onerror=alert(1)&gt;"} {
		if !strings.Contains(seen, want) {
			w.T.Fatalf("no page has %s:\n%s", want, seen)
		}
	}
}

var addresses = regexp.MustCompile(`(?:href|action|src|hx-get)="([^"]*)"`)

// TestEveryPage follows every link from the first page on.
func TestEveryPage(t *testing.T) {
	w := strange(t)
	found, queue := map[string]bool{"/console/": true}, []string{"/console/"}
	kinds := map[string]int{}
	for len(queue) > 0 && len(found) < 300 {
		path := queue[0]
		queue = queue[1:]
		code, body := w.send("GET", path, nil)
		if code != http.StatusOK {
			t.Errorf("%s answers %d", path, code)
			continue
		}
		if !strings.HasPrefix(w.headers.Get("Content-Type"), "text/html") {
			continue
		}
		kinds[regexp.MustCompile(`(sess_|key_|PAY)[a-z0-9A-Z]+|\?.*`).ReplaceAllString(path, "*")]++
		checkPage(t, path, body)
		for _, m := range addresses.FindAllStringSubmatch(body, -1) {
			to := html.UnescapeString(m[1])
			u, err := url.Parse(to)
			if err != nil || u.Host != "" || u.Scheme != "" {
				t.Errorf("%s leads to %q", path, to)
				continue
			}
			if to, _, _ = strings.Cut(to, "#"); strings.HasPrefix(to, "/console") && !found[to] && strings.HasPrefix(m[0], "href") {
				found[to] = true
				queue = append(queue, to)
			}
		}
	}
	for _, want := range []string{"/console/", "/console/sessions", "/console/sessions/*", "/console/sessions/new", "/console/sessions/new*",
		"/console/sessions/*/end", "/console/sessions/*/renew", "/console/money", "/console/money*", "/console/money/recharges/*", "/console/access",
		"/console/access/keys", "/console/access/keys/*", "/console/access/rotate-secret", "/console/sessions*", "/console/sessions/*/password", "/console/access/keys/new",
		"/console/sessions/*/settings", "/console/sessions/*/traffic", "/console/access/webhook/rotate-secret"} {
		if kinds[want] == 0 {
			t.Errorf("no link leads to %s: %v", want, kinds)
		}
	}
	code, body := w.send("GET", "/console/sessions/quote?product_no=dyn_strange&traffic_gb=1&city="+url.QueryEscape(markup), nil)
	if code != http.StatusBadRequest {
		t.Errorf("a city with markup answers %d", code)
	}
	checkPage(t, "the form with what was typed", body)
	checkPage(t, "the quote", w.get("/console/sessions/quote?product_no=dyn_strange&traffic_gb=1"))
	_, body = w.send("GET", "/console/nothing", nil)
	checkPage(t, "a page that is not there", body)
	w.cookie = nil
	checkPage(t, "the sign-in", w.get("/console/sign-in?next="+url.QueryEscape("/console/"+markup)))
}

// checkPage checks what every page promises: one h1, labels, headers of tables, ids that occur once,
// nothing that the policy of the pages blocks, and no markup of strangers.
func checkPage(t *testing.T, path, body string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	apptest.OK(t, err)
	for _, bad := range []string{"<img src=x", "<script>"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s has the markup %s of a stranger", path, bad)
		}
	}
	ids, labels, count := map[string]bool{}, map[string]bool{}, map[string]int{}
	var inputs []*html.Node
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") && a.Key != "only" {
				t.Errorf("%s: <%s> has %s", path, n.Data, a.Key)
			}
		}
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("%s has the id %s twice", path, id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "label":
			labels[attribute(n, "for")] = true
		case "input", "select", "textarea":
			if attribute(n, "type") != "hidden" && n.Parent.Data != "label" {
				inputs = append(inputs, n)
			}
		case "script":
			if n.FirstChild != nil || attribute(n, "src") == "" {
				t.Errorf("%s has a script of its own", path)
			}
		case "img":
			if attribute(n, "alt") == "" || !strings.HasPrefix(attribute(n, "src"), "/console/") {
				t.Errorf("%s has the picture %v", path, n.Attr)
			}
		case "style", "iframe", "object":
			t.Errorf("%s has <%s>", path, n.Data)
		}
	}
	for _, n := range inputs {
		if !labels[attribute(n, "id")] && attribute(n, "aria-label") == "" {
			t.Errorf("%s: %s has no label", path, attribute(n, "name"))
		}
	}
	if count["h1"] != 1 || count["table"] > count["thead"] || count["script"] != 3 {
		t.Errorf("%s has %d h1, %d tables with %d heads, %d scripts", path, count["h1"], count["table"], count["thead"], count["script"])
	}
}
