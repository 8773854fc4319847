package chain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/domain/recharge"
	"agentproxy/test/fake/trongrid"
)

// An answer that is not what was asked for is an error, for every call and each
// way in which the source is known to fail, and leaves no trace.
func TestTronFailuresProveNothing(t *testing.T) {
	everywhere := map[string]trongrid.Fault{
		"429": trongrid.TooMany, "403": trongrid.Forbidden, "503 and HTML": trongrid.Unavailable,
		"400 and nothing": trongrid.Empty400, "404": trongrid.NotFound, "200 and an error": trongrid.ErrorText,
		"200 and a text": trongrid.BareText, "200 and HTML": trongrid.HTML, "half an answer": trongrid.Cut,
		"a redirect": trongrid.Redirect, "a slow answer": trongrid.Slow, "null": trongrid.Text(200, "null"),
		"200 and nothing": trongrid.Text(200, ""), "201": trongrid.Text(201, `{}`), "204": trongrid.Text(204, ""),
		"success false": trongrid.NoSuccess, "no data": trongrid.NoData, "two answers": trongrid.Text(200, `{}{}`),
		"data that is an object": trongrid.Text(200, `{"success":true,"data":{}}`), "data that is null": trongrid.Text(200, `{"success":true,"data":null}`),
		"a wrong type": trongrid.Text(200, `{"success":"true","data":[],"id":1,"block_header":[],"result":[]}`),
	}
	read := map[string]func(c *chain.Tron, id string, block int64) (any, error){
		solidHead:  func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Heads(t.Context()) },
		latestHead: func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Heads(t.Context()) },
		indexPath:  func(c *chain.Tron, _ string, _ int64) (any, error) { return c.History(t.Context(), ours, time.Time{}) },
		solidByID:  func(c *chain.Tron, _ string, _ int64) (any, error) { return c.History(t.Context(), ours, time.Time{}) },
		byID: func(c *chain.Tron, _ string, _ int64) (any, error) {
			return c.Transaction(t.Context(), strings.Repeat("ab", 32))
		},
		logsPath: func(c *chain.Tron, _ string, n int64) (any, error) {
			return c.Incoming(t.Context(), []string{ours}, n, n)
		},
		callPath:    func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Balances(t.Context(), []string{ours}) },
		balancePath: func(c *chain.Tron, _ string, _ int64) (any, error) { return c.Balance(t.Context(), ours) },
	}
	for path, call := range read {
		t.Run(strings.Trim(path, "/"), func(t *testing.T) {
			t.Parallel()
			grid := trongrid.Start(t)
			id := grid.Send(payer, ours, usdt)
			grid.Mine(1)
			block, _ := grid.Head()
			grid.Mine(trongrid.Gap)
			for name, fault := range everywhere {
				var way hasty
				c := tron(t, grid, func(cfg *chain.TronConfig) {
					cfg.Suspended, cfg.Client = 1, &http.Client{Timeout: time.Minute, Transport: &way}
				})
				if _, err := c.Heads(t.Context()); err != nil {
					t.Fatal(err)
				}
				grid.Fail(path, fault, 1)
				way.gives.Store(name == "a slow answer")
				got, err := call(c, id, block)
				way.gives.Store(false)
				if err == nil {
					t.Errorf("%s: the answer was %+v", name, got)
				}
				if list, _ := got.([]recharge.Transfer); list != nil {
					t.Errorf("%s: with the error came %+v", name, list)
				}
				grid.Heal()
				if got, err := call(c, id, block); err != nil {
					t.Errorf("after %s the answer is %+v, %v", name, got, err)
				}
			}
			for _, c := range grid.Calls() {
				if strings.HasPrefix(c.Path, "/elsewhere") {
					t.Errorf("a redirect was followed to %s", c.Path)
				}
			}
		})
	}
}

// hasty is the way to a source. Only while gives is set it gives up soon.
type hasty struct{ gives atomic.Bool }

func (h *hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.gives.Load() {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		context.AfterFunc(ctx, cancel)
		r = r.WithContext(ctx)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// endless answers without end.
type endless struct{ sent int64 }

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(e), ContentLength: -1, Request: r}, nil
}

