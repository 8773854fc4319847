package console_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

// A restricted key does not sign in, and one that was restricted since then opens no page.
func TestARestrictedKeyOpensNoPage(t *testing.T) {
	t.Parallel()
	w := open(t, options{})
	r := w.signIn("10")
	free := accounts.Caller{AgentID: r.Agent.ID, Scopes: account.Scopes}
	k, text, err := w.Accounts.Keys.Create(t.Context(), free, accounts.NewKey{Name: "Child"})
	apptest.OK(t, err)
	w.enter(text)
	apptest.OK(t, w.Accounts.Keys.Change(t.Context(), free, accounts.KeyChange{ID: k.ID, Own: new(true)}))
	source, err := os.ReadFile("routes.go")
	apptest.OK(t, err)
	pages := regexp.MustCompile(`"(GET|POST) (/[^"]*)": `).FindAllStringSubmatch(string(source), -1)
	if len(pages) < 46 {
		t.Fatalf("%d pages are found", len(pages))
	}
	for _, p := range pages {
		path := "/console" + regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(strings.TrimSuffix(p[2], "{$}"), "x")
		var form url.Values
		if p[1] == "POST" {
			form = url.Values{"key": {"form_1"}}
		}
		if code, body := w.send(p[1], path, form); code != http.StatusForbidden || strings.Contains(body, "10.00") {
			t.Errorf("%s %s answers %d", p[1], path, code)
		}
	}
	code, body := w.send("POST", "/console/sign-in", url.Values{"api_key": {text}})
	if code != http.StatusForbidden || !strings.Contains(body, "KEY_RESTRICTED") && !strings.Contains(body, "restricted") {
		t.Errorf("its sign-in answers %d\n%s", code, body)
	}
}
