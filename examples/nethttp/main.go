// Command nethttp fetches a page through a session: it buys one, uses it, reports
// how the request went, and ends the session.
//
// AGENTPROXY_URL is the API's address, AGENTPROXY_API_KEY the key of the account
// (without one a new account is registered), and TARGET the page to fetch.
package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

var (
	service = cmp.Or(os.Getenv("AGENTPROXY_URL"), "http://127.0.0.1:8080") // with or without /v1
	api     = strings.TrimSuffix(strings.TrimRight(service, "/"), "/v1") + "/v1"

	target = cmp.Or(os.Getenv("TARGET"), api+"/ip")
	key    = os.Getenv("AGENTPROXY_API_KEY")

	direct = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{Proxy: nil}}
)

type session struct {
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
	Proxy     struct {
		HTTPURL string `json:"http_url"`
	} `json:"proxy"`
}

// call calls the API and decodes the envelope's data into out. It returns the
// code and the message of a refusal.
func call(method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, api+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	req.Header.Set("Idempotency-Key", rand.Text()) // keep it for a retry: the same key buys once
	resp, err := direct.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var envelope struct {
		Data  json.RawMessage
		Error *struct{ Code, Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil {
		return err
	}
	if e := envelope.Error; e != nil {
		return fmt.Errorf("%s: %s", e.Code, e.Message)
	}
	return json.Unmarshal(envelope.Data, out)
}

func run() (err error) {
	if key == "" {
		var account struct {
			APIKey string `json:"api_key"`
		}
		if err := call("POST", "/account/register", map[string]string{"name": "Go example"}, &account); err != nil {
			return err
		}
		key = account.APIKey
	}
	var s session
	if err := call("POST", "/sessions", map[string]any{
		"type":     "dynamic",
		"config":   map[string]any{"product_no": "dyn_fast_1", "traffic_gb": 0.1},
		"max_cost": 1, // a dearer session is refused
	}, &s); err != nil {
		return err
	}
	path := "/sessions/" + s.SessionID
	defer func() { // what was not used is refunded
		err = errors.Join(err, call("POST", path+"/terminate", map[string]any{}, &s))
		fmt.Println(s.Status)
	}()

	proxy, err := url.Parse(s.Proxy.HTTPURL)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	resp, err := client.Get(target)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	if err != nil {
		return err
	}
	fmt.Printf("%d %s\n", resp.StatusCode, page)

	event := map[string]any{"event_type": "success", "status_code": resp.StatusCode}
	if resp.StatusCode >= 400 {
		event["event_type"] = "http_error"
	}
	var report struct {
		Health struct{ Recommendation string } `json:"session_health"`
	}
	if err := call("POST", path+"/report-event", event, &report); err != nil {
		return err
	}
	fmt.Println(report.Health.Recommendation)
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