func (e *endless) Read(p []byte) (int, error) {
	e.sent += int64(len(p))
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestTronBoundsWhatItReads(t *testing.T) {
	e := new(endless)
	c, err := chain.NewTron(chain.TronConfig{Network: "tron-mainnet", Client: &http.Client{Transport: e}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Heads(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than") || e.sent > 32<<20 {
		t.Errorf("after %d bytes: %v", e.sent, err)
	}
}

// echo fails in ways that repeat the request.
type echo struct{ dial bool }

func (e echo) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.dial {
		return nil, errors.New("no connection")
	}
	return &http.Response{StatusCode: 500, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf("%s may not read %s", r.Header.Get("TRON-PRO-API-KEY"), r.URL)))}, nil
}

func TestTronLogsNoSecrets(t *testing.T) {
	const key, path = "key-0123456789", "token-9876543210"
	for name, client := range map[string]*http.Client{
		"a server that repeats what it got": {Transport: echo{}},
		"a connection that fails":           {Transport: echo{dial: true}},
		"a connection that is refused":      nil,
	} {
		var log bytes.Buffer
		cfg := chain.TronConfig{Network: "tron-mainnet", BaseURL: "http://127.0.0.1:1/" + path, APIKey: key, Client: client,
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Pause: 1}
		c, err := chain.NewTron(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Heads(t.Context())
		if err == nil || log.Len() == 0 {
			t.Fatalf("%s: %v, logged %q", name, err, log.String())
		}
		cfg.Logger.Info("config", "config", cfg, "chain", c)
		said := fmt.Sprintf("%v %s %v %+v %#v %v %+v %#v", err, log.String(), cfg, cfg, cfg, c, c, c)
		for _, secret := range []string{key, path} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: %q is in %q", name, secret, said)
			}
		}
	}
	const shown = "https://user:" + key + "@api.trongrid.io"
	for _, base := range []string{shown, "://" + key, "https://api.trongrid.io/?key=" + key} {
		if _, err := chain.NewTron(chain.TronConfig{Network: "tron-mainnet", BaseURL: base}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestTronConfig(t *testing.T) {
	good := map[string]chain.TronConfig{
		"the main network":        {Network: "tron-mainnet"},
		"a test network":          {Network: "tron-nile"},
		"another test network":    {Network: "tron-shasta"},
		"another token of a test": {Network: "tron-nile", Contract: "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj"},
		"one's own node":          {Network: "tron-mainnet", BaseURL: "http://[::1]:8090"},
		"a proxy on this host":    {Network: "tron-mainnet", BaseURL: "http://localhost:8090/tron/", APIKey: "k"},
	}
	for name, cfg := range good {
		c, err := chain.NewTron(cfg)
		if err != nil || c.Network() != cfg.Network || c.Required() != 19 {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	bad := map[string]chain.TronConfig{
		"no network":                              {},
		"an unknown network":                      {Network: "tron"},
		"a test's token on the main network":      {Network: "tron-mainnet", Contract: "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"},
		"a token that is no address":              {Network: "tron-nile", Contract: "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBx"},
		"the token in lower case":                 {Network: "tron-mainnet", Contract: strings.ToLower(trongrid.USDT)},
		"a test's host for the main network":      {Network: "tron-mainnet", BaseURL: "https://nile.trongrid.io"},
		"the main network's host for a test":      {Network: "tron-shasta", BaseURL: "https://API.trongrid.io"},
		"a test's host with its final dot":        {Network: "tron-mainnet", BaseURL: "https://nile.trongrid.io./"},
		"no scheme":                               {Network: "tron-mainnet", BaseURL: "api.trongrid.io"},
		"another scheme":                          {Network: "tron-mainnet", BaseURL: "ftp://api.trongrid.io"},
		"no host":                                 {Network: "tron-mainnet", BaseURL: "https:///v1"},
		"a key in clear":                          {Network: "tron-mainnet", BaseURL: "http://tron.example", APIKey: "k"},
		"an answer that can be changed":           {Network: "tron-nile", BaseURL: "http://10.0.0.5:8090"},
		"a key that is two lines":                 {Network: "tron-mainnet", APIKey: "a\r\nb"},
		"fewer calls than none":                   {Network: "tron-mainnet", PerSecond: -1},
		"a query that would hide the parameters":  {Network: "tron-mainnet", BaseURL: "https://api.trongrid.io?x=1"},
		"a fragment that would hide the question": {Network: "tron-mainnet", BaseURL: "https://api.trongrid.io#x"},
	}
	for name, cfg := range bad {
		if _, err := chain.NewTron(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// bubble runs a test on a clock of its own, against a chain without a socket.
func bubble(t *testing.T, test func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		grid := trongrid.New()
		test(t, grid, func(changes ...func(*chain.TronConfig)) *chain.Tron {
			plan := func(cfg *chain.TronConfig) {
				*cfg = chain.TronConfig{Network: cfg.Network, Client: &http.Client{Transport: grid}}
			}
			return tron(t, grid, append([]func(*chain.TronConfig){plan}, changes...)...)
		})
	})
}

// In no window of a second are there more calls than the plan has, whichever
// call is made and whatever fails.
func TestTronKeepsToItsBudget(t *testing.T) {
	for name, plan := range map[string]struct {
		cfg func(*chain.TronConfig)
		per int
	}{
		"with a key":    {func(cfg *chain.TronConfig) { cfg.APIKey = "k" }, 8},
		"without a key": {func(*chain.TronConfig) {}, 2},
		"as configured": {func(cfg *chain.TronConfig) { cfg.PerSecond = 5 }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
				c := open(plan.cfg)
				for range 20 {
					grid.Send(payer, ours, usdt)
				}
				grid.Mine(1 + trongrid.Gap)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						for ctx.Err() == nil {
							c.Heads(ctx)
							c.History(ctx, ours, time.Time{})
							c.Incoming(ctx, []string{ours}, grid.Solid()-10, grid.Solid())
							if _, err := c.Balance(ctx, ours); err != nil {
								time.Sleep(time.Second) // an impatient caller
							}
						}
					})
				}
				time.Sleep(20 * time.Second)
				grid.Fail("/", trongrid.Unavailable, -1)
				time.Sleep(20 * time.Minute)
				outage := count(grid, "/")
				grid.Heal()
				time.Sleep(3 * time.Minute)
				grid.Fail("/", trongrid.TooMany, 2)
				time.Sleep(time.Minute)
				cancel()
				wg.Wait()
				calls := grid.Calls()
				for i := plan.per; i < len(calls); i++ {
					if d := calls[i].At.Sub(calls[i-plan.per].At); d < time.Second-time.Microsecond {
						t.Fatalf("calls %d to %d came within %s", i-plan.per, i, d)
					}
				}
				if all := len(calls) - outage; all < plan.per*90 {
					t.Errorf("after the outage there were only %d calls", all)
				}
				if before := plan.per*21 + 10; outage > before+40 {
					t.Errorf("in 20 minutes of outage there were %d calls", outage-before)
				}
			})
		})
	}
}

