package httpapi_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/account"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, b := w.register("First"), w.register("Second")
	token := w.token(a)
	const path = "/v1/account/info"

	t.Run("either header is taken and auth_mode names it", func(t *testing.T) {
		if got := w.do("GET", path, "", a.as).want(200).str("data.auth_mode"); got != "api_key" {
			t.Error(got)
		}
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "bEaReR  "} {
			if got := w.do("GET", path, "", header("Authorization", scheme+token)).want(200).str("data.auth_mode"); got != "token" {
				t.Error(got)
			}
		}
	})
	t.Run("Bearer decides when both are sent", func(t *testing.T) {
		r := w.do("GET", path, "", b.as, bearer(token)).want(200)
		if r.str("data.agent_id") != a.ID || r.str("data.auth_mode") != "token" {
			t.Errorf("%s", r.body)
		}
		w.do("GET", path, "", a.as, bearer("garbage")).refused(401, "AUTH_EXPIRED_TOKEN")
		w.do("GET", path, "", header("X-API-Key", "ak_wrong"), bearer(token)).want(200)
	})
	t.Run("an API key as Bearer is an API key, and decides too", func(t *testing.T) {
		r := w.do("GET", path, "", b.as, bearer(a.Key)).want(200)
		if r.str("data.agent_id") != a.ID || r.str("data.auth_mode") != "api_key" {
			t.Errorf("%s", r.body)
		}
		w.do("GET", path, "", b.as, bearer("ak_wrong")).refused(401, "AUTH_INVALID_KEY")
	})
	t.Run("another scheme is refused, whatever else is sent", func(t *testing.T) {
		for _, value := range []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("a:b")), "Digest x", token, "Token " + token, "ApiKey " + a.Key} {
			w.do("GET", path, "", header("Authorization", value)).refused(401, "AUTH_INVALID_KEY")
			w.do("GET", path, "", a.as, header("Authorization", value)).refused(401, "AUTH_INVALID_KEY")
		}
	})
	t.Run("wrong keys are 401", func(t *testing.T) {
		for _, key := range []string{"x", "ak_", "ak_" + strings.Repeat("a", 32), a.Secret, a.Key + "x", strings.ToUpper(a.Key), strings.Repeat("k", 1<<15), "ak_' OR '1'='1"} {
			w.do("GET", path, "", header("X-API-Key", key)).refused(401, "AUTH_INVALID_KEY")
		}
		w.do("GET", path, "", bearer("ak_"+strings.Repeat("a", 32))).refused(401, "AUTH_INVALID_KEY")
	})
	t.Run("forged tokens are 401", func(t *testing.T) {
		part := strings.Split(token, ".")
		enc := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		for _, forged := range []string{
			"", ".", "..", "...", strings.Repeat(".", 1<<20), part[0] + "." + part[1] + ".", part[0] + "." + part[1] + "." + enc("x"),
			enc(`{"alg":"none"}`) + "." + part[1] + ".", enc(`{"alg":"HS256","kid":"../../dev/null"}`) + "." + part[1] + "." + part[2],
			enc(`{"alg":"HS256","jku":"http://127.0.0.1/"}`) + "." + part[1] + "." + part[2], enc(`{"alg":"RS256"}`) + "." + part[1] + "." + part[2],
			part[0] + "." + enc(`{"sub":"`+b.ID+`"}`) + "." + part[2], token + "x", " " + token[1:],
		} {
			w.do("GET", path, "", bearer(forged)).refused(401, "AUTH_EXPIRED_TOKEN")
		}
	})
	t.Run("a rotated secret ends every token, and the key stays", func(t *testing.T) {
		fresh := w.do("POST", "/v1/account/rotate-secret", "", bearer(token)).want(200).str("data.api_secret")
		w.do("GET", path, "", bearer(token)).refused(401, "AUTH_EXPIRED_TOKEN")
		w.do("POST", "/v1/auth/refresh", "", bearer(token)).refused(401, "AUTH_EXPIRED_TOKEN")
		w.do("POST", "/v1/auth/token", `{"api_key":"`+a.Key+`","api_secret":"`+a.Secret+`"}`).refused(401, "AUTH_INVALID_KEY")
		a.Secret = fresh
		w.do("GET", path, "", a.as).want(200)
		token = w.token(a, account.AccountRead)
	})
	t.Run("a refreshed token has no more permissions than the old one", func(t *testing.T) {
		r := w.do("POST", "/v1/auth/refresh", "", bearer(token)).want(200)
		if got := text(r.at("data.agent.permissions")); got != `["account:read"]` {
			t.Error(got)
		}
		w.do("POST", "/v1/account/rotate-secret", "", bearer(r.str("data.access_token"))).refused(403, "AUTH_INSUFFICIENT_PERMISSION")
		w.do("POST", "/v1/auth/refresh", "", a.as).refused(401, "AUTH_EXPIRED_TOKEN")
	})
	t.Run("a token ends after expires_in", func(t *testing.T) {
		w.clock.Advance(time.Hour - time.Second)
		w.do("GET", path, "", bearer(token)).want(200)
		w.clock.Advance(2 * time.Second)
		w.do("GET", path, "", bearer(token)).refused(401, "AUTH_EXPIRED_TOKEN")
	})
	t.Run("a disabled account is 403", func(t *testing.T) {
		token := w.token(a)
		w.must(w.accounts.Disable(context.Background(), a.ID, "abuse"))
		w.do("GET", path, "", a.as).refused(403, "ACCOUNT_DISABLED")
		w.do("GET", path, "", bearer(token)).refused(403, "ACCOUNT_DISABLED")
		w.do("POST", "/v1/auth/token", `{"api_key":"`+a.Key+`","api_secret":"`+a.Secret+`"}`).refused(403, "ACCOUNT_DISABLED")
		w.do("POST", "/v1/auth/token", `{"api_key":"`+a.Key+`","api_secret":"sk_guess"}`).refused(401, "AUTH_INVALID_KEY")
		w.must(w.accounts.Enable(context.Background(), a.ID))
		w.do("GET", path, "", a.as).want(200)
	})
}
