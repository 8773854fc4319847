package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	callTimeout = 20 * time.Second
	maxResponse = 8 << 20
	maxLogs     = 32 << 20 // an answer of JSON-RPC; nodes end at 25 MiB
)

// tronSource calls the API, at the rate and the daily quota of the plan and not
// while the breaker is open. Nothing is tried again but what the quota refused.
// Only a 200 with the expected body is accepted.
type tronSource struct {
	network string
	base    string
	key     string
	client  *http.Client
	limit   *rate.Limiter
	daily   *rate.Limiter
	quota   *exhaustion
	breaker *breaker
	log     *slog.Logger
	hide    *strings.Replacer // what must not appear in a message
}

func newTronSource(cfg TronConfig) *tronSource {
	client := newTronClient()
	if cfg.Client != nil {
		own := *cfg.Client
		client = &own
	}
	// A redirect would carry the key elsewhere, or answer for another network.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var secrets []string
	if cfg.APIKey != "" {
		secrets = append(secrets, cfg.APIKey, "[key]")
	}
	if u, err := url.Parse(cfg.BaseURL); err == nil && u.Path != "" {
		secrets = append(secrets, u.EscapedPath(), "[path]", u.Path, "[path]")
	}
	return &tronSource{network: cfg.Network, base: cfg.BaseURL, key: cfg.APIKey, client: client, log: cfg.Logger,
		// A bucket of one: with a larger one a second could see the plan's calls
		// and the bucket's on top.
		limit: rate.NewLimiter(rate.Limit(cfg.PerSecond), 1),
		// Whatever is asked for, a day has no more calls than this and a burst.
		daily: rate.NewLimiter(rate.Limit(cfg.PerDay/(24*60*60)), cfg.Burst), quota: newExhaustion(),
		breaker: &breaker{pause: cfg.Pause, floor: cfg.Suspended}, hide: strings.NewReplacer(secrets...)}
}

// object posts a request whose response is one object. It returns true if that
// is {}.
func (s *tronSource) object(ctx context.Context, path string, question, into any) (empty bool, err error) {
	err = s.call(ctx, http.MethodPost, path, nil, question, maxResponse, func(body []byte) error {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return err
		}
		if fields == nil || fields["Error"] != nil || fields["error"] != nil {
			return errors.New("the answer is an error")
		}
		empty = len(fields) == 0
		return json.Unmarshal(body, into)
	})
	return empty, err
}

// index gets a page of the index.
func (s *tronSource) index(ctx context.Context, path string, query url.Values, decode func([]byte) error) error {
	return s.call(ctx, http.MethodGet, path, query, nil, maxResponse, decode)
}

// call makes one call. It passes the body to decode, whose error counts as a
// failure of the source. A call that is refused because the quota of the day is
// used up is made again at the rate that is left.
func (s *tronSource) call(ctx context.Context, method, path string, query url.Values, question any, most int64,
	decode func([]byte) error,
) error {
	for tries := 1; ; tries++ {
		err := s.callOnce(ctx, method, path, query, question, most, decode)
		if !errors.Is(err, errExhausted) || tries == exhaustedTries {
			return err
		}
	}
}

// wait waits until the rate and the quotas admit a call.
func (s *tronSource) wait(ctx context.Context) error {
	for _, wait := range []func(context.Context) error{s.daily.Wait, s.quota.wait, s.limit.Wait} {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *tronSource) callOnce(ctx context.Context, method, path string, query url.Values, question any, most int64,
	decode func([]byte) error,
) error {
	if err := s.breaker.check(); err != nil { // before waiting for the rate limiter
		return fmt.Errorf("%s: %s: %w", s.network, path, err)
	}
	if err := s.wait(ctx); err != nil {
		return fmt.Errorf("%s: %s: %w", s.network, path, err)
	}
	if err := s.breaker.acquire(); err != nil {
		return fmt.Errorf("%s: %s: %w", s.network, path, err)
	}
	body, suspended, err := s.do(ctx, method, path, query, question, most)
	if err == nil {
		if err = decode(body); err != nil {
			err = fmt.Errorf("%w: %s", err, excerpt(s.hide.Replace(string(body[:min(len(body), 4096)]))))
		}
	}
	switch {
	case err == nil:
		s.breaker.succeeded()
		return nil
	case ctx.Err() != nil: // cancelled by the caller, not a failure of the source
		s.breaker.release()
	case errors.Is(err, errExhausted):
		s.breaker.release()
		if s.quota.begin() {
			s.log.Warn("the daily quota of the chain's source is used up; calls go on at one a second", "network", s.network,
				"err", err)
		}
	default:
		pause := s.breaker.failed(suspended)
		s.log.Warn("the chain's source failed", "network", s.network, "path", path, "pause", pause, "err", err)
	}
	return fmt.Errorf("%s: %s %s: %w", s.network, method, path, err)
}

// do sends the request and reads the whole body. Suspended is for how long the
// source refuses calls, 0 if it does not: it answers 403, 429 or 503 then.
func (s *tronSource) do(ctx context.Context, method, path string, query url.Values, question any, most int64,
) (body []byte, suspended time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var in io.Reader
	if question != nil {
		b, err := json.Marshal(question)
		if err != nil {
			return nil, 0, err
		}
		in = bytes.NewReader(b)
	}
	target := s.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, in)
	if err != nil {
		return nil, 0, errors.New("the request could not be made")
	}
	req.Header.Set("Accept", "application/json")
	if question != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.key != "" {
		req.Header.Set("TRON-PRO-API-KEY", s.key)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if whole := new(url.Error); errors.As(err, &whole) {
			err = whole.Err // it repeats the URL
		}
		return nil, 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		head, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		err := fmt.Errorf("answered %d: %s", res.StatusCode, excerpt(s.hide.Replace(string(head))))
		if !refuses[res.StatusCode] {
			return nil, 0, err
		}
		if exhausted(head) {
			return nil, 0, fmt.Errorf("%w: %w", errExhausted, err)
		}
		return nil, suspension(head, s.breaker.floor), err
	}
	var buf bytes.Buffer
	if res.ContentLength > 0 {
		buf.Grow(int(min(res.ContentLength, most)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(io.LimitReader(res.Body, most+1)); err != nil {
		return nil, 0, fmt.Errorf("the answer breaks off: %w", err)
	}
	if int64(buf.Len()) > most {
		return nil, 0, fmt.Errorf("the answer is longer than %d bytes", most)
	}
	return bytes.TrimSpace(buf.Bytes()), 0, nil
}

// excerpt returns the beginning of a foreign text on one line, in printable
// ASCII.
func excerpt(s string) string {
	const most = 160
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