func TestTronLeavesASuspendedSourceAlone(t *testing.T) {
	for name, c := range map[string]struct {
		fault trongrid.Fault
		alone time.Duration
	}{
		"403 with Retry-After 30": {trongrid.Forbidden, 30 * time.Second}, "429 with Retry-After 27": {trongrid.TooMany, 27 * time.Second},
		"503 without Retry-After": {trongrid.Unavailable, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			fault, alone := c.fault, c.alone
			bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
				c := open()
				grid.Fail("/", fault, 1)
				begin := time.Now()
				if _, err := c.Heads(t.Context()); err == nil {
					t.Fatal("a suspended key was answered")
				}
				for time.Since(begin) < alone {
					before := time.Now()
					if _, err := c.Balance(t.Context(), ours); err == nil || !strings.Contains(err.Error(), "left alone") {
						t.Fatalf("after %s: %v", time.Since(begin), err)
					}
					if d := time.Since(before); d > 0 {
						t.Fatalf("a call waited %s to be refused", d)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if n := count(grid, "/"); n != 1 {
					t.Errorf("meanwhile the source was called %d times", n)
				}
				time.Sleep(10 * time.Second)
				if _, err := c.Heads(t.Context()); err != nil {
					t.Errorf("40 s later: %v", err)
				}
			})
		})
	}
}

