// Command goclient does with the client of the API what nethttp does without it: it buys a session, fetches a page
// through it, and ends it. AGENTPROXY_URL, AGENTPROXY_API_KEY and TARGET are those of the other examples.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"agentproxy/adapters/apiclient"
)

func main() {
	api := cmp.Or(os.Getenv("AGENTPROXY_URL"), "http://127.0.0.1:8080/v1")
	if err := run(context.Background(), api, os.Getenv("AGENTPROXY_API_KEY")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, api, key string) error {
	c, err := apiclient.New(api, key)
	if err == nil && key == "" {
		var account apiclient.Registered
		if account, err = c.Register(ctx, apiclient.Register{Name: "Go client"}); err == nil {
			c, err = apiclient.New(api, account.APIKey)
		}
	}
	if err != nil {
		return err
	}
	s, err := c.CreateSession(ctx, apiclient.CreateSession{Type: apiclient.SessionTypeDynamic, MaxCost: "1",
		Config: apiclient.CreateConfig{ProductNo: "dyn_fast_1", TrafficGB: "0.1"}})
	if err != nil {
		return err
	}
	err = fetch(s.Proxy, cmp.Or(os.Getenv("TARGET"), strings.TrimSuffix(api, "/v1")+"/v1/ip"))
	s, failed := c.TerminateSession(ctx, s.SessionID) // what was not used is refunded
	fmt.Println(s.Status)
	return errors.Join(err, failed)
}

func fetch(proxy *apiclient.Proxy, target string) error {
	if proxy == nil {
		return errors.New("the session has no proxy yet: poll GetSession until it has")
	}
	address, err := url.Parse(proxy.HTTPURL)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(address)}}
	resp, err := client.Get(target)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(resp.Body, 200))
	return err
}