// Pauses double, up to a minute or so, and end with the first answer.
func TestTronBacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
		c := open()
		grid.Fail("/", trongrid.NotFound, -1)
		for range 20 * 600 {
			c.Heads(t.Context())
			time.Sleep(50 * time.Millisecond)
		}
		var pauses []time.Duration
		calls := grid.Calls()
		for i := range calls[1:] {
			pauses = append(pauses, calls[i+1].At.Sub(calls[i].At))
		}
		for i, d := range pauses {
			if low := time.Second << min(i, 6); d < low || d > low+low/4+100*time.Millisecond {
				t.Fatalf("pause %d is %s, want %s and up to a quarter more", i, d, low)
			}
		}
		if len(pauses) < 10 || len(slices.Compact(slices.Sorted(slices.Values(pauses[7:])))) < 2 {
			t.Errorf("the pauses are %v, want some that chance keeps apart", pauses)
		}
		grid.Heal()
		time.Sleep(2 * time.Minute)
		if _, err := c.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		grid.Fail("/", trongrid.NotFound, 1)
		c.Heads(t.Context())
		time.Sleep(1300 * time.Millisecond)
		if _, err := c.Heads(t.Context()); err != nil {
			t.Errorf("after one failure among answers the pause is longer than the first: %v", err)
		}
	})
}

// After a pause one call finds out how the source is; the others do not pile up
// behind it.
func TestTronProbesWithOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
		c := open(func(cfg *chain.TronConfig) { cfg.PerSecond = 1000 })
		grid.Fail("/", trongrid.NotFound, 1)
		c.Heads(t.Context())
		time.Sleep(2 * time.Second)
		grid.Forget()
		grid.Fail("/", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			time.Sleep(5 * time.Second)
			trongrid.NotFound(w, r, next)
		}, -1)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := c.Balance(t.Context(), ours); err == nil {
					t.Error("an outage was answered")
				}
			})
		}
		wg.Wait()
		if n := count(grid, "/"); n != 1 {
			t.Errorf("%d calls found out how the source is, want 1", n)
		}
	})
}

// A caller that leaves is not the source's fault, and a probe that is left is
// followed by another.
func TestTronCallerThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
		c := open()
		leave := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			grid.Fail("/", trongrid.Slow, 1)
			if _, err := c.Heads(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the caller that leaves gets %v", err)
			}
		}
		leave()
		if _, err := c.Heads(t.Context()); err != nil {
			t.Errorf("the next caller gets %v", err)
		}
		grid.Fail("/", trongrid.NotFound, 1)
		c.Heads(t.Context())
		time.Sleep(2 * time.Second)
		leave()
		if _, err := c.Heads(t.Context()); err != nil {
			t.Errorf("after a probe that was left the next caller gets %v", err)
		}
	})
}

// A caller without a deadline does not wait for ever, and one with a deadline
// does not wait in vain for its turn.
func TestTronWaitsNoLongerThanItMust(t *testing.T) {
	bubble(t, func(t *testing.T, grid *trongrid.Server, open func(...func(*chain.TronConfig)) *chain.Tron) {
		c := open()
		grid.Fail("/", trongrid.Slow, 1)
		begin := time.Now()
		if _, err := c.Heads(context.Background()); err == nil || time.Since(begin) > time.Minute {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		slow := open(func(cfg *chain.TronConfig) { cfg.PerSecond = 0.01 })
		slow.Balance(t.Context(), ours)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		if _, err := slow.Balance(ctx, ours); err == nil || time.Since(begin) > time.Second {
			t.Errorf("a turn that comes too late took %s: %v", time.Since(begin), err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		begin = time.Now()
		if _, err := slow.Balance(ctx, ours); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("a caller that leaves while it waits took %s: %v", time.Since(begin), err)
		}
	})
}
